"""The book of a training that another loop executes: what is charged, what leaks, how it ends, what it was planned to be."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler

import lastiterate as li
from lastiterate.errors import worded
from lastiterate.facts import fact
from lastiterate.torch import loader
from lastiterate.torch.checkpoint import ReleaseEntry, Releases
from lastiterate.torch.recording import Recording, StopAtBudget
from lastiterate.torch.trainer import Planned
from raising import raises
from recorded import DELTA, RUN

EVERY = fact("every_iterate_released")


def recording(run: li.Run = RUN, **options: Any) -> Recording:
    return Recording(
        run, **{"public": ["val_*"], "inside": ["*.ckpt", "loss"], "releases": None, "stop": None, **options}
    )


def test_metrics_are_charged_kept_inside_or_leaks() -> None:
    book = recording()
    book.metric("val_loss", [5])
    book.metric("loss", [5])
    with pytest.warns(
        li.errors.PrivacyLeak, match=re.escape(worded("leak_recorded", what="accuracy, reported to wandb"))
    ):
        book.metric("accuracy", [5, 6], "reported to wandb")
    book.taken = 20
    assert book.releases.charged == [ReleaseEntry(5, "val_loss")]
    assert book.releases.inside == [ReleaseEntry(5, "loss")]
    report = book.report(DELTA)
    assert report.epsilon == li.account(RUN, DELTA, [5]).epsilon > li.account(RUN, DELTA).epsilon
    assert report.caveats == (fact("leaked", what=(("accuracy, reported to wandb", (5, 6)),)),)
    assert str(report.caveats[0]) == (
        "DO NOT RELEASE: accuracy, reported to wandb (after 5, 6 steps) came from the records without noise, and no theorem "
        "covers that"
    )
    assert fact("kept_inside", what=(("loss", (5,)),)) in report.promises
    assert [one.code for one in report.also_assumed[:3]] == [
        "loop_follows_run",
        "nothing_outside_logs",
        "metrics_public",
    ]
    assert report.promises == report.assumptions  # a callback enforces nothing
    assert "Nobody else sees loss (after 5 steps)." in report.details()


def test_what_is_public_and_inside_is_charged() -> None:
    book = recording(public=["val_*"], inside=["*"])
    book.metric("val_loss", [5])
    assert not book.releases.inside
    assert book.releases.steps == (5,)


def test_an_end_that_nobody_planned_is_told() -> None:
    book = recording()
    book.taken = 12
    report = book.report(DELTA)
    assert report.run.steps == 12
    assert report.caveats == (fact("stopped_early", taken=12, planned=20),)
    assert str(report).startswith("DO NOT RELEASE: the training stopped after 12 of 20 steps")
    with raises("no_step_recorded", kind=li.errors.Unavailable):
        recording().report(DELTA)


def test_an_end_by_public_numbers_costs_what_the_whole_run_could() -> None:
    book = recording()
    book.watch("EarlyStopping", "val_loss")
    for book.taken in (4, 8, 12):
        book.metric("val_loss", [book.taken])
    assert book.report(DELTA).caveats  # an exception, perhaps: the loop did not say that this is its end
    book.ended = True
    report = book.report(DELTA)
    assert report.caveats == ()
    assert report.run.steps == 20
    assert report.releases == (4, 8, *range(12, 20))
    assert report.epsilon > li.account(RUN, DELTA, [4, 8, 12, 16]).epsilon


def test_choices_by_private_numbers_are_refused() -> None:
    with raises("chosen_by_records", "public", by="EarlyStopping", metric="loss", chosen="end"):
        recording().watch("EarlyStopping", "loss")
    with raises("chosen_by_records", "public", by="ModelCheckpoint", metric="loss", chosen="files"):
        recording().choose("ModelCheckpoint", "loss", "best.pt")
    recording().choose("ModelCheckpoint", "loss", "best.ckpt")


def test_the_memory_of_an_optimiser_costs_every_iterate() -> None:
    run = replace(RUN, steps=60, optimizer=li.SGD(momentum=0.3))
    plain, whole = recording(run, inside=()), recording(run, inside=())
    for book, memory in ((plain, False), (whole, True)):
        book.taken = 60
        assert book.checkpoint(60, "last.ckpt", memory=memory)
    every = li.account(run, DELTA).epsilon_all_released
    assert plain.report(DELTA).epsilon < whole.report(DELTA).epsilon == every
    assert EVERY in whole.report(DELTA).assumptions
    assert EVERY not in plain.report(DELTA).assumptions


def test_iterates_are_not_averages() -> None:
    book = recording(replace(RUN, released=li.EMA(0.5)))
    book.taken = 20
    assert EVERY not in book.report(DELTA).assumptions
    book.charge(20, "weights")  # not the average, which the run says is released
    assert EVERY in book.report(DELTA).assumptions


def test_a_budget_ends_a_training_at_a_step_that_is_known_before() -> None:
    target = li.account(RUN.first(12), DELTA, [5]).epsilon * 1.001
    book = recording(stop=StopAtBudget(target, DELTA, [5]))  # type: ignore[arg-type]
    assert 9 <= book.limit < 14
    book.charge(5, "weights")
    with raises("release_not_in_budget", "releases", what="weights", step=6):
        book.charge(6, "weights")
    book.taken = book.limit
    report = book.report(DELTA)
    assert report.caveats == ()
    assert report.epsilon <= target < li.account(RUN.first(book.limit + 1), DELTA, [5]).epsilon * 1.01
    with raises("trainer_goes_on", "steps", steps=book.limit):
        book.check_room(book.limit)


def test_a_book_goes_on_where_it_was() -> None:
    first = recording()
    first.taken = 8
    first.charge(6, "weights")
    with raises("steps_not_recorded", "releases", steps=8):
        recording().begin(8)
    later = recording()
    later.go_on(first.state)
    later.begin(8)
    assert later.releases == first.releases
    assert not later.caveats[1:]
    recording(releases=Releases()).begin(8)
    with raises("recording_used", kind=li.errors.InvalidInput, steps=8):
        later.begin(0)
    later.begin(4)  # steps 5 to 8 are taken again, with new noise
    assert later.caveats[1] == fact("leaked", what=((worded("steps_taken_again"), (4,)),))


@pytest.mark.parametrize(
    ("field", "options"), [("public", {"public": [3]}), ("inside", {"inside": [""]}), ("releases", {"releases": [5]})]
)
def test_bad_declarations_are_refused(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(li.errors.InvalidInput) as caught:
        recording(**options)
    assert caught.value.field == field


SHUFFLED, CYCLIC = li.Shuffled(32, 8), li.Cyclic(32, 8)
UNEVEN, CUT = li.Shuffled(32, 12, last="smaller"), li.Shuffled(32, 12, last="drop")


def plain(size: int, shuffle: bool, drop: bool = False) -> DataLoader[Any]:
    return DataLoader(list(range(32)), batch_size=size, shuffle=shuffle, drop_last=drop)  # type: ignore[arg-type]


def repeating(size: int) -> DataLoader[Any]:
    data: Any = list(range(32))
    return DataLoader(data, batch_size=size, sampler=RandomSampler(data, replacement=True))


def shared(size: int, devices: int, shuffle: bool) -> DataLoader[Any]:
    data: Any = list(range(32))
    return DataLoader(data, batch_size=size, sampler=DistributedSampler(data, devices, 0, shuffle=shuffle))


@pytest.mark.parametrize(
    ("batches", "planned"),
    [
        (RUN.batches, (plain(32, False), 1, 1)),
        (SHUFFLED, (plain(8, True), 1, 1)),
        (SHUFFLED, (plain(2, True), 2, 2)),
        (CYCLIC, (plain(8, False), 1, 1)),
        (SHUFFLED, (shared(2, 4, True), 1, 4)),
        (UNEVEN, (plain(4, True), 3, 1)),
        (CUT, (plain(12, True, True), 1, 1)),
        (li.Poisson(32, 0.25), (loader(list(range(32)), replace(RUN, batches=li.Poisson(32, 0.25))), 1, 1)),
    ],
)
def test_loaders_that_do_as_the_run_says(batches: Any, planned: tuple[Any, int, int]) -> None:
    Planned(20, *planned).check(replace(RUN, batches=batches))


def used(size: int, order: str, accumulated: int = 1, devices: int = 1) -> dict[str, Any]:
    """By a step of a trainer."""
    return {"size": size, "order": order, "accumulated": accumulated, "devices": devices}


@pytest.mark.parametrize(
    ("batches", "planned", "code", "values"),
    [
        (SHUFFLED, (21, plain(8, True), 1, 1), "trainer_steps_differ", {"steps": 20, "planned": 21}),
        (li.Shuffled(33, 11), (20, plain(11, True), 1, 1), "dataset_length_differs", {"records": 33, "length": 32}),
        (SHUFFLED, (20, plain(8, True), 2, 1), "trainer_batches_differ", used(8, "random", accumulated=2)),
        (SHUFFLED, (20, plain(8, True), 1, 4), "trainer_batches_differ", used(8, "random", devices=4)),
        (SHUFFLED, (20, shared(2, 4, False), 1, 4), "trainer_batches_differ", used(2, "fixed", devices=4)),
        (
            li.Shuffled(32, 12, last="smaller"),
            (20, shared(4, 3, True), 1, 3),
            "records_used_twice",
            {"devices": 3, "records": 32},
        ),
        (SHUFFLED, (20, plain(8, False), 1, 1), "trainer_batches_differ", used(8, "fixed")),
        (CYCLIC, (20, plain(8, True), 1, 1), "trainer_batches_differ", used(8, "random")),
        (li.Poisson(32, 0.25), (20, plain(8, True), 1, 1), "trainer_batches_differ", used(8, "random")),
        (li.FixedSize(32, 8), (20, plain(8, True), 1, 1), "trainer_batches_differ", used(8, "random")),
        (RUN.batches, (20, plain(8, False), 1, 1), "trainer_batches_differ", used(8, "fixed")),
        (RUN.batches, (20, repeating(32), 1, 1), "trainer_batches_differ", used(32, "no passes")),
        (UNEVEN, (20, plain(12, True, True), 1, 1), "dropped_records_differ", {"dropped": 8, "planned": 0}),
        (CUT, (20, plain(12, True), 1, 1), "dropped_records_differ", {"dropped": 0, "planned": 8}),
        (
            SHUFFLED,
            (20, loader(list(range(32)), RUN), 1, 1),
            "sampler_batches_differ",
            {"drawn": "every step on all 32 records"},
        ),
    ],
)
def test_loaders_that_do_otherwise(
    batches: Any, planned: tuple[Any, Any, int, int], code: str, values: dict[str, Any]
) -> None:
    with raises(code, kind=li.errors.InvalidInput, **values) as caught:
        Planned(*planned).check(replace(RUN, batches=batches))
    assert caught.value.values.get("batches", batches.described) == batches.described


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (used(8, "random", accumulated=2), "uses 8 × 2 accumulated records in random order. "),
        (used(2, "fixed", 3, 4), "uses 2 × 3 accumulated × 4 devices records in a fixed order. "),
        (used(32, "no passes"), "uses 32 records drawn anew, not in passes. "),
    ],
)
def test_what_a_step_of_a_trainer_uses_is_said(told: dict[str, Any], said: str) -> None:
    assert said in worded("trainer_batches_differ", field="batches", batches="all", **told)


class Drawn(Sampler[list[int]]):
    """As the sampler of Opacus, which takes seconds to load, tells of itself."""

    sample_rate = 0.25


def test_batches_of_opacus_have_a_rate() -> None:
    drawn = DataLoader(list(range(32)), batch_sampler=Drawn())  # type: ignore[arg-type]
    run = replace(RUN, batches=li.Poisson(32, 0.25))
    Planned(20, drawn, 1, 1).check(run)
    other = li.Poisson(32, 0.2)
    with raises("loader_rate_differs", "batches", rate=0.25, batches=other.described):
        Planned(20, drawn, 1, 1).check(replace(RUN, batches=other))
    with raises("poisson_batches_accumulated", "batches", accumulated=2):
        Planned(20, drawn, 2, 1).check(run)
