"""What is known of the loss of one record. Each function returns facts, and only true ones."""

from lastiterate.algorithms.losses.given import general, network
from lastiterate.algorithms.losses.loss import Loss
from lastiterate.algorithms.losses.margins import logistic, smooth_hinge
from lastiterate.algorithms.losses.pull import PullLimit
from lastiterate.algorithms.losses.residuals import huber, ridge
from lastiterate.algorithms.losses.several_classes import softmax

__all__ = ["Loss", "PullLimit", "general", "huber", "logistic", "network", "ridge", "smooth_hinge", "softmax"]


def __dir__() -> list[str]:
    return __all__
