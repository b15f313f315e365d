"""Facts: each kind has a sentence, and survives JSON."""

from __future__ import annotations

import json

import pytest

import lastiterate as li
from lastiterate.facts import KINDS, fact, fact_from_json, facts_from_json, facts_to_json
from lastiterate.report import english

EXAMPLES = {code: fact(code, **kind.values) for code, kind in KINDS.items()}
REFUSALS = list(KINDS)[list(KINDS).index("own") :]  # from there on, facts say why a theorem does not apply


@pytest.mark.parametrize("code", KINDS)
def test_every_kind_has_a_sentence_with_its_values(code: str) -> None:
    said = str(EXAMPLES[code])
    assert said.strip() == said != ""
    assert "{" not in said
    assert "None" not in said


def test_there_is_no_sentence_for_what_is_no_kind() -> None:
    assert set(english._SENTENCES) == set(KINDS)


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
        with pytest.raises(li.InvalidInput):
            fact_from_json({"code": "not_contracting", "because": because})


@pytest.mark.parametrize("code", REFUSALS)
def test_reasons_can_be_read_after_a_colon(code: str) -> None:
    """They begin with a small letter, but for a name, and the full stop is set by whoever joins them."""
    said = str(EXAMPLES[code])
    assert said[0].islower() or code in ("adam", "adamw", "optimizer_named")
    assert not said.endswith(".")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "step_size 0.5 and a Hessian between 0 and 1 give a Lipschitz constant of 1.5"),
        (
            {"clipping": True},
            "step_size 0.5, a Hessian between 0 and 1 and clipping, which loses convexity, give a Lipschitz constant of 1.5",
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
