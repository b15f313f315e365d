"""A researcher compares bounds, regenerates a figure of a paper, and adds a theorem in one file."""

from __future__ import annotations

from steps import Steps, expect, holds, journey

RUN = """
step_size = 0.5
steps = 2000
[loss]
kind = "logistic"
feature_norm = 1.0
l2 = 0.05
[batches]
kind = "full"
records = 1000
[noise]
kind = "on_iterate"
std = 0.005
"""
THEOREM = """
import lastiterate as li
from lastiterate.runs.process import Process
from lastiterate.theorems.features import CONTRACTING
from lastiterate.theorems.features import ANY_MAP, FULL_BATCHES, REPLACED


def bound(process: Process) -> li.theorems.Evidence:
    mu = (2 / (1 - process.contraction)) ** 0.5 * process.step_mu * (1 + 1e-12)
    return li.theorems.Evidence(li.notions.GaussianDP(mu))


MINE = li.theorems.Theorem(
    name="mine/full-batch",
    citation="my notes, Theorem 1",
    covers="strongly convex, full batches, any number of steps",
    features={FULL_BATCHES, REPLACED} | ANY_MAP,
    assumptions=(CONTRACTING,),
    bound=bound,
)
"""
TRY = """
import json

import lastiterate as li
from theorem import MINE

run = li.read_run("run.toml")
report = li.account(run, delta=1e-6, theorems=[*li.theorems.CATALOGUE, MINE])
cyclic = li.Run(run.loss, li.Cyclic(records=1_000, batch_size=10), 0.5, li.OnIterate(std=0.005), 2_000)
print(json.dumps({
    "mine": next(one.epsilon(1e-6) for one in report.guarantees if one.theorem is MINE),
    "best": report.epsilon,
    "lower": report.lower_bound.epsilon,
    "refusal": str(MINE.apply(cyclic.process)),
    "laws": str(li.testing.check_theorem(MINE)),
}))
"""


def walk(steps: Steps) -> None:
    steps.written("run.toml", RUN)
    compared = steps.answered("compare run.toml --delta 1e-6 --papers")
    epsilons = [one["epsilon"] for one in compared["guarantees"]]
    holds("several theorems apply, the best comes first", len(epsilons) > 3 and epsilons == sorted(epsilons))

    said = steps.typed("reproduce bok2024 fig-1 --quick --workers 1 --out papers")
    expect(said, "bok2024 fig-1: reproduced")
    expect(steps.text("papers/bok2024-fig-1.svg"), "<svg")
    expect(steps.text("papers/bok2024-fig-1.csv"), "composition")
    expect(steps.typed("reproduce bok2024 fig-99", code=2), "fig-1,", "fig-99")

    steps.written("theorem.py", THEOREM)
    found = steps.scripted("try.py", TRY)
    holds(
        "the new theorem lies between the best one and nothing", found["lower"] <= found["best"] <= found["mine"] < 10
    )
    expect(found["refusal"], "mine/full-batch", "does not cover batches in a fixed order")
    expect(found["laws"], "mine/full-batch: 16 laws hold")


if __name__ == "__main__":
    journey("researcher", walk)
