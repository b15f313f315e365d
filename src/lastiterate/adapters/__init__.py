"""Other libraries, spoken to in their own words; each is loaded when it is used.

`li.adapters.opacus` and `li.adapters.dp_accounting` need the extras `lastiterate[opacus]` and `lastiterate[dp-accounting]`.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["dp_accounting", "opacus"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"lastiterate.adapters.{name}")


def __dir__() -> list[str]:
    return __all__
