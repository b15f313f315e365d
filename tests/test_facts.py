"""Facts: each kind has a sentence and survives JSON, and each code of a theorem has words."""

from __future__ import annotations

import json

import pytest

import lastiterate as li
from lastiterate.facts import KINDS, Fact, fact, fact_from_json, facts_from_json, facts_to_json, own
from lastiterate.report.english import refusals, words
from lastiterate.theorems.features import FEATURES, Assumption
from lastiterate.theorems.papers.asoodeh2023 import _LARGEST_RATIO, SOME_REACH
from lastiterate.theorems.reflection import _WIDEST, REFLECTION
from lastiterate.theorems.window_tail import FORGOTTEN_BY_CHANCE

EXAMPLES = {code: fact(code, **kind.values) for code, kind in KINDS.items()}
THEOREMS = (*li.theorems.ALL, FORGOTTEN_BY_CHANCE)
ASSUMED = {one.code for theorem in THEOREMS for one in theorem.assumptions}
REFUSALS = list(KINDS)[list(KINDS).index("own") :]  # from there on, facts say why a theorem does not apply


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_has_a_sentence_with_its_values(code: str) -> None:
    said = str(EXAMPLES[code])
    assert said.strip() == said != ""
    assert "{" not in said
    assert "None" not in said


def test_there_is_no_sentence_for_what_is_no_kind() -> None:
    assert set(words.SENTENCES) == set(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_survives_json(code: str) -> None:
    given = EXAMPLES[code].on(KINDS[code].most)
    assert fact_from_json(json.loads(json.dumps(given.to_dict()))) == given
    assert facts_from_json(json.loads(json.dumps(facts_to_json([given, given])))) == (given, given)


def test_a_fact_may_be_the_reason_of_another() -> None:
    given = fact("not_contracting", because=fact("smoothness_unknown"))
    assert given.to_dict() == {"code": "not_contracting", "because": {"code": "smoothness_unknown"}}
    assert str(given).endswith("; the smoothness of the loss is unknown. Give the loss its smoothness")
    for because in ("it is unknown", None, {"code": "unheard of"}, [{"code": "smoothness_unknown"}]):
        with pytest.raises(li.errors.InvalidInput):
            fact_from_json({"code": "not_contracting", "because": because})


@pytest.mark.parametrize("code", REFUSALS)
def test_reasons_can_be_read_after_a_colon(code: str) -> None:
    """They begin with a small letter, but for a name, and the full stop is set by whoever joins them."""
    said = str(EXAMPLES[code])
    assert said[0].islower() or code in ("adam", "adamw", "optimizer_named")
    assert not said.endswith(".")


def test_every_assumption_and_feature_has_words_and_there_are_no_others() -> None:
    features = {one.code for one in FEATURES}
    assert features == set(refusals._FEATURES)
    assert set(refusals._ASSUMPTIONS) == ASSUMED
    assert not features & ASSUMED
    assert len(features) == len(FEATURES) == len({one.name for one in FEATURES})
    for theorem in THEOREMS:
        assert all(one.statement for one in theorem.assumptions)
        assert len({one.code for one in theorem.assumptions}) == len(theorem.assumptions)


def test_numbers_in_the_words_of_assumptions_are_those_of_the_theorems() -> None:
    assert f"within {_LARGEST_RATIO:g} times the noise" in SOME_REACH.statement
    narrow = next(one for one in REFLECTION.assumptions if one.code == "narrow_domain")
    assert f"at most {_WIDEST:g} times as wide as the noise" in narrow.statement


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (
            [fact("lacks", what="bounded_domain")],
            "needs a bounded domain; this run has none. Use domain=li.Ball(radius=...)",
        ),
        (
            [fact("lacks", what="clipped_gradients"), fact("lacks", what="weight_decay")],
            "needs clipped gradients and weight decay; this run has neither",
        ),
        (
            [
                fact("lacks", what="clipped_gradients"),
                fact("not_two_batches"),
                fact("lacks", what="weight_decay"),
                fact("lacks", what="dimension"),
            ],
            "needs clipped gradients, weight decay and a stated number of parameters; this run has none of these. Use "
            "domain=li.Unbounded(dimension=...), without prox. Needs at least two batches per epoch; this run has one",
        ),
        (
            [fact("not_covered", feature="checkpoints"), fact("releases_more", checkpoints=1)],
            "does not cover checkpoints. Covers the release of the last iterate alone; this run also releases 1 checkpoint",
        ),
    ],
)
def test_what_a_run_lacks_is_told_in_one_sentence(reasons: list[Fact], said: str) -> None:
    assert refusals.one_text(reasons) == said
    assert str(li.theorems.Inapplicable(REFLECTION, tuple(reasons))) == f"reflection does not apply: {said}."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "step_size 0.5 and a Hessian between 0 and 1 give a Lipschitz constant of 1.5"),
        (
            {"clipping": True},
            "step_size 0.5, a Hessian between 0 and 1 and clipping (which loses convexity) give a Lipschitz constant of 1.5",
        ),
        (
            {"decay": 0.1, "largest_share": 1.9, "unusual_apart": True, "step_size_below": 0.25},
            "step_size 0.5, a Hessian between 0 and 1, l2 or weight_decay 0.1 and all but unusual batches of up to 1.9 "
            "times the expected size give a Lipschitz constant of 1.5. Use step_size < 0.25",
        ),
    ],
)
def test_where_a_lipschitz_constant_comes_from(change: dict[str, float], said: str) -> None:
    values = {**KINDS["lipschitz_constant"].values, "lipschitz": 1.5, **change}
    assert str(fact("lipschitz_constant", **values)) == said


def test_the_report_holds_reasons_as_facts() -> None:
    run = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(records=100), 0.1, li.OnIterate(std=0.1), 20)
    report = li.account(run, delta=1e-5)
    written = json.loads(report.to_json())["inapplicable"]
    assert [one["theorem"] for one in written] == [one.theorem.name for one in report.inapplicable]
    assert [facts_from_json(one["reasons"]) for one in written] == [one.reasons for one in report.inapplicable]
    refused = {one["theorem"]: one["reasons"] for one in written}
    assert refused["block-mixing"] == [{"code": "lacks", "what": "bounded_domain"}]


def test_an_assumption_in_ones_own_words_refuses_in_them() -> None:
    long = Assumption.own("at least 500 steps", lambda process: f"needs 500 steps; this run has {len(process)}")
    also = Assumption.own("a bounded domain", lambda process: fact("lacks", what="bounded_domain"))
    fine = Assumption.own("nothing", lambda process: None)
    given = li.Run(
        li.losses.logistic(feature_norm=1.0), li.FullBatch(records=100), 0.1, li.OnIterate(std=0.1), 20
    ).process
    assert (long.statement, repr(long)) == ("at least 500 steps", "Assumption('at least 500 steps')")
    assert long.failure(given) == own("needs 500 steps; this run has 20")
    assert also.failure(given) == fact("lacks", what="bounded_domain")
    assert fine.failure(given) is None
    assert len({long, also, fine}) == 3
