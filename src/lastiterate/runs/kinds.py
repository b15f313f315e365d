"""Every kind of batches, noise, loss, domain, proximal map, schedule, optimiser and release. To be listed is to be tested.

Files, certificates, descriptions and the laws of `tests/laws/test_kinds.py` go through these lists. A kind answers for
itself in its own class: a new one is a class (or, for a loss, a function) and its line here, with an example of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lastiterate.runs.batches import BallsAndBins, Cyclic, FixedSize, FullBatch, Poisson, PoissonMean, Shuffled
from lastiterate.runs.domains import L1, Ball, Box, ConvexSet, ConvexTerm, ElasticNet, NuclearNorm, Unbounded
from lastiterate.runs.losses import general, huber, logistic, network, ridge, smooth_hinge, softmax
from lastiterate.runs.noise import Langevin, OnGradientSum, OnIterate, OnMeanGradient
from lastiterate.runs.optimizers import EMA, SGD, Adam, Average, Last, OtherOptimizer
from lastiterate.runs.schedules import cosine, linear, multistep


@dataclass(frozen=True)
class Kind:
    """A listed kind of value: the function that makes one, and the arguments of an example."""

    make: Callable[..., Any]
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the kind in files."""
        return str(getattr(self.make, "kind", self.make.__name__))

    @property
    def example(self) -> Any:
        return self.make(**self.arguments)


def _listed(make: Callable[..., Any], **arguments: Any) -> Kind:
    return Kind(make, MappingProxyType(arguments))


BATCHES = (
    _listed(FullBatch, records=12),
    _listed(Cyclic, records=12, batch_size=4),
    _listed(Shuffled, records=12, batch_size=4),
    _listed(FixedSize, records=12, batch_size=4),
    _listed(Poisson, records=12, rate=0.25),
    _listed(PoissonMean, records=12, rate=0.25),
    _listed(BallsAndBins, records=12, batches=3),
)
UNEVEN = (  # of the same kinds, where batches do not divide the records
    _listed(Cyclic, records=11, batch_size=4, last="smaller"),
    _listed(Shuffled, records=11, batch_size=4, last="smaller"),
    _listed(Cyclic, records=14, batch_size=4, last="drop"),
    _listed(Shuffled, records=14, batch_size=4, last="drop"),
)
NOISES = (
    _listed(OnIterate, std=0.3),
    _listed(OnMeanGradient, std=0.7),
    _listed(OnGradientSum, multiplier=1.1, clip=0.5),
    _listed(Langevin, std=0.4),
)
LOSSES = (
    _listed(general, smoothness=1.0, strong_convexity=0.1, gradient_sensitivity=2.0),
    _listed(logistic, feature_norm=1.5),
    _listed(softmax, feature_norm=1.5, classes=4, pull=0.6),
    _listed(ridge, feature_norm=1.5, residual_bound=3.0),
    _listed(huber, feature_norm=1.5, threshold=0.8),
    _listed(smooth_hinge, feature_norm=1.5, width=0.5, classes=3),
    _listed(network, clip=1.0),
)
DOMAINS = (
    _listed(Unbounded),
    _listed(Ball, radius=1.5),
    _listed(Box, side=2.0, dimension=3),
    _listed(ConvexSet, diameter=2.0),
)
PROXES = (
    _listed(L1, weight=0.3),
    _listed(ElasticNet, l1=0.2, l2=0.5),
    _listed(NuclearNorm, weight=0.3),
    _listed(ConvexTerm, modulus=0.1),
)
SCHEDULES = (
    _listed(cosine, start=0.1, end=0.01, warmup=1),
    _listed(linear, start=0.1, end=0.2),
    _listed(multistep, start=0.1, milestones=((1, 0.05), (2, 0.01))),
)
OPTIMIZERS = (
    _listed(SGD, momentum=0.9, nesterov=True),
    _listed(Adam, betas=(0.8, 0.999)),
    _listed(OtherOptimizer, name="lion"),
)
RELEASED = (
    _listed(Last),
    _listed(EMA, decay=0.9),
    _listed(Average, last=3),
)
SECTIONS = MappingProxyType(
    {
        "loss": LOSSES,
        "batches": BATCHES,
        "noise": NOISES,
        "domain": DOMAINS,
        "prox": PROXES,
        "optimizer": OPTIMIZERS,
        "released": RELEASED,
    },
)


def kind_named(section: str, name: str) -> Kind | None:
    """Return the kind with this name in files."""
    return next((kind for kind in SECTIONS[section] if kind.name == name), None)
