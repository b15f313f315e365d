"""Differential privacy when only the last iterate is released.

What one types is here; notions, mechanisms, baselines, theorems and what functions return are in `li.notions` and the like.
Names are loaded when they are first used, so that `import lastiterate` takes no time and Ctrl-C is answered early.
"""

TYPE_CHECKING = False  # as `typing` has it, which takes long to import

if TYPE_CHECKING:
    from lastiterate import (
        accounting,
        adapters,
        auditing,
        baselines,
        mechanisms,
        notions,
        testing,
        theorems,
        torch,
        training,
        trials,
    )
    from lastiterate.accounting.account import account
    from lastiterate.accounting.budget import Budget
    from lastiterate.accounting.calibrate import BATCH_SIZE, NOISE, STEP_SIZE, STEPS, calibrate
    from lastiterate.accounting.certificate import verify
    from lastiterate.accounting.each import account_each
    from lastiterate.accounting.forget import forget
    from lastiterate.accounting.report import Report
    from lastiterate.accounting.sandwich import lower_bound
    from lastiterate.accounting.select import select
    from lastiterate.algorithms import losses
    from lastiterate.algorithms.batches import (
        BallsAndBins,
        Cyclic,
        FixedSize,
        FullBatch,
        Poisson,
        PoissonMean,
        Shuffled,
    )
    from lastiterate.algorithms.domains import Ball, Box, ConvexSet, Unbounded
    from lastiterate.algorithms.files import read_run, write_run
    from lastiterate.algorithms.length import epochs
    from lastiterate.algorithms.noise import Langevin, OnGradientSum, OnIterate, OnMeanGradient
    from lastiterate.algorithms.optimizers import SGD, Adam
    from lastiterate.algorithms.prox import L1, ConvexTerm, ElasticNet, NuclearNorm
    from lastiterate.algorithms.released import AVERAGE, EMA, LAST
    from lastiterate.algorithms.run import Run
    from lastiterate.algorithms.schedules import cosine, linear, steps
    from lastiterate.auditing.audit import audit
    from lastiterate.errors import (
        BudgetExceeded,
        Incompatible,
        InvalidInput,
        LastIterateError,
        PrivacyLeak,
        Unavailable,
    )
    from lastiterate.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, ZERO_OUT
    from lastiterate.privacy.compose import compose
    from lastiterate.privacy.gaussian import GaussianDP
    from lastiterate.theorems.catalogue import CATALOGUE
    from lastiterate.training.plans.planning import plan
    from lastiterate.training.train import train

    __version__: str

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "AVERAGE",
    "BATCH_SIZE",
    "CATALOGUE",
    "EMA",
    "L1",
    "LAST",
    "NOISE",
    "REPLACE_ONE",
    "SGD",
    "STEPS",
    "STEP_SIZE",
    "ZERO_OUT",
    "Adam",
    "Ball",
    "BallsAndBins",
    "Box",
    "Budget",
    "BudgetExceeded",
    "ConvexSet",
    "ConvexTerm",
    "Cyclic",
    "ElasticNet",
    "FixedSize",
    "FullBatch",
    "GaussianDP",
    "Incompatible",
    "InvalidInput",
    "Langevin",
    "LastIterateError",
    "NuclearNorm",
    "OnGradientSum",
    "OnIterate",
    "OnMeanGradient",
    "Poisson",
    "PoissonMean",
    "PrivacyLeak",
    "Report",
    "Run",
    "Shuffled",
    "Unavailable",
    "Unbounded",
    "__version__",
    "account",
    "account_each",
    "accounting",
    "adapters",
    "audit",
    "auditing",
    "baselines",
    "calibrate",
    "compose",
    "cosine",
    "epochs",
    "forget",
    "linear",
    "losses",
    "lower_bound",
    "mechanisms",
    "notions",
    "plan",
    "read_run",
    "select",
    "steps",
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
    "accounting.account": "account",
    "accounting.budget": "Budget",
    "accounting.calibrate": "BATCH_SIZE NOISE STEPS STEP_SIZE calibrate",
    "accounting.certificate": "verify",
    "accounting.each": "account_each",
    "accounting.forget": "forget",
    "accounting.report": "Report",
    "accounting.sandwich": "lower_bound",
    "accounting.select": "select",
    "algorithms.batches": "BallsAndBins Cyclic FixedSize FullBatch Poisson PoissonMean Shuffled",
    "algorithms.domains": "Ball Box ConvexSet Unbounded",
    "algorithms.files": "read_run write_run",
    "algorithms.length": "epochs",
    "algorithms.noise": "Langevin OnGradientSum OnIterate OnMeanGradient",
    "algorithms.optimizers": "SGD Adam",
    "algorithms.prox": "L1 ConvexTerm ElasticNet NuclearNorm",
    "algorithms.released": "AVERAGE EMA LAST",
    "algorithms.run": "Run",
    "algorithms.schedules": "cosine linear steps",
    "auditing.audit": "audit",
    "errors": "BudgetExceeded Incompatible InvalidInput LastIterateError PrivacyLeak Unavailable",
    "privacy.adjacency": "ADD_OR_REMOVE_ONE REPLACE_ONE ZERO_OUT",
    "privacy.compose": "compose",
    "privacy.gaussian": "GaussianDP",
    "theorems.catalogue": "CATALOGUE",
    "training.plans.planning": "plan",
    "training.train": "train",
}
_ROOMS = (
    "accounting",
    "adapters",
    "auditing",
    "baselines",
    "mechanisms",
    "notions",
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
        return import_module("lastiterate.algorithms.losses")
    if name in _ROOMS:
        return import_module(f"lastiterate.{name}")
    return getattr(import_module(_MODULES[name]), name)


def _kind(name: str) -> object:
    """A kind of batches, noise, domain or proximal map that is listed, and not above."""
    from importlib import import_module

    if not name.startswith("_"):
        for listed in import_module("lastiterate.algorithms.kinds").SECTIONS.values():
            for kind in listed:
                if kind.make.__name__ == name:
                    return kind.make
    raise AttributeError(f"module 'lastiterate' has no attribute {name!r}")


if not TYPE_CHECKING:  # which would take every misspelt name for a name

    def __getattr__(name):
        found = _loaded(name) if name in __all__ else _kind(name)
        return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(__all__)
