"""One page for each theorem of the catalogue, written from the theorem itself. `mkdocs build` adds them to the site.

Where a theorem is best is read from the runs of docs/choose.md, whose printed numbers the tests hold true.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import lastiterate as li
from lastiterate.reproduction.errata import ERRATA, Erratum
from lastiterate.theorems.features import (
    ADDED_OR_REMOVED,
    ANY_BATCHES,
    ANY_NEIGHBOURS,
    BY_THE_FRAME,
    FEATURES,
    FIXED_ORDER,
    FULL_BATCHES,
    NEW_ORDERS,
    ONE_ORDER,
    OWN_PLACES,
    RANDOM_BATCHES,
    REPLACED,
    UNKNOWN,
    ZEROED_OUT,
)

DOCS = Path(__file__).parent
BATCHES = {
    FULL_BATCHES: "full",
    FIXED_ORDER: "fixed order",
    ONE_ORDER: "one order",
    NEW_ORDERS: "new orders",
    OWN_PLACES: "bins",
    RANDOM_BATCHES: "random",
}
NEIGHBOURS = {REPLACED: "replace", ZEROED_OUT: "zero out", ADDED_OR_REMOVED: "add or remove"}
AS_GOOD = 1 + 1e-5  # what six printed digits can tell apart

Ranking = list[tuple[float, str]]


def pages() -> dict[str, str]:
    """Path below docs → text, for every theorem of the catalogue."""
    runs = _runs((DOCS / "choose.md").read_text())
    return {path_of(theorem.name): _page(theorem, runs) for theorem in li.theorems.ALL}


def feature_table() -> str:
    """The table of docs/theorems.md: for each theorem the features of a run that it covers; it refuses all others."""
    columns = [one for one in FEATURES if one not in ANY_BATCHES | ANY_NEIGHBOURS | BY_THE_FRAME | {UNKNOWN}]
    rows = [
        f"| theorem | batches | neighbours | {' | '.join(one.name for one in columns)} |",
        "|---|---|---|" + ":-:|" * len(columns),
    ]
    for theorem in li.theorems.ALL:
        batches = ", ".join(word for one, word in BATCHES.items() if one in theorem.features)
        neighbours = ", ".join(word for one, word in NEIGHBOURS.items() if one in theorem.features)
        marks = " | ".join("✓" if one in theorem.features else "·" for one in columns)
        rows.append(f"| `{theorem.name}` | {batches} | {neighbours} | {marks} |")
    return "\n".join(rows)


def path_of(name: str) -> str:
    return f"theorems/{name}.md"


def errata_of(theorem: li.theorems.Theorem) -> list[Erratum]:
    """Those that the theorem names itself, and their variants (E0.1b)."""
    named = re.findall(r"E\d\.\d", theorem.erratum or "")
    return [one for one in ERRATA if one.name[:4] in named]


def anchor(erratum: str) -> str:
    return erratum.lower().replace(" ", "-")


def _page(theorem: li.theorems.Theorem, runs: dict[str, Ranking]) -> str:
    up = "../" * (theorem.name.count("/") + 1)
    lines = [
        f"# {theorem.name}",
        f"**{theorem.citation}.** Covers: {theorem.covers}. This page has its bound, its assumptions, and the example runs "
        "for which it gives the smallest ε.",
        *_statement(theorem, up),
        *_where_best(theorem.name, runs, up),
        *_errata(theorem, up),
        "## Code and proof",
        f"The code is in `{theorem.bound.__module__}`. Results that are in no paper are proved in [Proofs]({up}proofs.md). "
        f"Compare with [all theorems]({up}theorems.md).",
    ]
    return "\n\n".join(lines) + "\n"


def sections(text: str) -> dict[str, str]:
    """What a bound says of itself: Update, Bound, Assumes, Attained by, Reference, each in one line."""
    parts = re.split(r"^(Update|Bound|Assumes|Attained by|Reference): ", text, flags=re.MULTILINE)[1:]
    return {label: " ".join(body.split()) for label, body in zip(parts[::2], parts[1::2], strict=True)}


def _statement(theorem: li.theorems.Theorem, up: str) -> Iterator[str]:
    yield "## Statement"
    said = sections(inspect.getdoc(theorem.bound))
    yield f"**Update:** {said['Update']}"
    yield f"**Bound:** {said['Bound']}"
    yield f"**Neighbours:** {'; '.join(str(one.unit()) for one in theorem.adjacencies)}."
    yield (
        f"**Symbols** ([notation]({up}notation.md)): s, ν and L are the sensitivity, noise and Lipschitz constant of a "
        "step, on the iterate. D is the diameter of the domain. p is the probability that the record is in a batch. There "
        "are T steps, or E epochs of l batches."
    )
    yield f"**Assumes:** {said['Assumes']} The library checks on your run:"
    yield "\n".join(f"- {needed}" for needed in theorem.needs)
    yield f"**Attained by:** {said['Attained by']} (`make sharpness` shows how closely.)"
    yield f"**Reference:** {said['Reference']}"
    about, *notes = inspect.getdoc(sys.modules[theorem.bound.__module__]).split("\n\n")
    yield f"**Background:** {about}"
    yield from notes


def _where_best(name: str, runs: dict[str, Ranking], up: str) -> Iterator[str]:
    yield "## When it gives the smallest ε"
    found = [(run, *_standing(name, ranking)) for run, ranking in runs.items() if name in dict(_named(ranking))]
    best = sum(ratio <= AS_GOOD for _, _, ratio, _ in found)
    yield (
        f"It applies to {len(found)} of the {len(runs)} runs of [how to choose]({up}choose.md), at δ = 1e-6. "
        f"Of these, its ε is the smallest, or equal to it, in {best or 'none'}."
    )
    if found:
        rows = ["| run | ε | times the smallest | best other theorem |", "|---|---|---|---|"]
        for run, epsilon, ratio, other in sorted(found, key=lambda one: one[2]):
            times = "**1**" if ratio <= AS_GOOD else f"{ratio:.4g}"
            rows.append(f"| {run} | {epsilon:.5g} | {times} | {other} |")
        yield "\n".join(rows)


def _standing(name: str, ranking: Ranking) -> tuple[float, float, str]:
    """(ε, as a multiple of the least, the best of the others)"""
    epsilon = dict(_named(ranking))[name]
    others = [(value, other) for value, other in ranking if other != name]
    shown = f"`{others[0][1]}`, {others[0][0]:.5g}" if others else "none applies"
    return epsilon, epsilon / ranking[0][0], shown


def _named(ranking: Ranking) -> Iterator[tuple[str, float]]:
    return ((name, value) for value, name in ranking)


def _errata(theorem: li.theorems.Theorem, up: str) -> Iterator[str]:
    yield "## Errata"
    if theorem.erratum is None:
        yield f"None that is known. [All errata]({up}errata.md)."
        return
    yield f"{theorem.erratum}."
    rows = ["| id | printed | corrected | effect |", "|---|---|---|---|"]
    for one in errata_of(theorem):
        link = f"[{one.name}]({up}errata.md#{anchor(one.name)})"
        cells = (link, one.printed, one.corrected, one.effect.value)
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    yield "\n".join(rows)


def _runs(choose: str) -> dict[str, Ranking]:
    """The last text block of docs/choose.md: runs, each followed by its guarantees, the least ε first."""
    runs: dict[str, Ranking] = {}
    for line in re.findall(r"```text\n(.*?)```", choose, re.DOTALL)[-1].splitlines():
        if line.startswith(" "):
            epsilon, name = line.split()
            runs[list(runs)[-1]].append((float(epsilon), name))
        else:
            runs[line] = []
    return runs


if __name__ == "__main__":
    print(feature_table())
