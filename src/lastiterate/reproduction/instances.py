"""The instances of the papers and of their errata, each with what it is known to cost."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.auditing.chain import Chain, cyclic_hazard, iid_hazard
from lastiterate.auditing.sums import Pushed, RandomSum
from lastiterate.numerics.arrays import Floats


def one_sampled_step(push: float, rate: float, split: float) -> Pushed:
    """One step, noise 1: the record pushes by (1 − split)·push, its neighbour by −split·push. (Bok2024, Theorem 4.8)

    The worst over all splits is the subsampled Gaussian mechanism, under replacement of a record.
    """
    return Pushed(RandomSum(np.full((1, 1), push), np.full((1, 1), rate), 1.0), 1 - split, -split)


def cyclic_mu(push: float, factor: float, per_epoch: int, epochs: int) -> float:
    """Quadratics, noise 1, the record in the last batch. (Bok2024, Theorem C.17)"""
    power = factor ** (per_epoch * epochs)
    return push * math.sqrt((1 - power) / (1 + power) * (1 - factor**2)) / (1 - factor**per_epoch)


def linear_loss_on_an_interval(push: float, width: float, steps: int, per_epoch: int = 1, cells: int = 400) -> Chain:
    """Nothing moves but by the record, noise 1; in the last batch of each epoch, if there are several. (Bok2024, C.16)"""
    hazard = cyclic_hazard(per_epoch, per_epoch - 1, steps)
    return Chain(
        lambda x: x,
        lambda x: x + push,
        lambda x: x,
        np.ones(steps),
        hazard,
        -width / 2,
        width / 2,
        cells=cells,
    )


def two_wells(decay: float, move: float, rate: float, steps: int, cells: int = 400) -> Chain:
    """(1 − decay)·x ± move: the others push away from 0, the record to one side. Noise 1. (Asoodeh2023, Theorem 3)"""
    kept = 1 - decay
    reach = move / (1 - abs(kept)) + 12 / math.sqrt(1 - kept**2)
    return Chain(
        lambda x: kept * x + np.where(x >= 0, move, -move),
        lambda x: kept * x + move,
        lambda x: kept * x - move,
        np.ones(steps),
        iid_hazard(rate, steps),
        -reach,
        reach,
        cells=cells,
    )


def clipped_step(curvature: float, angle: float) -> Floats:
    """The derivative of x − clip(∇f(x)) where the gradient points along the first axis and is as long as the clip.

    f has a Hessian of rank one at this angle to the gradient; what the gradient changes along itself is cut. For the worst
    angle its norm is 2/√(4 − curvature): the Lipschitz constant of clipped steps. (Kong2025, errata E2.2)
    """
    across = np.array([math.cos(angle), math.sin(angle)])
    return np.eye(2) - np.diag([0.0, 1.0]) @ (curvature * np.outer(across, across))


def clipped_softmax_step(scores: Floats, feature_norm: float, clip: float, step_size: float, decay: float) -> Floats:
    """The derivative of a clipped softmax step in the weights along the features; the record has the first label.

    With scores z = ‖x‖·w the gradient is ‖x‖·(p − e) and is clipped where it is longer than `clip`. (Bok2024, errata E4.1)
    """
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    residual = shares - np.eye(len(scores))[0]
    length = float(np.linalg.norm(residual))
    change = feature_norm**2 * (np.diag(shares) - np.outer(shares, shares))
    if feature_norm * length > clip:
        direction = residual / length
        cut = np.eye(len(scores)) - np.outer(direction, direction)
        change = clip / (feature_norm * length) * cut @ change
    return np.asarray((1 - step_size * decay) * np.eye(len(scores)) - step_size * change)
