"""`lastiterate serve` as a process: its address, its end, and what it says if it cannot begin."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lastiterate.cli import main

ROOT = Path(__file__).parents[2]


def test_it_prints_its_address_answers_and_ends_at_ctrl_c() -> None:
    command = [
        sys.executable,
        "-m",
        "lastiterate",
        "serve",
        str(ROOT / "examples" / "mnist.toml"),
        "--no-browser",
        "--json",
    ]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert served.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        text += served.stdout.readline()
    address = json.loads(text)["address"]
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{address}start") as response:
        assert json.load(response)["run"]["loss"]["smoothness"] == 32.002
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address.rsplit("/", 2)[0])
    assert caught.value.code == 403
    caught.value.close()
    served.send_signal(signal.SIGINT)
    _, said = served.communicate(timeout=30)
    assert (served.returncode, said) == (0, "")


def test_without_its_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "lastiterate.web.serve", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "--no-browser"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "lastiterate: lastiterate serve needs Starlette and uvicorn. Install them with: pip install 'lastiterate[web]'.\n"
    )


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_refused(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-browser", "--port", str(port)]) == 2
    assert "port must be from 0" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_a_delta_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-browser", "--delta", "2"]) == 2
    assert "delta must be" in capsys.readouterr().err
