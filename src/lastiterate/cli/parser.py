"""What may be typed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from lastiterate.cli.commands import COMMANDS, Command
from lastiterate.cli.show import printable


class Parser(argparse.ArgumentParser):
    """What cannot be understood is answered by one sentence, without the usage of every option."""

    def error(self, message: str) -> NoReturn:
        from lastiterate.errors import one_line

        self.exit(2, f"{one_line(f'lastiterate: {message}.{self._meant(message)} Try: {self.prog} --help.')}\n")

    def _meant(self, message: str) -> str:
        """The command or option that comes closest to what was typed."""
        from difflib import get_close_matches

        typed = re.search(r"unrecognized arguments: (--[\w-]+)|invalid choice: '([\w-]+)'", message)
        known = [command.name for command in COMMANDS] if typed and typed[2] else list(self._option_string_actions)
        close = get_close_matches(typed[1] or typed[2], known, 1) if typed else []
        return f" Did you mean {close[0]}?" if close else ""

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse keeps it to itself if the help cannot be written."""
        if (stream := file or sys.stderr) is not None:
            stream.write(printable(message))


class Version(argparse.Action):
    """Looked up when it is asked for: the list of installed packages takes a while to read."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"lastiterate {version('lastiterate')}")
        parser.exit()


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What was typed, with `answer`, the function of the command that was named first."""
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    options, unknown = parser(chosen).parse_known_args(arguments)
    if unknown:
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def parser(chosen: str | None) -> argparse.ArgumentParser:
    """With the options of the chosen command alone: those of another one take its imports."""
    return _filled({chosen})


def full_parser() -> argparse.ArgumentParser:
    """With the options of every command."""
    return _filled({command.name for command in COMMANDS})


def _filled(chosen: Collection[str | None]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="lastiterate",
        description="Differential privacy accounting and training when only the final model is released.",
        epilog="example: lastiterate account examples/logistic.toml --delta 1e-5",
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in COMMANDS:
        one = _listed(commands, command)
        if command.name in chosen:
            _fill(one, command)
    return parser


def _listed(commands: Any, command: Command) -> argparse.ArgumentParser:
    return commands.add_parser(
        command.name,
        help=command.what,
        description=f"{command.what}.",
        epilog=f"example: lastiterate {command.example}",
    )


def _fill(parser: argparse.ArgumentParser, command: Command) -> None:
    module = command.module()
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(answer=module.answer, refuse=parser.error)
    module.add_options(parser)
