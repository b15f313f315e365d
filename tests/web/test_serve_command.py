"""`lastiterate serve` as a process: its address, its end, and what it says if it cannot begin."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from test_planner_workers import TOLD, on_linux

from lastiterate.cli import main

MNIST = str(Path(__file__).parents[2] / "examples" / "mnist.toml")


@contextmanager
def served() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and its address."""
    command = [sys.executable, "-m", "lastiterate", "serve", MNIST, "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        yield process, json.loads(text)["address"]


def children(pid: int) -> list[int]:
    """Those that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = path.read_text().rpartition(") ")[2].split()
            found += [int(path.parent.name)] * (int(parent) == pid and state != "Z")
    return found


def gone(pids: list[int]) -> bool:
    """Within some seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = [Path(f"/proc/{pid}/stat") for pid in pids]
        if not [path for path in left if path.exists() and path.read_text().rpartition(") ")[2][0] != "Z"]:
            return True
        time.sleep(0.05)
    return False


def begin(address: str) -> HTTPConnection:
    """A computation that takes long, and is begun when this returns."""
    place = urlsplit(address)
    connection = HTTPConnection(place.netloc)
    connection.request("POST", f"{place.path}ask", TOLD, {"Content-Type": "application/json"})
    connection.getresponse().readline()  # of progress
    return connection


def test_it_prints_its_address_answers_and_ends_at_ctrl_c() -> None:
    with served() as (process, address):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}start") as response:
            assert json.load(response)["run"]["loss"]["smoothness"] == 32.002
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(address.rsplit("/", 2)[0])
        assert caught.value.code == 403
        caught.value.close()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (0, "")


@on_linux
def test_ctrl_c_ends_a_computation_in_silence() -> None:
    with served() as (process, address):
        connection = begin(address)
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        connection.close()
        assert (process.returncode, said) == (0, "")
        assert gone(workers)


@on_linux
def test_no_computation_survives_the_server() -> None:
    with served() as (process, address):
        connection = begin(address)
        workers = children(process.pid)
        process.kill()
        process.communicate()
        connection.close()
        assert workers
        assert gone(workers)


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
