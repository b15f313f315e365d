"""One module for each command, loaded when the command is typed; the papers' reproduction by its own two commands alone."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lastiterate.cli import main
from lastiterate.cli.commands import COMMANDS, Command

ROOT = Path(__file__).parent.parent
CLI = ROOT / "src" / "lastiterate" / "cli"
OTHERS = {
    "__init__",
    "__main__",
    "commands",
    "entry",
    "interrupt",
    "options",
    "parser",
    "show",
    "streams",
    "trials",
}
ABOUT_PAPERS = {"errata", "reproduce"}
LIMIT = 0.5  # seconds of CPU
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def modules_after(arguments: list[str]) -> set[str]:
    """What a process has loaded when it has answered."""
    code = "import sys\nfrom lastiterate.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


def test_every_module_is_a_command_or_serves_all() -> None:
    assert {path.stem for path in CLI.glob("*.py")} == {command.name for command in COMMANDS} | OTHERS


@each_command
def test_each_command_says_what_may_be_typed_and_answers(command: Command) -> None:
    module = command.module()
    assert list(inspect.signature(module.answer).parameters) == ["options"]
    assert len(inspect.signature(module.add_options).parameters) == 1


@each_command
def test_each_help_has_an_example(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command.name, "--help"])
    assert caught.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{command.help}." in said
    assert f"example: lastiterate {command.usage}" in said
    assert "--json print JSON" in said


def test_the_help_lists_every_command_and_loads_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert [command.name for command in COMMANDS if f"{command.name} {command.help}" not in said] == []
    loaded = modules_after(["--help"])
    assert not {"numpy", "scipy", *(f"lastiterate.cli.{command.name}" for command in COMMANDS)} & loaded


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", "examples/mnist.toml"],
        ["account", "examples/mnist.toml", "--certificate", "{folder}/certificate.json"],
        ["calibrate", "examples/mnist.toml", "--epsilon", "1"],
        ["compare", "examples/mnist.toml"],
        ["serve", "{folder}/missing.toml"],
        ["verify", "{folder}/missing.json"],
        ["budget", "{folder}/team.sqlite", "--create", "--epsilon", "3", "--delta", "1e-5"],
        ["audit", "examples/mnist.toml", "--runs", "2"],
        ["train", "{folder}/missing.csv", "--target", "y", "--epsilon", "1"],
        ["theorems"],
        ["--help"],
        ["--version"],
    ],
    ids=lambda arguments: "-".join(word for word in arguments if word.isalpha() or word[:2] == "--"),
)
def test_no_other_command_loads_the_reproduction(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    loaded = modules_after([word.format(folder=tmp_path) for word in arguments])
    assert [name for name in loaded if name.startswith("lastiterate.reproduction")] == []


def test_every_command_is_among_those() -> None:
    assert {command.name for command in COMMANDS} >= ABOUT_PAPERS
    assert "lastiterate.reproduction.errata" in modules_after(["errata", "--effect", "typo"])


def test_the_help_takes_less_than_half_a_second() -> None:
    code = "import time\nfrom lastiterate.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "import sys\nprint(time.process_time(), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stderr) < LIMIT


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0])
def test_ctrl_c_is_one_line_from_the_first_moment_on(delay: float, tmp_path: Path) -> None:
    """Also while numpy and scipy are being imported."""
    (tmp_path / "trainer.py").write_text("import time\ntime.sleep(60)\n")
    code = "import sys\nfrom lastiterate.cli import main\nprint('ready', flush=True)\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "audit", str(tmp_path / "trainer.py")]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    time.sleep(delay)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (130, b"lastiterate: interrupted.\n")
