"""The label: every field of the registries, filled by the certificate, by the owner, or "not stated"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from reports import REPORTS, saved

import lastiterate as li
from lastiterate.report import english

# Of deployments-schema.yaml of the registry of deployments, at its commit 3e9c812.
REGISTRY = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date "
    "data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
    "data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
NIST = (
    "privacy_parameters unit_of_privacy mechanisms_and_algorithms utility bias trust_model security access_control "
    "data_collection_exposure"
)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    else:
        yield value


def test_it_has_the_fields_of_the_registry_and_of_nist() -> None:
    label = REPORTS["replayed"].label()
    assert {group: set(fields) for group, fields in label["registry"].items()} == {
        group: set(names.split()) for group, names in REGISTRY.items()
    }
    assert set(NIST.split()) <= set(label["nist_sp_800_226"])
    assert json.loads(json.dumps(label)) == label
    assert None not in list(leaves(label))


@pytest.mark.parametrize("name", ["replayed", "poisson", "checkpoints", "trained"])
def test_what_the_certificate_says_is_filled_in(name: str) -> None:
    report = REPORTS[name]
    label = report.label()
    claim = report.certificate["claim"]
    expected = {"epsilon": claim["epsilon"], "delta": claim["delta"]}
    loss = label["registry"]["privacy_loss"]
    assert loss["privacy_parameters"] == label["nist_sp_800_226"]["privacy_parameters"] == expected
    assert loss["privacy_unit_details"] == english.definition(**dict(report.unit.values))
    assert report.best.theorem.citation in loss["privacy_parameters_details"]
    model = label["registry"]["deployment_model"]
    assert model["release_type"] == ("Many releases" if report.releases else "One release")
    rounding = "rounding is included in ε" if name == "trained" else "rounding is not included in ε"
    assert rounding in label["nist_sp_800_226"]["implementation"]
    assert label["registry"]["basic"]["name"] == "not stated"


def test_the_owner_fills_the_others() -> None:
    stated = {
        "registry": {
            "basic": {"name": "Churn", "data_curators": ["ACME", "Sons"]},
            "deployment_model": {"model_name": "X"},
        },
        "nist_sp_800_226": {"access_control": "two people"},
    }
    report = REPORTS["replayed"]
    label = report.label(stated)
    assert label["registry"]["basic"]["data_curators"] == ["ACME", "Sons"]
    assert label["registry"]["deployment_model"]["model_name"] == "X"
    assert label["nist_sp_800_226"]["access_control"] == "two people"
    assert label["registry"]["basic"]["description"] == "not stated"
    page = saved(report, stated=stated, curves=False)
    assert "<td>ACME, Sons</td>" in page
    assert li.verify(page).accepted
    assert json.loads(saved(report, "json", stated=stated))["label"] == label


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (3, "stated must be a table with registry, nist_sp_800_226. Got 3."),
        ({"regstry": {}}, "'regstry' is not a field of stated; did you mean registry."),
        ({"registry": {"basic": 1}}, "basic must be a table with name, data_curators"),
        ({"registry": {"basic": {"nam": "x"}}}, "'nam' is not a field of basic; did you mean name."),
        ({"registry": {"basic": {"name": 3}}}, "name must be a text or a list of texts. Got 3."),
        ({"registry": {"basic": {"name": []}}}, "name must be a text"),
        ({"registry": {"basic": {"name": " "}}}, "name must be a text"),
        (
            {"registry": {"privacy_loss": {"privacy_parameters": "epsilon = 0.1"}}},
            "privacy_parameters must be left out: the certificate fills it.",
        ),
        ({"nist_sp_800_226": {"privacy_parameters": "small"}}, "must be left out: the certificate fills it"),
        ({"nist_sp_800_226": {"composition": "none"}}, "must be left out: the certificate fills it"),
    ],
)
def test_nobody_states_what_is_proved_or_what_is_no_field(stated: Any, said: str) -> None:
    report = REPORTS["replayed"]
    for ask in (report.label, lambda given: report.save("/tmp/never-written.html", stated=given, curves=False)):
        with pytest.raises(li.errors.InvalidInput) as caught:
            ask(stated)
        assert said in str(caught.value)
