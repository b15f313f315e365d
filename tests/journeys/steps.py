"""What every journey does: commands of `lastiterate` in an empty folder, counted and timed."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Steps:
    """A folder, and the commands that were typed in it."""

    folder: Path
    commands: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def typed(self, command: str, code: int = 0) -> str:
        """What `lastiterate COMMAND` prints; it has to end with this exit code, and never with a traceback."""
        return self._ran(f"lastiterate {command}", ["-m", "lastiterate", *command.split()], code)

    def answered(self, command: str) -> Any:
        """The JSON that `lastiterate COMMAND --json` prints."""
        return json.loads(self.typed(f"{command} --json"))

    def scripted(self, name: str, text: str) -> Any:
        """The JSON that this Python program prints; its warnings are errors, as everywhere in these tests."""
        self.written(name, text)
        return json.loads(self._ran(f"python {name}", ["-W", "error", name], 0))

    def checked(self, tool: Path, name: str) -> str:
        """What a program of this repository, which is given this file, prints."""
        return self._ran(f"python {tool.name} {name}", [str(tool), name], 0)

    def _ran(self, command: str, arguments: list[str], code: int) -> str:
        self.commands.append(command)
        done = subprocess.run([sys.executable, *arguments], cwd=self.folder, capture_output=True, text=True)
        print(f"$ {command}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
        if done.returncode != code or "Traceback" in done.stderr:
            raise SystemExit(f"{command}: exit code {done.returncode}, and not {code}")
        return done.stdout + done.stderr

    def written(self, name: str, text: str) -> None:
        """A file that the traveller brings along, or changes."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def expect(said: str, *parts: str) -> None:
    for part in parts:
        if part not in said:
            raise SystemExit(f"expected: {part}\ngot: {said}")


def holds(sentence: str, held: bool) -> None:
    if not held:
        raise SystemExit(f"does not hold: {sentence}")


def journey(name: str, walk: Callable[[Steps], None]) -> Steps:
    """From an empty folder to the result; prints how many commands and seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(Path(folder))
        walk(steps)
        print(f"{name}: {len(steps.commands)} commands, {time.monotonic() - steps.begun:.1f} s")
    return steps
