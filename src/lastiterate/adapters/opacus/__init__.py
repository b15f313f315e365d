"""Opacus trains, this library accounts: an accountant for its registry, and a run for what was set up there."""

from lastiterate.errors import worded

try:
    import opacus as _opacus  # noqa: F401
except ImportError as error:
    raise ImportError(
        worded("library_missing", module="li.adapters.opacus", library="Opacus", extra="opacus")
    ) from error

from lastiterate.adapters.opacus.accountant import Accountant, accountant_for
from lastiterate.adapters.opacus.described import run_of

__all__ = ["Accountant", "accountant_for", "run_of"]


def __dir__() -> list[str]:
    return __all__
