"""Differential privacy when only the last iterate is released.

What one types is here; notions, mechanisms, errors, rarer parts of runs and what functions return are in `li.notions` and
so on.
Names are loaded when they are first used, so that `import lastiterate` takes no time and Ctrl-C is answered early.
"""

TYPE_CHECKING = False  # as `typing` has it, which takes long to import

if TYPE_CHECKING:
    from lastiterate import (
        adapters,
        auditing,
        baselines,
        errors,
        mechanisms,
        notions,
        parts,
        results,
        testing,
        theorems,
        torch,
        training,
        trials,
    )
    from lastiterate.accounting.account import account, account_each
    from lastiterate.accounting.calibrate import NOISE, calibrate
    from lastiterate.accounting.report import lower_bound
    from lastiterate.auditing.audit import audit
    from lastiterate.budget.budget import Budget
    from lastiterate.certificate.verify import verify
    from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT
    from lastiterate.curves.compose import compose
    from lastiterate.forgetting.forget import forget
    from lastiterate.runs import losses
    from lastiterate.runs.batches import (
        BallsAndBins,
        Cyclic,
        FixedSize,
        FullBatch,
        Poisson,
        Shuffled,
    )
    from lastiterate.runs.domains import Ball, Unbounded
    from lastiterate.runs.files import read_run, write_run
    from lastiterate.runs.noise import Langevin, OnGradientSum, OnIterate, OnMeanGradient
    from lastiterate.runs.optimizers import AVERAGE, EMA, LAST, SGD, Adam
    from lastiterate.runs.per_step import epochs
    from lastiterate.runs.run import Run
    from lastiterate.runs.schedules import cosine, linear, multistep
    from lastiterate.selection.select import select
    from lastiterate.training.plans.planning import plan
    from lastiterate.training.train import train

    __version__: str

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "AVERAGE",
    "EMA",
    "LAST",
    "NOISE",
    "REPLACE_ONE",
    "SGD",
    "ZERO_OUT",
    "Adam",
    "Ball",
    "BallsAndBins",
    "Budget",
    "Cyclic",
    "FixedSize",
    "FullBatch",
    "Langevin",
    "OnGradientSum",
    "OnIterate",
    "OnMeanGradient",
    "Poisson",
    "Run",
    "Shuffled",
    "Unbounded",
    "__version__",
    "account",
    "account_each",
    "adapters",
    "audit",
    "auditing",
    "baselines",
    "calibrate",
    "compose",
    "cosine",
    "epochs",
    "errors",
    "forget",
    "linear",
    "losses",
    "lower_bound",
    "mechanisms",
    "multistep",
    "notions",
    "parts",
    "plan",
    "read_run",
    "results",
    "select",
    "testing",
    "theorems",
    "torch",
    "train",
    "training",
    "trials",
    "verify",
    "write_run",
]

# Where each of them stands, as imported above for those who read and do not run; tests/test_surface.py compares the two.
_NAMES = {
    "budget.budget": "Budget",
    "accounting.calibrate": "NOISE calibrate",
    "certificate.verify": "verify",
    "accounting.account": "account account_each",
    "forgetting.forget": "forget",
    "accounting.report": "lower_bound",
    "selection.select": "select",
    "runs.batches": "BallsAndBins Cyclic FixedSize FullBatch Poisson Shuffled",
    "runs.domains": "Ball Unbounded",
    "runs.files": "read_run write_run",
    "runs.per_step": "epochs",
    "runs.noise": "Langevin OnGradientSum OnIterate OnMeanGradient",
    "runs.optimizers": "AVERAGE EMA LAST SGD Adam",
    "runs.run": "Run",
    "runs.schedules": "cosine linear multistep",
    "auditing.audit": "audit",
    "curves.adjacency": "ADD_OR_REMOVE_ONE REPLACE_ONE ZERO_OUT",
    "curves.compose": "compose",
    "training.plans.planning": "plan",
    "training.train": "train",
}
_ROOMS = (
    "adapters",
    "auditing",
    "baselines",
    "errors",
    "mechanisms",
    "notions",
    "parts",
    "results",
    "testing",
    "theorems",
    "torch",
    "training",
    "trials",
)
_MODULES = {name: f"lastiterate.{module}" for module, names in _NAMES.items() for name in names.split()}


def _loaded(name: str) -> object:
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("lastiterate")
    if name == "losses":
        return import_module("lastiterate.runs.losses")
    if name in _ROOMS:
        return import_module(f"lastiterate.{name}")
    return getattr(import_module(_MODULES[name]), name)


if not TYPE_CHECKING:  # which would take every misspelt name for a name

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'lastiterate' has no attribute {name!r}")
        return globals().setdefault(name, _loaded(name))


def __dir__() -> list[str]:
    return sorted(__all__)
