"""The command line: `lastiterate` and its commands."""

from lastiterate.cli.entry import main

__all__ = ["main"]
