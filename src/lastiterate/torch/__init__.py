"""Private training of PyTorch models, with only the last iterate released: a trainer, and the pieces of one."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("lastiterate.torch needs PyTorch. Install it with: pip install 'lastiterate[torch]'.") from error

from lastiterate.torch.releases import Releases
from lastiterate.torch.sampler import BatchSampler, loader
from lastiterate.torch.trained import TrainedModel
from lastiterate.torch.trainer import PrivateTrainer

__all__ = ["BatchSampler", "PrivateTrainer", "Releases", "TrainedModel", "loader"]


def __dir__() -> list[str]:
    return __all__
