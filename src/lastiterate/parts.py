"""`li.parts`: the kinds that few runs need, and any other that is listed: domains, proximal terms, batches."""

from typing import Any

from lastiterate.runs.batches import PoissonMean
from lastiterate.runs.domains import L1, Box, ConvexSet, ConvexTerm, ElasticNet, NuclearNorm
from lastiterate.runs.kinds import SECTIONS

__all__ = ["L1", "Box", "ConvexSet", "ConvexTerm", "ElasticNet", "NuclearNorm", "PoissonMean"]

_AT_THE_TOP = (
    *("FullBatch", "Cyclic", "Shuffled", "FixedSize", "Poisson", "BallsAndBins"),
    *("OnIterate", "OnMeanGradient", "OnGradientSum", "Langevin"),
    *("Ball", "Unbounded", "SGD", "Adam", "EMA"),
)


def public_name(section: str, made: str) -> str:
    """Public name, after `li.`, of what makes this kind for a section of a run."""
    if section == "loss":
        return f"losses.{made}"
    return made if made in _AT_THE_TOP else "AVERAGE" if made == "Average" else f"parts.{made}"


def __getattr__(name: str) -> Any:
    """Return the function that makes a listed kind, by its public name."""
    for listed in SECTIONS.values():
        for kind in listed:
            if kind.make.__name__ == name:
                return kind.make
    raise AttributeError(f"lastiterate.parts has no {name!r}")


def __dir__() -> list[str]:
    return __all__
