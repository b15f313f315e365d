"""Laws that every theorem obeys, for a theorem of your own."""

from lastiterate.testing.laws import CheckedTheorem, LawBroken, check_theorem

__all__ = ["CheckedTheorem", "LawBroken", "check_theorem"]


def __dir__() -> list[str]:
    return __all__
