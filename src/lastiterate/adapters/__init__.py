"""`li.adapters`: the last iterate in the accounts of other libraries. Each needs its extra, and is loaded when used."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lastiterate.adapters import dp_accounting

__all__ = ["dp_accounting"]

if not TYPE_CHECKING:

    def __getattr__(name):
        from importlib import import_module

        if name in __all__:
            return import_module(f"lastiterate.adapters.{name}")
        raise AttributeError(f"module 'lastiterate.adapters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
