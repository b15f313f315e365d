"""What would be cheaper: only where the price is nearly composition, with numbers that `account` confirms."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lastiterate as li
from lastiterate.accounting import alternatives
from lastiterate.digits import above
from lastiterate.runs import kinds
from lastiterate.runs.files import run_from_dict, run_to_dict
from lastiterate.runs.losses import Loss

NETWORK = li.losses.network(clip=1.0)
SHUFFLED = li.Run(NETWORK, li.Shuffled(6000, 250), 0.1, li.OnGradientSum(1.1, 1.0), li.epochs(5))
CONVEX = li.losses.logistic(feature_norm=1.0)
RUNS = {
    "shuffled network": SHUFFLED,
    "zero-out": replace(SHUFFLED, adjacency=li.ZERO_OUT),
    "cyclic network": replace(SHUFFLED, batches=li.Cyclic(6000, 250)),
    "smooth network, long steps": replace(SHUFFLED, loss=li.losses.network(clip=1.0, smoothness=20.0), step_size=0.5),
    "logistic, too long steps": replace(SHUFFLED, loss=CONVEX, step_size=12.0),
    "full, convex": li.Run(CONVEX, li.FullBatch(4000), 0.5, li.OnMeanGradient(0.01), 5000),
    "full, clipped": li.Run(CONVEX, li.FullBatch(4000), 0.5, li.OnGradientSum(10.0, 0.5), 5000),
    "noise on the iterate": replace(SHUFFLED, loss=CONVEX, step_size=12.0, noise=li.OnIterate(std=0.1)),
    "Poisson, no such neighbours elsewhere": replace(
        SHUFFLED, batches=li.Poisson(6000, 1 / 24), adjacency=li.ADD_OR_REMOVE_ONE
    ),
    "many steps": li.Run(NETWORK, li.Shuffled(10**6, 10), 0.1, li.OnGradientSum(1.1, 1.0), li.epochs(1)),
    "checkpoints": SHUFFLED,
}


@pytest.mark.parametrize("name", RUNS)
def test_each_is_another_run_that_costs_less(name: str) -> None:
    """The same neighbours, steps and noise per step, one thing changed, and an ε that `account` is never above.

    Zero-out instead of replace-one would cost half, and is another claim: it is never offered.
    """
    run, releases = RUNS[name], [30] if name == "checkpoints" else []
    report = li.account(run, 1e-5, releases)
    found = report.alternatives
    assert [one.epsilon for one in found] == sorted(one.epsilon for one in found)
    for one in found:
        assert one.run.adjacency is run.adjacency
        assert one.run.steps == run.steps
        changed = [field for field in run.__dataclass_fields__ if getattr(run, field) != getattr(one.run, field)]
        assert changed in (["batches"], ["step_size"], ["step_size", "noise"], ["loss"], ["weight_decay"], ["domain"])
        assert one.epsilon <= 0.8 * report.epsilon
        if run.steps < 10**4:
            assert li.account(one.run, 1e-5, releases).epsilon <= one.epsilon
        if "step_size" in changed or "batches" in changed:
            kept = (one.run.process.noise / one.run.process.sensitivity)[0]
            assert kept == pytest.approx((run.process.noise / run.process.sensitivity)[0])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shuffled network", ["Poisson batches", "random batches of 250"]),
        ("zero-out", ["Poisson batches"]),
        ("cyclic network", ["Poisson batches", "random batches of 250"]),
        ("smooth network, long steps", ["Poisson batches", "step_size 0.0"]),
        ("logistic, too long steps", ["Poisson batches", "step_size 7.92 and the same noise multiplier"]),
        ("noise on the iterate", ["step_size 7.92 and the same noise multiplier"]),
        ("full, convex", ["clipped at 0.5", "weight_decay (or l2) 0.0025"]),
        ("full, clipped", ["weight_decay (or l2) 0.0025"]),
    ],
)
def test_the_page_says_it_with_numbers(name: str, said: list[str]) -> None:
    report = li.account(RUNS[name], 1e-5)
    page = report.details()
    section = " ".join(page.split("Changes that lower ε")[1].split())
    for one in report.alternatives:
        assert f": ε = {above(one.epsilon)} ({one.theorem})" in str(one)
        assert str(one) in section
    for words in said:
        assert words in section
    assert max(map(len, page.splitlines())) <= 110
    assert "report.alternatives" in str(report)


@pytest.mark.parametrize("loss", [kind.example for kind in kinds.LOSSES], ids=lambda loss: loss.kind)
def test_what_is_offered_can_be_written_down(loss: Loss) -> None:
    report = li.account(li.Run(loss, li.FullBatch(100), 0.1, li.OnMeanGradient(0.1), 500), 1e-5)
    for one in report.alternatives:
        assert run_from_dict(run_to_dict(one.run)) == one.run
        assert one.run.adjacency is li.REPLACE_ONE


def test_nothing_is_said_where_hiding_the_iterates_helps() -> None:
    report = li.account(replace(SHUFFLED, loss=li.losses.logistic(feature_norm=1.0, l2=0.01), step_size=0.5), 1e-5)
    assert report.epsilon_all_released > 2 * report.epsilon
    assert report.alternatives == ()
    assert "Changes that lower ε" not in report.details()
    assert "report.alternatives" not in str(report)
    once = li.Run(NETWORK, li.FullBatch(1000), 0.1, li.OnGradientSum(1.1, 1.0), 1)
    assert li.account(once, 1e-5).alternatives == ()


def test_other_batches_are_those_that_use_a_record_as_often() -> None:
    """Balls and bins only where a record is there or not: nothing is proved of them if it is replaced."""
    for run in (SHUFFLED, RUNS["zero-out"]):
        found = {type(one.run.batches): one.run.batches for one in li.account(run, 1e-5).alternatives}
        assert found[li.Poisson] == li.Poisson(6000, 250 / 6000)
        assert found.get(li.BallsAndBins) == (None if run.adjacency.replaces else li.BallsAndBins(6000, 24))


def test_a_run_with_adam_is_offered_plain_steps() -> None:
    assert list(alternatives._without_optimizer(SHUFFLED)) == []
    run = replace(SHUFFLED, loss=CONVEX, step_size=0.5, optimizer=li.Adam())
    assert any(one.change == "with_plain_steps" for one in li.account(run, 1e-5).alternatives)


def test_they_are_computed_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "cheaper", lambda _: pytest.fail("nobody asked"))
    report = li.account(SHUFFLED, 1e-5)
    assert str(report)
    assert report._repr_html_()
    assert report.to_json()
