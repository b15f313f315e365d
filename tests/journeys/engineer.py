"""An ML engineer has records and a target: plans, trains, measures on public records, hands over a model and its proof."""

from __future__ import annotations

import json
import random

from steps import Steps, expect, journey

NAMES = "age,income,visits,left"


def table(records: int, seed: int) -> str:
    """Raw columns of different scales; who leaves depends on two of them."""
    source = random.Random(seed)
    lines = [NAMES]
    for _ in range(records):
        age, income, visits = source.uniform(18, 90), source.uniform(0, 2e5), source.randint(0, 50)
        score = (age - 54) / 18 - (visits - 25) / 12 + source.gauss(0, 0.3)
        lines.append(f"{age:.1f},{income:.0f},{visits},{'yes' if score > 0 else 'no'}")
    return "\n".join(lines) + "\n"


def walk(steps: Steps) -> None:
    steps.written("customers.csv", table(4000, 1))
    steps.written("public.csv", table(1000, 2))

    said = steps.typed("plan --records 4000 --features 3 --epsilon 1 --passes 50 --write plan.toml")
    expect(
        said,
        "Plans for 4000 records of 3 features, epsilon = 1 at delta = 1e-05",
        "hidden passes",
        "What would help",
    )
    expect(steps.typed("account plan.toml"), "epsilon = 0.99")

    ranges = "--bounds age=18:90 income=0:200000 visits=0:50"
    target = "--target left --classes no yes --epsilon 1 --delta 1e-5"
    files = "--test public.csv --write model.json --report report.html"
    said = steps.typed(f"train customers.csv {target} {ranges} --passes 50 {files}")
    expect(said, "epsilon = 1 at delta = 1e-05", "accuracy on public.csv: 0.9", "report: report.html")
    model = json.loads(steps.text("model.json"))
    expect(json.dumps(model), '"private": true', '"certificate"')

    expect(steps.typed("verify model.json"), "accepted: epsilon = 0.99999")
    expect(steps.typed("verify report.html"), "accepted: epsilon = 0.99999")


if __name__ == "__main__":
    journey("engineer", walk)
