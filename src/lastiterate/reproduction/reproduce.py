"""Makes exhibits and writes their numbers, pictures and verdicts, and one page about all. Finished exhibits are kept."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lastiterate.errors import InvalidInput, Unavailable, must_be
from lastiterate.parallel import every_core, in_parallel
from lastiterate.plots import save
from lastiterate.progress import tracked
from lastiterate.reproduction import TITLES
from lastiterate.reproduction.catalogue import EXHIBITS, exhibit_of
from lastiterate.reproduction.drawing import drawn
from lastiterate.reproduction.exhibit import Agreement, Claim, Exhibit, Made, Outcome, Setting
from lastiterate.reproduction.names import chosen
from lastiterate.reproduction.page import page
from lastiterate.runs.files import write_text

PAPERS = tuple(TITLES)


@dataclass(frozen=True)
class Shown:
    """An exhibit as it was made. `kept` if it was there already."""

    exhibit: Exhibit
    verdict: Agreement
    claims: tuple[Claim, ...]
    seconds: float
    kept: bool = False

    def __str__(self) -> str:
        return f"{self.exhibit.paper} {self.exhibit.name}: {self.verdict}"


def reproduce(
    papers: Sequence[str] = PAPERS,
    out: str | Path = "out/papers",
    *,
    exhibits: Sequence[str] = (),
    quick: bool = False,
    fresh: bool = False,
    mnist: str | Path | None = None,
    workers: int | None = None,
) -> tuple[Shown, ...]:
    """Reproduce the figures and tables of these papers in the folder `out`, on all cores; `report.html` shows them.

    `exhibits` names some of one paper: `fig-1`, `table-3`. An exhibit that the same library made before with the same
    parameters is kept, unless `fresh`. `workers` is the number of processes; an active joblib.parallel_config may name a
    cluster instead, whose workers have to see the folder.
    """
    if unknown := [name for name in papers if name not in PAPERS]:
        raise must_be("papers", f"among {', '.join(PAPERS)}", f"{unknown[0]}")
    if exhibits and len(papers) != 1:
        raise InvalidInput("exhibits are those of one paper. Name one paper, or leave exhibits out.", field="exhibits")
    wanted = chosen([exhibit for exhibit in EXHIBITS if exhibit.paper in papers], exhibits)
    folder, setting = _folder(out), Setting(quick, None if mnist is None else Path(mnist))
    kept = {} if fresh else {one.key: old for one in wanted if (old := _kept(one, setting, folder)) is not None}
    pending = [one for one in wanted if one.key not in kept]
    found = kept | {shown.exhibit.key: shown for shown in _all_made(pending, setting, folder, workers)}
    ordered = tuple(found[exhibit.key] for exhibit in wanted)
    write_text(folder / "report.html", page(ordered, folder, setting))
    write_text(folder / "verdicts.txt", "".join(f"{one}\n" for one in ordered))
    return ordered


def _all_made(pending: Sequence[Exhibit], setting: Setting, folder: Path, workers: int | None) -> Iterator[Shown]:
    """Those that use all cores by themselves come last, one by one."""
    alone = [one for one in pending if not one.uses_all_cores]
    slowest_first = [(one.key,) for one in sorted(alone, key=lambda one: -one.cost)]
    make = partial(_made_elsewhere, setting=setting, folder=folder.resolve())
    keys = in_parallel(make, slowest_first, every_core() if workers is None else workers, ordered=False)
    for _ in tracked(alone, "exhibits"):
        yield _read(exhibit_of(next(keys)), folder, kept=False)
    for one in pending:
        if one.uses_all_cores:
            yield _made(one.key, setting, folder)


def _made_elsewhere(key: str, setting: Setting, folder: Path) -> str:
    """Functions do not travel between processes; what was written down does."""
    return _made(key, setting, folder).exhibit.key


def _made(key: str, setting: Setting, folder: Path) -> Shown:
    exhibit, started = exhibit_of(key), time.perf_counter()
    try:
        made = exhibit.make(setting)
    except Unavailable as error:
        made = Made(("not made",), ((str(error),),), (), Agreement(Outcome.NOT_MADE, (), str(error)))
    _write_numbers(made, folder / f"{key}.csv")
    if made.panels:
        figure = drawn(made.panels)
        for ending in ("png", "svg"):
            save(figure, folder / f"{key}.{ending}")
    shown = Shown(exhibit, made.verdict, made.claims, time.perf_counter() - started)
    write_text(folder / f"{key}.json", json.dumps(_record(shown, setting), indent=1))
    return shown


def _record(shown: Shown, setting: Setting) -> dict[str, Any]:
    verdict = {**asdict(shown.verdict), "outcome": shown.verdict.outcome.name}
    claims = [asdict(claim) for claim in shown.claims]
    return {"stamp": _stamp(shown.exhibit, setting), "verdict": verdict, "claims": claims, "seconds": shown.seconds}


def _stamp(exhibit: Exhibit, setting: Setting) -> dict[str, Any]:
    """What has to be the same for an exhibit to be kept."""
    return {
        "library": _library(),
        "parameters": [list(pair) for pair in exhibit.parameters],
        "quick": setting.quick,
        "mnist": exhibit.uses_all_cores and setting.mnist is not None,
    }


@cache
def _library() -> str:
    """The version, and a digest of the sources: between releases the same version can compute different numbers."""
    digest, root = hashlib.sha256(), Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"{version('lastiterate')}+{digest.hexdigest()[:12]}"


def _kept(exhibit: Exhibit, setting: Setting, folder: Path) -> Shown | None:
    """What is there of an exhibit, if it is whole and was made in the same way."""
    try:
        record = json.loads((folder / f"{exhibit.key}.json").read_text())
        same = record["stamp"] == _stamp(exhibit, setting) and (folder / f"{exhibit.key}.csv").exists()
        drawn_too = record["verdict"]["outcome"] in ("NOT", "NOT_MADE") or (folder / f"{exhibit.key}.svg").exists()
        return _read(exhibit, folder, kept=True) if same and drawn_too else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(exhibit: Exhibit, folder: Path, kept: bool) -> Shown:
    record = json.loads((folder / f"{exhibit.key}.json").read_text())
    given = record["verdict"]
    verdict = Agreement(Outcome[given["outcome"]], tuple(given["errata"]), given["note"])
    return Shown(exhibit, verdict, tuple(Claim(**claim) for claim in record["claims"]), record["seconds"], kept)


def _folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be a folder: {error.strerror}.") from error
    return folder


def _write_numbers(made: Made, path: Path) -> None:
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(made.columns)
    writer.writerows(made.rows)
    write_text(path, table.getvalue())
