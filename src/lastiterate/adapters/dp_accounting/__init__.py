"""Runs in Google's dp-accounting, its events as notions, and notions as its events and privacy-loss distributions."""

from lastiterate.errors import worded

try:
    import dp_accounting  # noqa: F401
except ImportError as error:
    raise ImportError(
        worded("library_missing", module=__name__, library="dp-accounting", extra="dp-accounting")
    ) from error

from lastiterate.adapters.dp_accounting.exported import (
    LastIterateAccountant,
    compose_into,
    event_of,
    privacy_loss_distribution,
)
from lastiterate.adapters.dp_accounting.imported import LastIterateDpEvent, UnsupportedEvent, notion_of
from lastiterate.adapters.dp_accounting.orders import adjacency_of, relation_of

__all__ = [
    "LastIterateAccountant",
    "LastIterateDpEvent",
    "UnsupportedEvent",
    "adjacency_of",
    "compose_into",
    "event_of",
    "notion_of",
    "privacy_loss_distribution",
    "relation_of",
]


def __dir__() -> list[str]:
    return __all__
