"""The parser of the command line, with the options of the chosen command alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn

from lastiterate.cli.commands import COMMANDS, Command
from lastiterate.cli.show import printable


class Parser(argparse.ArgumentParser):
    """An argument parser that answers an error with one sentence, without the usage of every option."""

    def error(self, message: str, typed: str = "", known: Iterable[str] = ()) -> NoReturn:
        """Exit with one sentence, which names the one of the `known` words closest to what was typed."""
        from difflib import get_close_matches

        from lastiterate.errors import one_line, worded

        close = next(iter(get_close_matches(typed, known, 1)), None)
        self.exit(2, one_line(worded("not_understood", said=message, prog=self.prog, close=close)) + "\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit because of words that no option takes."""
        typed = unknown[0].partition("=")[0] if unknown[0].startswith("--") else ""
        self.error(f"unrecognized arguments: {' '.join(unknown)}", typed, self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            self.error(str(error), str(value), action.choices or ())

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help; unlike argparse, raise an error if it cannot be written."""
        if (stream := file or sys.stderr) is not None:
            stream.write(printable(message))


class Version(argparse.Action):
    """Print the version, looked up only on request, since the list of packages takes a while to read."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"lastiterate {version('lastiterate')}")
        parser.exit()


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; `answer` is the function of the first command named."""
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    options, unknown = parser(chosen).parse_known_args(arguments)
    if unknown:
        options.refuse(unknown)
    return options


def parser(chosen: str | None) -> argparse.ArgumentParser:
    """Return the parser with the options of the chosen command alone, which saves the imports of the others."""
    return _filled({chosen})


def full_parser() -> argparse.ArgumentParser:
    """Return the parser with the options of every command."""
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


def _listed(commands: Any, command: Command) -> Parser:
    return commands.add_parser(
        command.name,
        help=command.help,
        description=f"{command.help}.",
        epilog=f"example: lastiterate {command.usage}",
    )


def _fill(parser: Parser, command: Command) -> None:
    module = command.module()
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(answer=module.answer, refuse=parser.refuse)
    module.add_options(parser)
