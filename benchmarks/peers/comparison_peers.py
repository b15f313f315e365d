"""One peer's column of `make comparison`: `python -m benchmarks.peers.comparison_peers PEER` prints JSON.

Run with the Python of the peer's environment (see `environments`). A cell is a number that the peer computes here, or what a
search of its installed source finds.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.settings import DELTA, MULTIPLIER, RATE, SMALL_DELTA

STEPS = 10_000
LAST_ITERATE = r"last[- ]iterate|hidden[- ]state|by[- ]iteration"
CERTIFICATE = r"certificat"
AUDIT = r"\baudit(s|ing|or)?\b|lower bound on (the )?epsilon"
SHUFFLED = r"class \w*Shuffl"

Cells = dict[str, str]


def main() -> None:
    warnings.filterwarnings("ignore")
    peer = sys.argv[1]
    version = importlib.metadata.version(PACKAGES[peer][0])
    print(json.dumps({"version": version} | COLUMNS[peer]() | searched(PACKAGES[peer][1])))


def searched(module: str) -> Cells:
    """How many of the installed source files, tests left out, speak of a subject at all."""
    root = Path(str(importlib.import_module(module).__file__)).parent
    files = [path for path in root.rglob("*.py") if "test" not in path.name and "rnn" not in path.name]
    texts = [path.read_text(errors="ignore") for path in files]

    def found(pattern: str) -> str:
        count = sum(bool(re.search(pattern, text, re.IGNORECASE)) for text in texts)
        return f"{count} of {len(texts)} source files mention it"

    return {"last iterate": found(LAST_ITERATE), "certificate": found(CERTIFICATE), "lower": found(AUDIT)}


def epsilon_or_refusal(epsilon: Callable[[], float]) -> str:
    try:
        return f"{epsilon():.6f}"
    except ValueError as error:
        return f"refuses: “{str(error).split('. ')[0]}”"


def dp_accounting_column() -> Cells:
    import dp_accounting as dp
    from dp_accounting.pld import privacy_loss_distribution as losses

    step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(MULTIPLIER))

    def epsilon(delta: float) -> float:
        return float(dp.pld.PLDAccountant().compose(step, STEPS).get_epsilon(delta))

    def side(pessimistic: bool) -> float:
        one = losses.from_gaussian_mechanism(
            MULTIPLIER, sampling_prob=RATE, pessimistic_estimate=pessimistic, use_connect_dots=pessimistic
        )
        return float(one.self_compose(STEPS).get_epsilon_for_delta(DELTA))

    events = [name for name in dir(dp) if name.endswith("DpEvent") and name not in {"DpEvent", "UnsupportedDpEvent"}]
    return {
        "epsilon": f"{epsilon(DELTA):.6f}",
        "small delta": epsilon_or_refusal(lambda: epsilon(SMALL_DELTA)),
        "both sides": f"{side(False):.6f} to {side(True):.6f}",
        "shuffled": no_event("dp_accounting"),
        "calibrate": "`dp_accounting.calibrate_dp_mechanism`" if callable(dp.calibrate_dp_mechanism) else "–",
        "mechanisms": f"{len(events)} kinds of events",
        "networks": "–",
        "estimators": "–",
    }


def opacus_column() -> Cells:
    from opacus import GradSampleModule
    from opacus.accountants import PRVAccountant
    from opacus.accountants.registry import _ACCOUNTANTS
    from opacus.accountants.utils import get_noise_multiplier

    def epsilon(delta: float) -> float:
        accountant = PRVAccountant()
        accountant.history = [(MULTIPLIER, RATE, STEPS)]
        return float(accountant.get_epsilon(delta))

    shuffled, poisson = (opacus_trained_epsilon(poisson_sampling=one) for one in (False, True))
    same = "the number for Poisson batches" if shuffled == poisson else f"Poisson: {poisson:.4f}"
    return {
        "epsilon": f"{epsilon(DELTA):.6f}",
        "small delta": epsilon_or_refusal(lambda: epsilon(SMALL_DELTA)),
        "both sides": "–",
        "shuffled": f"{shuffled:.4f}, {same}",
        "calibrate": f"`opacus.accountants.utils.{get_noise_multiplier.__name__}`",
        "mechanisms": f"Gaussian, by {len(_ACCOUNTANTS)} accountants",
        "networks": f"`PrivacyEngine`; {len(GradSampleModule.GRAD_SAMPLERS)} kinds of layers have gradients of their own",
        "estimators": "–",
    }


def opacus_trained_epsilon(poisson_sampling: bool) -> float:
    """Two epochs of a small linear model with a shuffled loader, and what the engine reports afterwards."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Linear(3, 2)
    rows = TensorDataset(torch.randn(1000, 3), torch.randint(2, (1000,)))
    engine = PrivacyEngine(accountant="prv")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(rows, batch_size=50, shuffle=True),
        noise_multiplier=MULTIPLIER,
        max_grad_norm=1.0,
        poisson_sampling=poisson_sampling,
    )
    for _ in range(2):
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    return float(engine.get_epsilon(DELTA))


def prv_column() -> Cells:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism as Mechanism

    def bounds(delta: float) -> tuple[float, float, float]:
        accountant = PRVAccountant(
            prvs=[Mechanism(RATE, MULTIPLIER)], max_self_compositions=[STEPS], eps_error=0.1, delta_error=delta / 1000
        )
        lower, estimate, upper = accountant.compute_epsilon(delta, [STEPS])
        return float(lower), float(estimate), float(upper)

    bases = ("PrivacyRandomVariable", "PrivacyRandomVariableTruncated")
    kinds = classes("prv_accountant.privacy_random_variables", *bases)
    lower, _, upper = bounds(DELTA)
    return {
        "epsilon": f"{upper:.6f}",
        "small delta": epsilon_or_refusal(lambda: bounds(SMALL_DELTA)[2]),
        "both sides": f"{lower:.6f} to {upper:.6f}",
        "shuffled": no_event("prv_accountant"),
        "calibrate": "–",
        "mechanisms": f"{len(kinds)} kinds",
        "networks": "–",
        "estimators": "–",
    }


def autodp_column() -> Cells:
    from autodp.calibrator_zoo import generalized_eps_delta_calibrator
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    mechanism = GaussianMechanism(sigma=MULTIPLIER)
    mechanism.neighboring = "add_remove"
    step = AmplificationBySampling(PoissonSampling=True)(mechanism, RATE, improved_bound_flag=True)
    composed = Composition()([step], [STEPS])
    return {
        "epsilon": f"{composed.get_approxDP(DELTA):.6f}",
        "small delta": epsilon_or_refusal(lambda: float(composed.get_approxDP(SMALL_DELTA))),
        "both sides": "–",
        "shuffled": no_event("autodp"),
        "calibrate": f"`autodp.calibrator_zoo.{generalized_eps_delta_calibrator.__name__}`",
        "mechanisms": f"{len(classes('autodp.mechanism_zoo', 'Mechanism'))} kinds",
        "networks": "–",
        "estimators": "–",
    }


def diffprivlib_column() -> Cells:
    kinds = classes("diffprivlib.mechanisms", "DPMachine", "DPMechanism", "TruncationAndFoldingMixin")
    models = classes("diffprivlib.models")
    pure = all("delta" not in inspect.signature(model).parameters for model in models)
    return {
        "epsilon": "–",
        "small delta": "–",
        "both sides": "–",
        "shuffled": no_event("diffprivlib"),
        "calibrate": "every mechanism takes `epsilon`",
        "mechanisms": f"{len(kinds)} kinds",
        "networks": "–",
        "estimators": f"{len(models)} models, {'pure ε' if pure else '(ε, δ)'}",
    }


def no_event(module: str) -> str:
    """Whether some class of the package is about shuffled batches."""
    root = Path(str(importlib.import_module(module).__file__)).parent
    names = [path.name for path in root.rglob("*.py") if re.search(SHUFFLED, path.read_text(errors="ignore"))]
    return f"in {', '.join(names)}" if names else "no class for it"


def classes(module: str, *bases: str) -> list[type]:
    """The public classes of a module, but for those that others are made from."""
    public = vars(importlib.import_module(module)).items()
    return [one for name, one in public if isinstance(one, type) and not name.startswith("_") and name not in bases]


PACKAGES = {
    "dp-accounting": ("dp-accounting", "dp_accounting"),
    "Opacus": ("opacus", "opacus"),
    "prv_accountant": ("prv-accountant", "prv_accountant"),
    "autodp": ("autodp", "autodp"),
    "diffprivlib": ("diffprivlib", "diffprivlib"),
}
COLUMNS: dict[str, Callable[[], Any]] = {
    "dp-accounting": dp_accounting_column,
    "Opacus": opacus_column,
    "prv_accountant": prv_column,
    "autodp": autodp_column,
    "diffprivlib": diffprivlib_column,
}

if __name__ == "__main__":
    main()
