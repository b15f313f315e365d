"""Losses of one record, each with the facts that are known of it."""

from lastiterate.runs.losses.given import general, network
from lastiterate.runs.losses.loss import Loss
from lastiterate.runs.losses.residuals import huber, logistic, ridge, smooth_hinge
from lastiterate.runs.losses.several_classes import PullLimit, softmax

__all__ = ["Loss", "PullLimit", "general", "huber", "logistic", "network", "ridge", "smooth_hinge", "softmax"]


def __dir__() -> list[str]:
    return __all__
