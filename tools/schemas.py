"""Write the JSON Schemas of what the library writes, made from the registry of facts: `python tools/schemas.py`.

A test compares the files with what this makes, and validates certificates, reports and labels against them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lastiterate
from lastiterate.facts import KINDS, Basis, FactKind
from lastiterate.report.label import FIELDS

FOLDER = Path(lastiterate.__file__).parent / "schemas"
NUMBER = {"type": "number"}
EPSILON = {"type": ["number", "null"], "minimum": 0, "description": "null stands for infinity"}
DELTA = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
COUNTS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
RUN = {"type": "object", "required": ["steps", "step_size", "loss", "batches", "noise"]}
TEXT = {"type": "string"}


def schema_of(value: Any) -> dict[str, Any]:
    """The schema of one value of a fact, by an example of it."""
    match value:
        case bool():
            return {"type": "boolean"}
        case str():
            return TEXT
        case tuple():
            return {"type": "array"}
        case int():
            return {"type": "integer"}
        case None:
            return {"type": ["number", "null"]}
    return NUMBER


def fact(code: str, kind: FactKind) -> dict[str, Any]:
    bases = list(Basis)[: list(Basis).index(kind.most) + 1]
    values = {name: schema_of(value) for name, value in kind.values.items()}
    basis = {"enum": [one.value for one in bases]}
    return table({"code": {"const": code}, **values}, optional={"basis": basis})


def table(required: dict[str, Any], optional: dict[str, Any] | None = None, *, closed: bool = True) -> dict[str, Any]:
    """A JSON object with these entries, and no others if it is `closed`."""
    properties = {**required, **(optional or {})}
    more = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(required), **more}


FACTS = {"fact": {"oneOf": [fact(code, kind) for code, kind in KINDS.items()]}}
FACT, LISTED = {"$ref": "#/$defs/fact"}, {"type": "array", "items": {"$ref": "#/$defs/fact"}}


def schema(name: str, title: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"lastiterate/{name}.schema.json",
        "title": title,
        **content,
        **({"$defs": more} if more else {}),
    }


def claim(optional: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return table({"unit": FACT, "delta": DELTA, "epsilon": EPSILON, **more}, optional)


def certificate() -> dict[str, Any]:
    """Of a run, a forgetting, a selection or a budget, told apart by their format."""
    grade, mu = {"enum": ["replayed", "recomputed"]}, {"mu": {"type": ["number", "null"]}, "releases": COUNTS}
    about = {"grade": grade, "theorem": TEXT, "assumptions": LISTED, "caveats": LISTED, "run": RUN}
    searched = {"proof": {"type": "object"}, "rung": {"type": "integer"}}
    flags = {"adaptive": {"const": True}, "separate": {"const": True}}
    law = {"type": "object", "required": ["law", "mean"]}
    own = {"$ref": "#/$defs/run_certificate"}
    kinds = {
        "run_certificate": table(
            {"format": {"const": "lastiterate certificate 1"}, **about, "claim": claim(**mu)}, searched
        ),
        "forgetting_certificate": table(
            {
                "format": {"const": "lastiterate forgetting certificate 1"},
                **about,
                "claim": claim(flags, **mu, removals=COUNTS, steps=COUNTS),
            },
            searched,
        ),
        "selection_certificate": table(
            {
                "format": {"const": "lastiterate selection certificate 1"},
                "grade": grade,
                "claim": claim(),
                "trials": law,
                "stated_mu": {"type": ["number", "null"]},
                "assumptions": LISTED,
                "caveats": LISTED,
                "settings": {"type": "array", "items": own, "minItems": 1},
            }
        ),
        "budget_certificate": table(
            {
                "format": {"const": "lastiterate budget certificate 1"},
                "grade": grade,
                "claim": claim(),
                "terms": {"type": "object"},
                "entries": {"type": "array", "items": {"type": "object"}},
                "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            }
        ),
    }
    content = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds]}
    return schema("certificate", "A certificate of lastiterate", content, **FACTS, **kinds)


def report() -> dict[str, Any]:
    """`report.to_dict()`, and the report inside a trained model."""
    guarantee = table({"theorem": TEXT, "citation": TEXT, "epsilon": EPSILON})
    return schema(
        "report",
        "A report of lastiterate, without its certificate",
        table(
            {
                "epsilon": EPSILON,
                "delta": DELTA,
                "mu": {"type": ["number", "null"]},
                "lower_bound": table(
                    {
                        "epsilon": {"type": "number", "minimum": 0},
                        "instance": {"type": "object", "properties": {"code": TEXT}, "required": ["code"]},
                    }
                ),
                "unit": FACT,
                "theorem": TEXT,
                "citation": TEXT,
                "releases": COUNTS,
                "guarantees": {"type": "array", "items": guarantee},
                "inapplicable": {"type": "array", "items": table({"theorem": TEXT, "reasons": LISTED})},
                "assumptions": LISTED,
                "caveats": LISTED,
                "run": RUN,
            }
        ),
        **FACTS,
    )


def label() -> dict[str, Any]:
    """`report.label()`: the fields of public registries and of NIST SP 800-226."""
    entry = {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "object"}]}
    sections = {
        section: table(
            {group: entry if names is None else table(dict.fromkeys(names, entry)) for group, names in groups.items()}
        )
        for section, groups in FIELDS.items()
    }
    return schema("label", "A label of lastiterate", table({"format": {"const": "lastiterate label 1"}, **sections}))


SCHEMAS = {"certificate": certificate, "report": report, "label": label}


def text_of(name: str) -> str:
    """The file of a schema."""
    return _lines(SCHEMAS[name](), 4) + "\n"


def _lines(value: Any, depth: int) -> str:
    """JSON with one entry in a line down to this depth: each kind of fact has a line of its own."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_lines(one, depth - 1) for one in value) + "\n]"
    inside = (f"{json.dumps(key)}: {_lines(one, depth - 1)}" for key, one in value.items())
    return "{\n" + ",\n".join(inside) + "\n}"


if __name__ == "__main__":
    for name in SCHEMAS:
        (FOLDER / f"{name}.schema.json").write_text(text_of(name), encoding="utf-8")
