"""A run remembers that it was described in passes over the data."""

from __future__ import annotations

import pickle
from dataclasses import replace

import lastiterate as li
from raising import raises

SMALL, LARGE = li.Cyclic(records=600, batch_size=15), li.Cyclic(records=600, batch_size=60)


def run_of(steps: object, step_size: object = 0.1) -> li.Run:
    return li.Run(
        loss=li.losses.logistic(feature_norm=1.0),
        batches=SMALL,
        step_size=step_size,
        noise=li.OnMeanGradient(std=0.1),
        steps=steps,  # type: ignore[arg-type]
    )


def test_other_batches_keep_the_epochs_of_a_run_in_epochs_and_the_steps_of_one_in_steps() -> None:
    assert replace(run_of(li.epochs(3)), batches=LARGE).steps == 30
    assert replace(run_of(120), batches=LARGE).steps == 120


def test_steps_that_are_given_are_steps() -> None:
    run = run_of(li.epochs(3))
    assert replace(run, batches=LARGE, steps=run.steps).steps == 120
    assert replace(replace(run, steps=50), batches=LARGE).steps == 50


def test_schedules_follow() -> None:
    changed = replace(run_of(li.epochs(3), li.cosine(0.1)), batches=LARGE)
    assert changed == replace(run_of(30, li.cosine(0.1)), batches=LARGE)


def test_the_first_epochs_are_epochs() -> None:
    run = run_of(li.epochs(3))
    assert replace(run.first(80), batches=LARGE).steps == 20
    assert replace(run.first(81), batches=LARGE).steps == 81
    assert replace(pickle.loads(pickle.dumps(run)), batches=LARGE).steps == 30


def test_as_many_steps_are_the_same_run() -> None:
    assert run_of(li.epochs(3)) == run_of(120)
    assert hash(run_of(li.epochs(3))) == hash(run_of(120))


def test_a_length_is_needed() -> None:
    with raises("steps_missing", "steps", kind=li.errors.InvalidInput) as caught:
        li.Run(run_of(1).loss, SMALL, 0.1, li.OnMeanGradient(std=0.1))
    assert caught.value.field == "steps"
