"""The command line as a process: closed, full and narrow streams, odd names, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lastiterate as li
from lastiterate.cli import main

ROOT = Path(__file__).parent.parent.parent
MNIST = str(ROOT / "examples" / "mnist.toml")


def process(*arguments: str | bytes, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lastiterate", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **options})  # type: ignore[call-overload]


def ended(started: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = started.communicate(timeout=60)
    return started.returncode, out, err


@pytest.mark.parametrize("arguments", [("theorems",), ("--help",)])
def test_a_full_device_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        code, _, err = ended(process(*arguments, stdout=full))
    assert code == 2
    assert err == b"lastiterate: the output cannot be written: No space left on device.\n"


def test_an_ascii_terminal_gets_escapes() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    code, out, err = ended(process("theorems", env=environment))
    assert (code, err) == (0, b"")
    assert out.startswith(b"shift-engine\n")
    assert out.isascii()


def test_a_reader_that_leaves_early_is_no_error() -> None:
    started = process("theorems")
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()
    assert started.stderr.read() == b""
    assert started.wait(timeout=60) == 0
    started.stderr.close()


def test_ctrl_c_is_one_line_and_130(tmp_path: Path) -> None:
    trainer = tmp_path / "trainer.py"
    trainer.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    started = process("audit", str(trainer))
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    started.send_signal(signal.SIGINT)
    code, _, err = ended(started)
    assert (code, err) == (130, b"lastiterate: interrupted.\n")


def test_ctrl_c_while_commands_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "lastiterate.cli.theorems":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "lastiterate.cli.theorems", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["theorems"]) == 130
    assert capsys.readouterr().err == "lastiterate: interrupted.\n"


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/found\xff.toml"
    code, out, err = ended(process("calibrate", MNIST, "--epsilon", "1", "--write", name))
    assert (code, err) == (0, b"")
    assert b"run: " in out
    assert Path(os.fsdecode(name)).exists()
    plot = os.fsencode(tmp_path) + b"/\xfd.png"
    assert ended(process("compare", MNIST, "--plot", plot))[::2] == (0, b"")
    assert Path(os.fsdecode(plot)).stat().st_size > 1000


def outputs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize("epsilon", ["1e308", "1e-300", "5e-324", "1e10"])
def test_targets_that_nobody_can_want_are_refused_at_once(epsilon: str, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    code, err = outputs(["calibrate", MNIST, "--epsilon", epsilon], capsys)
    assert code == 2
    assert "epsilon must be from 1e-06 to 1e+09" in err
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", MNIST, "--delta", "x"],
        ["account", "a\nb.toml"],
        ["account", "x" * 2000 + ".toml"],
        ["x" * 2000],
        ["account", MNIST, "--releases", "x\ny"],
        [],
    ],
)
def test_whatever_is_typed_the_answer_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, err = outputs(arguments, capsys)
    assert code == 2
    assert err.startswith("lastiterate: ")
    assert err.count("\n") == 1
    assert len(err) < 320


def test_a_best_epsilon_of_zero_can_be_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = li.Run(li.losses.logistic(feature_norm=1.0), li.FullBatch(1000), 1e-3, li.OnIterate(std=1e6), 3)
    li.write_run(quiet, tmp_path / "quiet.toml")
    assert li.account(quiet, 0.1).epsilon == 0
    assert main(["compare", str(tmp_path / "quiet.toml"), "--delta", "0.1"]) == 0
    assert "1x" in capsys.readouterr().out
