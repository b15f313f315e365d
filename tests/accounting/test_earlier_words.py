"""Certificates whose assumptions are in the words of earlier versions."""

from __future__ import annotations

import pytest

import lastiterate as li
from lastiterate.accounting.earlier_words import in_todays_words

RUNS = {
    "zero-out, momentum, beforehand": li.Run(
        li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_norm=1.0),
        li.Cyclic(records=40, batch_size=10),
        0.1,
        li.OnMeanGradient(std=0.5),
        8,
        optimizer=li.SGD(momentum=0.9),
        adjacency=li.ZERO_OUT,
        beforehand_mu=0.3,
    ),
    "prepayment": li.Run(
        li.losses.logistic(feature_norm=1.0), li.Cyclic(records=40, batch_size=10), 0.1, li.OnMeanGradient(std=0.5), 8
    ),
    "users": li.Run(
        li.losses.network(clip=1.0),
        li.Poisson(records=40, rate=0.1),
        0.1,
        li.OnGradientSum(multiplier=1.0, clip=1.0),
        8,
        adjacency=li.ADD_OR_REMOVE_ONE,
        user_records=2,
    ),
}
EARLIER = {
    "zero-out, momentum, beforehand": {
        0: "Two data sets are neighbours if one record of the first contributes nothing in the second: no gradient, and its "
        "slot stays. The number of records, the sizes of batches and what sums are divided by are public.",
        1: "What was released beforehand about these records is mu-GDP with mu at most 0.3, under the same neighbours, and "
        "includes everything that training was chosen by: how features were prepared, hyperparameters, the first iterate. "
        "Whatever came out of it, all that is assumed of training holds.",
        2: "Only the last iterate is released. Nothing else that was computed from the data is released: no other iterate, "
        "no metric or stopping time, no choice of hyperparameters by looking at it, but for what was released beforehand.",
        3: "The first iterate depends on the data through what was released beforehand alone, and lies in the domain.",
        6: "The update (momentum 0.9) sees the data through the noisy gradients alone, and whatever it remembers starts "
        "from values that do not depend on the data.",
        7: "The bound on gradients holds wherever the optimiser may go, also where earlier noisy gradients have led it.",
        8: "Batches do not depend on what was computed before: which records are drawn next, no gradient decides.",
        9: "What sums are divided by, all schedules and the number of steps are public and do not depend on the data.",
    },
    "prepayment": {
        1: "Only the last iterate is released. Nothing else that was computed from the data is released: no other iterate, "
        "no metric or stopping time, no choice of hyperparameters by looking at it.",
        4: "The noise is Gaussian, fresh at every step and coordinate, from a generator nobody can predict.",
        7: "A record has the same features and target at each of its turns: no augmentation changes them.",
    },
    "users": {
        0: "Two data sets are neighbours if they differ in records of one user, anywhere in the data: each may be added or "
        "removed; what sums are divided by is public and does not depend on the number of records. No user has more than 2 "
        "records.",
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_they_are_accepted_and_shown_in_todays_words(name: str) -> None:
    report = li.account(RUNS[name], 1e-5)
    certificate = report.certificate
    for at, sentence in EARLIER[name].items():
        assert certificate["assumptions"][at] != sentence
        certificate["assumptions"][at] = sentence
    verdict = li.verify(certificate)
    assert verdict.accepted, verdict
    assert verdict.assumptions == report.assumptions


@pytest.mark.parametrize("name", RUNS)
def test_other_sentences_are_not(name: str) -> None:
    certificate = li.account(RUNS[name], 1e-5).certificate
    for at, sentence in EARLIER[name].items():
        changed = {**certificate, "assumptions": list(certificate["assumptions"])}
        changed["assumptions"][at] = sentence.replace("no", "some").replace("the", "some").replace("record", "thing")
        assert not li.verify(changed).accepted


def test_what_is_not_a_list_of_sentences_stays() -> None:
    assert in_todays_words(None) is None
    assert in_todays_words([1, {}]) == [1, {}]


def test_a_start_at_zero_is_not_taken_for_one_near_it() -> None:
    assert in_todays_words(["The first iterate has norm at most 0."]) == ["Training starts at zero."]
    assert in_todays_words(["The first iterate has norm at most 0.5."]) == ["The first iterate has norm at most 0.5."]
