"""The report as a label that machines read: the fields of public registries, each filled or "not stated".

`registry` has the names of the Differential Privacy Deployments Registry (registry.opendp.org, its deployments-schema.yaml);
`nist_sp_800_226` has a field for each factor that NIST SP 800-226 asks about.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

from lastiterate.certificate.certificate import proved_by
from lastiterate.certificate.claims import at_their_places, released
from lastiterate.curves.notion import Notion
from lastiterate.digits import above
from lastiterate.errors import InvalidInput, must_be, shown
from lastiterate.facts import Fact, facts_from_json
from lastiterate.report import english
from lastiterate.report.messages.runs import did_you_mean
from lastiterate.report.text import described, refusals
from lastiterate.runs.files import run_from_dict
from lastiterate.runs.named import closest
from lastiterate.runs.noise import EXACT
from lastiterate.runs.run import Run
from lastiterate.theorems.catalogue import ALL

FORMAT = "lastiterate label 1"
NOT_STATED = "not stated"
Fields = dict[str, Any]


def label_of(claimed: Claimed, by: str, stated: Fields | None = None) -> Fields:
    """Return the label: fields that the certificate fills, which stay, and others, which the owner may state."""
    proved, usual = _proved(claimed, by), _usual(claimed)
    given = _checked_statement(stated or {}, proved)
    return {"format": FORMAT} | {
        section: {
            group: _filled(
                fields, proved[section].get(group), given.get(section, {}).get(group), usual[section].get(group)
            )
            for group, fields in groups.items()
        }
        for section, groups in FIELDS.items()
    }


def report_label(certificate: Fields, stated: Fields | None) -> Fields:
    """Return the label of a certificate by this version of the library."""
    return label_of(Claimed(deepcopy(certificate)), version("lastiterate"), stated)


def _filled(fields: Any, *sources: Any) -> Any:
    """Fill each field from the first source that has it."""
    if fields is None:
        return next((one for one in sources if one is not None), NOT_STATED)
    return {
        name: next((one[name] for one in sources if one is not None and name in one), NOT_STATED) for name in fields
    }


FIELDS: dict[str, dict[str, Any]] = {
    "registry": {
        "basic": (
            "name",
            "data_curators",
            "description",
            "intended_use",
            "data_product_type",
            "data_product_region",
            "data_product_sector",
            "publication_date",
        ),
        "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
        "privacy_loss": (
            "privacy_unit",
            "privacy_unit_details",
            "privacy_parameters",
            "privacy_parameters_details",
        ),
        "deployment_model": (
            "model_name",
            "model_name_details",
            "actors",
            "release_type",
            "release_type_details",
            "data_source_type",
            "data_source_type_details",
            "access_type",
            "access_type_details",
        ),
        "accounting": ("post_processing", "composition"),
        "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
        "administrative": ("sources", "notes", "registry_authors"),
    },
    "nist_sp_800_226": dict.fromkeys(
        (
            "privacy_parameters",
            "unit_of_privacy",
            "definition",
            "mechanisms_and_algorithms",
            "composition",
            "further_releases",
            "utility",
            "bias",
            "trust_model",
            "implementation",
            "randomness",
            "side_channels",
            "security",
            "access_control",
            "data_collection_exposure",
        )
    ),
}


def _proved(claimed: Claimed, by: str) -> dict[str, Fields]:
    """Fields that the certificate proves and nobody may state otherwise."""
    neighbours = claimed.neighbours
    parameters = {"epsilon": claimed.epsilon if claimed.epsilon < float("inf") else None, "delta": claimed.delta}
    mu = "" if claimed.mu is None else f" It is {above(claimed.mu, 6)}-GDP, a stronger statement."
    details = f"By {claimed.theorem}: {claimed.citation}.{mu}"
    mechanisms = f"{_mechanism(claimed)} Accounted for by lastiterate {by}. {_rounding(claimed)}"
    composition = f"All steps together, by {claimed.theorem}: {claimed.citation}."
    return {
        "registry": {
            "dp_variant": {"variant_name": "Approximate DP"},
            "privacy_loss": {
                "privacy_unit_details": neighbours,
                "privacy_parameters": parameters,
                "privacy_parameters_details": details,
            },
            "accounting": {"composition": composition},
            "implementation": {"mechanisms": mechanisms},
        },
        "nist_sp_800_226": {
            "privacy_parameters": parameters,
            "definition": f"(ε, δ)-differential privacy. {neighbours}",
            "mechanisms_and_algorithms": _mechanism(claimed),
            "composition": composition,
            "implementation": _rounding(claimed),
            "randomness": "The owner guarantees Gaussian noise from a generator that nobody can predict.",
        },
    }


def _usual(claimed: Claimed) -> dict[str, Fields]:
    """Fields as they usually are, unless the owner states otherwise."""
    many = bool(claimed.certificate["claim"]["releases"])
    prepared = {"preprocessing_and_hyperparameter_tuning": _beforehand(claimed)} if claimed.run.prior_mu else {}
    product = {} if claimed.run.noise.of_a_potential else {"data_product_type": "Machine learning model"}
    trust = "Central: the trainer sees the records; recipients of the release need not be trusted."
    return {
        "registry": {
            "basic": product,
            "dp_variant": {"unprotected_quantities": _public(claimed)},
            "privacy_loss": {"privacy_unit": "Record-level" if claimed.run.user_records == 1 else "User-level"},
            "deployment_model": {
                "model_name": "Central",
                "release_type": "Many releases" if many else "One release",
                "access_type": "Non-interactive",
            },
            "implementation": prepared,
        },
        "nist_sp_800_226": {"unit_of_privacy": claimed.unit, "trust_model": trust},
    }


def _mechanism(claimed: Claimed) -> str:
    steps, *others = claimed.what_was_run
    return f"Noisy gradient descent with Gaussian noise at every step: {steps}; {'; '.join(others)}."


def _rounding(claimed: Claimed) -> str:
    if claimed.run.arithmetic == EXACT:
        return "Exact real arithmetic is assumed; floating-point rounding is not included in ε."
    return "Floating-point rounding is included in ε."


def _beforehand(claimed: Claimed) -> str:
    return f"What was released before training is {claimed.run.prior_mu:g}-GDP, and is included in ε."


def _public(claimed: Claimed) -> str:
    return "The divisor of gradient sums." if claimed.run.adjacency.name.startswith("ADD") else "The number of records."


def _checked_statement(stated: Any, proved: dict[str, Fields]) -> dict[str, Fields]:
    """Return the owner's statement if its fields are known, hold texts, and are not filled by the certificate."""
    for section, groups in _entries("stated", stated, FIELDS):
        for group, content in _entries(section, groups, FIELDS[section]):
            fields = FIELDS[section][group]
            inside = _entries(group, content, fields) if fields is not None else [(group, content)]
            known = proved[section].get(group, {}) if fields is not None else proved[section]
            for name, value in inside:
                _check_entry(name, value, name in known)
    return dict(stated)


def _entries(name: str, table: Any, known: Any) -> list[tuple[str, Any]]:
    if not isinstance(table, dict):
        raise must_be("stated", f"a table with {', '.join(known)}", f"{shown(table):.60}", called=f"{name}")
    for entry in table:
        if entry not in known:
            meant = did_you_mean(closest(str(entry), known))
            raise InvalidInput(
                f"{shown(entry):.60} is not a field of {name}{meant}. It has {', '.join(known)}.",
                field="stated",
            )
    return list(table.items())


def _check_entry(name: str, value: Any, proved: bool) -> None:
    if proved:
        raise InvalidInput(f"{name} must be left out: the certificate fills it.", field="stated")
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(one, str) and one.strip() for one in texts):
        raise must_be("stated", "a text or a list of texts", f"{shown(value):.60}", called=f"{name}")


# The claim, read off the certificate alone.


THEOREMS = {theorem.name: theorem for theorem in ALL}


@dataclass(frozen=True, eq=False)
class Claimed:
    """The claim of a certificate; whether the certificate proves it is for `verify` to check."""

    certificate: dict[str, Any]

    @cached_property
    def run(self) -> Run:
        return run_from_dict(self.certificate["run"])

    @property
    def epsilon(self) -> float:
        value = self.certificate["claim"]["epsilon"]
        return math.inf if value is None else float(value)

    @property
    def delta(self) -> float:
        return float(self.certificate["claim"]["delta"])

    @property
    def mu(self) -> float | None:
        value = self.certificate["claim"]["mu"]
        return None if value is None else float(value)

    @property
    def theorem(self) -> str:
        return str(self.certificate["theorem"])

    @property
    def citation(self) -> str:
        return THEOREMS[self.theorem].citation

    @property
    def releases(self) -> list[int]:
        """Steps after which checkpoints were released."""
        return list(self.certificate["claim"]["releases"])

    @cached_property
    def assumptions(self) -> tuple[Fact, ...]:
        return facts_from_json(self.certificate["assumptions"])

    @cached_property
    def caveats(self) -> list[str]:
        """Reasons why nobody may sign this claim."""
        found = [str(one) for one in facts_from_json(self.certificate["caveats"])]
        return found if math.isfinite(self.epsilon) else [*found, english.nothing_proved(self.delta)]

    @property
    def what_was_run(self) -> list[str]:
        return described(self.run)

    def refusals(self, names: list[str]) -> list[str]:
        """Return why these theorems do not apply to the run."""
        process = at_their_places(released(self.run.process, self.releases), self.members)
        return list(refusals([THEOREMS[name].refusal(process) for name in names], self.run.process.update.plain))

    @property
    def released(self) -> str:
        """Name what is released, for the middle of a sentence."""
        what = f"{self.run.released.called} of a training run of {self.run.steps} steps"
        more = [f"{english.counted(len(self.releases), 'checkpoint')} of it"] if self.releases else []
        more += ["what was released before training"] if self.run.prior_mu else []
        return f"{what}, together with {' and '.join(more)}," if more else what

    @property
    def sentence(self) -> str:
        return english.claim(self.released, above(self.epsilon), self.delta, *self._unit)

    @property
    def members(self) -> tuple[int, ...]:
        """Records of the person whom the claim is for, if they are named."""
        return tuple(self.certificate["claim"]["unit"]["records"])

    @property
    def _unit(self) -> tuple[str, int, tuple[int, ...]]:
        return self.run.adjacency.name.lower(), self.run.user_records, self.members

    @property
    def unit(self) -> str:
        """Name the unit that is protected, in a few words."""
        return english.unit(self.run.user_records, self.members)

    @property
    def neighbours(self) -> str:
        """Definition of neighbouring data sets."""
        return english.definition(*self._unit)

    @cached_property
    def proved(self) -> Notion:
        """The whole curve behind the claim."""
        return proved_by(self.certificate)
