"""Private training of PyTorch models, with only the last iterate released: a trainer, and its parts for your own loop.

Needs the extra `lastiterate[torch]`; PyTorch is loaded when a name is first used.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lastiterate.torch.checkpoint import Releases
    from lastiterate.torch.private_steps import PrivateSteps, clip_and_noise
    from lastiterate.torch.recording import TrainedModel
    from lastiterate.torch.sampling import BatchSampler, loader
    from lastiterate.torch.trainer import PrivateTrainer

__all__ = ["BatchSampler", "PrivateSteps", "PrivateTrainer", "Releases", "TrainedModel", "clip_and_noise", "loader"]

_MODULES = {
    "BatchSampler": "sampling",
    "PrivateSteps": "private_steps",
    "PrivateTrainer": "trainer",
    "Releases": "checkpoint",
    "TrainedModel": "recording",
    "clip_and_noise": "private_steps",
    "loader": "sampling",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("torch")
    except ImportError as error:
        from lastiterate.errors import worded

        install = "'lastiterate[torch]'"
        raise ImportError(
            worded("torch_library_missing", module=__name__, library="PyTorch", install=install)
        ) from error
    return getattr(import_module(f"lastiterate.torch.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
