"""The command `lastiterate completion`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from lastiterate.cli.show import show
from lastiterate.errors import Unavailable

_SHELLS = ("bash", "zsh", "fish")
_FOLDERS, _FILES = {"DIR"}, {"FILE", "RUN", "certificate", "data", "file", "run", "what"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help='your shell; for bash: eval "$(lastiterate completion bash)"')


def answer(options: argparse.Namespace) -> int:
    """Print a completion script, made by shtab, which needs neither shtab nor Python."""
    try:
        import shtab
    except ImportError as error:
        raise Unavailable("completion_without_shtab") from error
    from lastiterate.cli.parser import full_parser

    parser = full_parser()
    for action in _actions(parser):
        name = action.metavar or action.dest
        if name in _FOLDERS | _FILES:
            action.complete = shtab.DIRECTORY if name in _FOLDERS else shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(parser, options.shell)
    show(options, {"shell": options.shell, "script": script}, script)
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
