"""The only place where facts become sentences: English, the text of a report, its notebook card, and the page to sign."""

from lastiterate.report import english

__all__ = ["english"]
