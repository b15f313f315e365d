"""The certificate of a sum, and of a sum that somebody made smaller; the command line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.budget.entries import Terms, chained, plain_text
from lastiterate.cli import main
from lastiterate.facts import Basis, fact, facts_from_json

DELTA = 1e-5


def run_with(batches: object, **changes: object) -> li.Run:
    values: dict[str, object] = {
        "loss": li.losses.logistic(feature_norm=1.0, l2=0.01),
        "batches": batches,
        "step_size": 0.5,
        "noise": li.OnMeanGradient(std=0.2),
        "steps": 16,
    }
    return li.Run(**{**values, **changes})  # type: ignore[arg-type]


RUNS = {
    "replayed, mu": run_with(li.FullBatch(records=100), noise=li.OnMeanGradient(std=0.5)),
    "replayed, a profile": run_with(li.Cyclic(records=400, batch_size=100)),
    "recomputed, sampled": run_with(li.FixedSize(records=400, batch_size=10), noise=li.OnMeanGradient(std=1.0)),
}


def budget_of(adaptive: bool) -> li.Budget:
    budget = li.Budget(4.0, DELTA, dataset="patients", adaptive=adaptive)
    for name, run in RUNS.items():
        budget.spend(run, what=name)
    budget.spend(li.notions.Profile(epsilons=[0.1], deltas=[1e-9]), what="stated")
    return budget


BUDGETS = {adaptive: budget_of(adaptive) for adaptive in (True, False)}
CERTIFICATES = {adaptive: budget.certificate for adaptive, budget in BUDGETS.items()}
each_kind = pytest.mark.parametrize("adaptive", [True, False], ids=["adaptive", "decided beforehand"])


@each_kind
def test_a_sum_is_accepted(adaptive: bool) -> None:
    budget = BUDGETS[adaptive]
    verdict = li.verify(json.dumps(CERTIFICATES[adaptive]))
    assert verdict.accepted, verdict
    assert isinstance(verdict, li.results.BudgetVerdict)
    assert verdict.entries == ("replayed", "replayed", "recomputed", "stated")
    assert verdict.delta == DELTA
    if adaptive:
        assert verdict.epsilon == budget.epsilon
    else:
        assert budget.spent <= verdict.epsilon <= budget.spent * (1 + 1e-7)
    assert "of 4 releases together, 3 of them proved and 1 stated; recomputed" in str(verdict)
    assert verdict.unit == budget.terms.unit == fact("neighbours", adjacency="replace_one", user_records=1, records=())
    assert json.loads(json.dumps(verdict.to_dict()))["entries"] == list(verdict.entries)


@each_kind
def test_a_verdict_lists_each_assumption_once(adaptive: bool) -> None:
    verdict = li.verify(CERTIFICATES[adaptive])
    first = fact("ledger_complete"), fact("releases_adaptive", adaptive=adaptive), fact("stated_by_owner", entries=(4,))
    assert verdict.assumptions[:3] == first
    of_runs = [one for run in RUNS.values() for one in li.account(run, DELTA).assumptions]
    assert verdict.assumptions[3:] == tuple(dict.fromkeys(of_runs))
    assert len(set(verdict.assumptions)) == len(verdict.assumptions) < len(of_runs)


def test_the_assumptions_of_an_execution_are_in_the_ledger() -> None:
    """Those that no run has, and who stood for those that it has."""
    assumed = fact("collate_separate", compared="once").on(Basis.CHECKED), fact("durations_tell_nothing")
    plain = li.account(RUNS["replayed, mu"], DELTA)
    executed = replace(plain, also_assumed=assumed, basis=(("noise", Basis.ENFORCED),))
    budget = li.Budget(4.0, DELTA)
    budget.spend(executed, what="executed")
    certificate = budget.certificate
    (entry,) = certificate["entries"]
    assert facts_from_json(entry["certificate"]["assumptions"]) == executed.assumptions
    verdict = li.verify(json.dumps(certificate))
    assert verdict.accepted, verdict
    assert verdict.assumptions[-2:] == assumed
    assert fact("noise").on(Basis.ENFORCED) in verdict.assumptions
    assert fact("noise") not in verdict.assumptions
    budget.spend(plain, what="planned")  # of which nobody has enforced anything
    both = li.verify(budget.certificate).assumptions
    assert {fact("noise"), fact("noise").on(Basis.ENFORCED), *assumed} <= set(both)
    unstated = copy.deepcopy(certificate)
    unstated["entries"][0]["certificate"]["assumptions"].pop(0)
    assert "entry 1: its assumptions are not those of its run" in li.verify(sealed(unstated)).reason


def test_a_budget_is_not_about_one_run() -> None:
    verdict = li.verify(CERTIFICATES[True], RUNS["replayed, mu"])
    assert str(verdict) == "rejected: it is about a budget, and not about one run"


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """As whoever rewrites all of it would."""
    texts = [plain_text(entry) for entry in content["entries"]]
    return {**content, "digest": chained(Terms.from_dict(content["terms"]), texts)[-1]}


def smaller_curve(entry: dict[str, Any]) -> None:
    guarantee = entry["guarantee"]
    if guarantee["kind"] == "gaussian":
        guarantee["mu"] *= 0.5
    elif guarantee["kind"] == "profile":
        guarantee["deltas"] = [0.5 * one for one in guarantee["deltas"]]
    else:
        guarantee["steps"][0][0] *= 0.5


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an entry is missing": lambda content: content["entries"].pop(),
    "the first is missing": lambda content: content["entries"].pop(0),
    "the order": lambda content: content["entries"].reverse(),
    "a word": lambda content: content["entries"][0].update(what="other"),
    "a curve": lambda content: smaller_curve(content["entries"][0]),
    "the budget": lambda content: content["terms"].update(epsilon=9.0),
    "the digest": lambda content: content.update(digest="x"),
    "no digest": lambda content: content.pop("digest"),
    "no entries": lambda content: content.update(entries=None),
    "nonsense": lambda content: content["entries"].append(3),
}


@each_kind
@pytest.mark.parametrize("name", CHANGES)
def test_edits_are_noticed(adaptive: bool, name: str) -> None:
    content = copy.deepcopy(CERTIFICATES[adaptive])
    CHANGES[name](content)
    assert not li.verify(content).accepted


def other_run(entry: dict[str, Any]) -> None:
    entry["certificate"]["run"]["noise"]["std"] = 0.01


SEALED: dict[str, tuple[bool, Callable[[dict[str, Any]], Any]]] = {
    "claim less than the entries make": (
        False,
        lambda content: content["claim"].update(epsilon=0.9 * BUDGETS[False].spent),
    ),
    "claim what is spent of an adaptive budget": (
        True,
        lambda content: content["claim"].update(epsilon=BUDGETS[True].spent),
    ),
    "claim another delta": (False, lambda content: content["claim"].update(delta=1e-9)),
    "claim other neighbours": (False, lambda content: content["claim"].update(unit=li.ZERO_OUT.unit().to_dict())),
    "claim to protect users": (False, lambda content: content["claim"]["unit"].update(user_records=2)),
    "claim it of one person": (False, lambda content: content["claim"]["unit"].update(records=[0])),
    "claim that a program stands for it": (False, lambda content: content["claim"]["unit"].update(basis="enforced")),
    "a smaller budget than was spent": (
        True,
        lambda content: [content["terms"].update(epsilon=0.5), content["claim"].update(epsilon=0.5)],
    ),
    "a smaller mu is charged": (True, lambda content: content["entries"][1].update(mu=0.01)),
    "no slack is charged": (True, lambda content: content["entries"][3].update(slack=0.0)),
    "a negative slack": (True, lambda content: content["entries"][3].update(slack=-1e-6)),
    "a smaller epsilon is shown": (True, lambda content: content["entries"][0].update(epsilon=0.01)),
    "replayed with a smaller curve": (False, lambda content: smaller_curve(content["entries"][0])),
    "a profile with a smaller curve": (False, lambda content: smaller_curve(content["entries"][1])),
    "sampled with a smaller curve": (False, lambda content: smaller_curve(content["entries"][2])),
    "a curve of another kind": (
        False,
        lambda content: content["entries"][2].update(guarantee={"kind": "gaussian", "mu": 0.01}),
    ),
    "a certificate of a run with less noise": (False, lambda content: other_run(content["entries"][0])),
    "an entry twice": (True, lambda content: content["entries"].append(content["entries"][0])),
    "other neighbours": (True, lambda content: content["entries"][0].update(adjacency="zero_out")),
    "a budget as an entry": (True, lambda content: content["entries"][0].update(certificate=CERTIFICATES[True])),
}


@pytest.mark.parametrize("name", SEALED)
def test_who_rewrites_the_chain_still_cannot_make_an_entry_smaller(name: str) -> None:
    adaptive, change = SEALED[name]
    content = copy.deepcopy(CERTIFICATES[adaptive])
    change(content)
    verdict = li.verify(sealed(content))
    assert not verdict.accepted
    assert verdict.reason


def test_a_rewritten_ledger_that_forgets_an_entry_is_another_ledger() -> None:
    """It verifies, as nothing in it says what is missing: but its digest is not the one that was kept elsewhere."""
    content = copy.deepcopy(CERTIFICATES[True])
    content["entries"].pop()
    content = sealed(content)
    assert li.verify(content).accepted
    assert content["digest"] != BUDGETS[True].digest


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["budget", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    team, run, proof = (str(tmp_path / name) for name in ("team.sqlite", "run.toml", "proof.json"))
    li.write_run(RUNS["replayed, mu"], run)
    assert said(capsys, team)[0] == 2
    code, out, _ = said(capsys, team, "--create", "--epsilon", "0.8", "--delta", "1e-5", "--dataset", "patients")
    assert (code, out.splitlines()[0]) == (
        0,
        "Budget: epsilon = 0.8 at delta = 1e-05 (replace one record, data set patients)",
    )
    code, out, _ = said(capsys, team, "--would", run, "--json")
    would = json.loads(out)["would"]
    assert (code, json.loads(out)["entries"]) == (0, [])
    code, out, _ = said(capsys, team, "--spend", run, "--what", "March", "--who", "ann", "--certificate", proof)
    assert (code, out.splitlines()[0]) == (0, "Recorded as no. 1: March")
    assert "March (ann), by " in out
    assert main(["verify", proof]) == 0
    assert "of 1 releases together" in capsys.readouterr().out
    code, out, _ = said(capsys, team, "--json")
    assert (code, json.loads(out)["spent"]) == (0, pytest.approx(would, rel=1e-7))
    codes = {said(capsys, team, "--spend", run, "--what", "again")[0] for _ in range(4)}
    code, out, err = said(capsys, team, "--spend", run, "--what", "again")
    assert codes <= {0, 2}
    assert (code, out) == (2, "")
    assert err.startswith("lastiterate: the budget is epsilon = 0.8 at delta = 1e-05; ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--epsilon", "3"], "--epsilon is fixed when a budget is created. Use it with --create only."),
        (["--create", "--epsilon", "3"], "--create needs --epsilon and --delta. Got no --delta."),
        (
            ["--create", "--epsilon", "3", "--delta", "1e-5", "--adjacency", "none"],
            "adjacency must be one of replace_one, zero_out, add_or_remove_one. Got 'none'.",
        ),
    ],
)
def test_bad_options(arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, str(tmp_path / "x.sqlite"), *arguments) == (2, "", f"lastiterate: {sentence}\n")
    assert list(tmp_path.iterdir()) == []
