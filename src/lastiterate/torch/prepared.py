"""A run as it is going to be executed on a network: with the arithmetic of that, the norm of the start, and checks."""

from __future__ import annotations

from dataclasses import replace

from lastiterate.algorithms.run import Run
from lastiterate.errors import InvalidInput
from lastiterate.numerics.rounding import up
from lastiterate.torch.network import Network
from lastiterate.torch.objective import NetworkObjective
from lastiterate.torch.team import ALONE, Team


def prepared(run: Run, network: Network, at_once: int | None, team: Team = ALONE) -> Run:
    """What rounding adds is known before the first step."""
    _check_loss(run)
    _check_dimension(run, network.size)
    objective = NetworkObjective(network, run, at_once, team)
    arithmetic = run.arithmetic.and_also(objective.arithmetic(run, network.size))
    norm = up(objective.vectors.length(network.flat()))
    return replace(run, arithmetic=arithmetic, start_norm=max(run.start_norm, norm) if run.decay else run.start_norm)


def _check_loss(run: Run) -> None:
    """A linear model's facts rest on the length of its rows, which `li.train` holds them to."""
    if run.loss.linear:
        raise InvalidInput(
            f"li.losses.{run.loss.kind} is a linear model, whose rows li.train holds to their norm. Train it with li.train, "
            "or describe this model with li.losses.network(clip=...) or li.losses.general(...).",
            field="loss",
        )


def _check_dimension(run: Run, parameters: int) -> None:
    declared = run.domain.dimension
    if declared is not None and declared != parameters:
        raise InvalidInput(
            f"the run's domain has dimension {declared}, but the model has {parameters} trained parameters.",
            field="domain",
        )
