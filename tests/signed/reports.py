"""Reports of every grade and kind, and their pages, each made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import lastiterate as li
from lastiterate.accounting.account import account_by
from lastiterate.facts import fact
from lastiterate.theorems.catalogue import OF_EVERY_ITERATE
from when_asked import WhenAsked

DELTA = 1e-5
LOSS = li.losses.general(smoothness=1.0, strong_convexity=0.1, gradient_norm=1.0)
LOGISTIC = li.losses.logistic(feature_norm=1.0, l2=0.05)
SEEDED = fact("noise_seeded", generator="lastiterate")
EVIL = "</script><b>1</b> is < 2 & 'more'"


def run_of(batches: object = None, steps: object = 20, **more: object) -> li.Run:
    given = {"step_size": 0.5, "noise": li.OnMeanGradient(std=0.1), **more}
    return li.Run(LOSS, batches or li.Cyclic(records=40, batch_size=10), steps=steps, **given)  # type: ignore[arg-type]


def trained(seed: int | None) -> li.results.Report:
    source = np.random.default_rng(0)
    features = source.normal(size=(40, 2)) / 4
    run = li.Run(LOGISTIC, li.Cyclic(40, 10), 0.5, li.OnMeanGradient(std=0.2), li.epochs(3))
    return li.train(run, (features, np.sign(features[:, 0])), seed=seed).report(DELTA)


MAKERS: dict[str, Callable[[], li.results.Report]] = {
    "replayed": lambda: li.account(run_of(), DELTA),
    "random": lambda: li.account(run_of(li.FixedSize(40, 10)), DELTA),
    "zero out": lambda: li.account(run_of(adjacency=li.ZERO_OUT, noise=li.OnIterate(std=1.0)), DELTA),
    "poisson": lambda: li.account(run_of(li.Poisson(40, 0.25), adjacency=li.ADD_OR_REMOVE_ONE), DELTA),
    "checkpoints": lambda: li.account(run_of(), DELTA, releases=[8, 12]),
    "average": lambda: li.account(run_of(released=li.EMA(decay=0.9)), DELTA),
    "beforehand": lambda: li.account(run_of(prior_mu=0.2), DELTA),
    "also assumed": lambda: replace(
        li.account(run_of(), DELTA), also_assumed=(fact("trainer_seed_unused", seed=EVIL),)
    ),
    "every iterate": lambda: account_by(OF_EVERY_ITERATE, run_of(), DELTA),
    "trained": lambda: trained(None),
    "seeded": lambda: trained(3),
    "one step": lambda: li.account(run_of(li.FullBatch(40), 1), DELTA),
}
REPORTS: WhenAsked[li.results.Report] = WhenAsked(MAKERS)
SIGNABLE = [name for name in MAKERS if name != "seeded"]


@cache
def page_of(name: str) -> str:
    return saved(REPORTS[name])


def saved(report: li.results.Report, ending: str = "html", **options: object) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"report.{ending}"
        report.save(path, **options)  # type: ignore[arg-type]
        return path.read_text(encoding="utf-8")


PAGES: WhenAsked[str] = WhenAsked({name: partial(page_of, name) for name in MAKERS})
