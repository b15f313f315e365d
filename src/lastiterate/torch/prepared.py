"""A run as it is going to be executed on a network: with the arithmetic of that, the norm of the start, and checks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from lastiterate.errors import InvalidInput
from lastiterate.numerics.rounding import up
from lastiterate.runs.run import Run
from lastiterate.torch.network import Network
from lastiterate.torch.objective import NetworkObjective
from lastiterate.torch.team import ALONE, Team


def prepared(run: Run, network: Network, at_once: int | None, team: Team = ALONE) -> Run:
    """What rounding adds is known before the first step."""
    _check_loss(run)
    _check_dimension(run, network.size)
    _check_precision(run, network)
    objective = NetworkObjective(network, run, at_once, team)
    arithmetic = run.arithmetic.and_also(objective.arithmetic(run, network.size))
    norm = up(objective.vectors.length(network.flat()))
    return replace(run, arithmetic=arithmetic, start_norm=max(run.start_norm, norm) if run.decay else run.start_norm)


def start_of(run: Run, objective: NetworkObjective) -> Any:
    """The parameters as they are, in the domain: the facts of a loss hold there only."""
    return objective.vectors.settled(replace(run, prox=None), objective.network.flat(), 1.0)


def _check_precision(run: Run, network: Network) -> None:
    """A smoothness is that of exact gradients; what single precision does to them is not small beside hidden noise."""
    precisions = {one.dtype for one in network.parameters.values()} | {network.autocast or torch.float64}
    if math.isfinite(run.loss.smoothness) and precisions != {torch.float64}:
        coarse = next(one for one in precisions if one != torch.float64)
        raise InvalidInput("precision_too_low", field="smoothness", got=str(coarse))


def _check_loss(run: Run) -> None:
    """A linear model's facts rest on the length of its rows, which `li.train` holds them to."""
    if run.loss.linear:
        raise InvalidInput("loss_of_linear_model", field="loss", loss=run.loss.kind)


def _check_dimension(run: Run, parameters: int) -> None:
    declared = run.domain.dimension
    if declared is not None and declared != parameters:
        raise InvalidInput("domain_dimension_differs", field="domain", parameters=parameters, dimension=declared)
