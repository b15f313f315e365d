"""The command line: the same words as in Python."""

from lastiterate.cli.entry import main

__all__ = ["main"]
