"""Computations that nobody waits for stop; too many are refused; a process that dies is replaced."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.web import workers as module
from lastiterate.web.form import as_form
from lastiterate.web.serve import Answer, example
from lastiterate.web.workers import TooBusy, Workers
from raising import raises

on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="CPU time is read from /proc")


def question(run: li.Run, *parts: str) -> bytes:
    return json.dumps({"ask": "account", "run": as_form(run), "delta": 1e-6, "parts": parts}).encode()


QUICK = question(example(), "answer")
TOLD = question(replace(example(), batches=li.Shuffled(60_000, 1_500)))  # seconds, and its progress is told
UNTOLD = question(  # seconds in one piece
    li.Run(
        li.losses.logistic(feature_norm=1.0),
        li.Cyclic(1000, 50),
        0.02,
        li.OnMeanGradient(0.4),
        2000,
        optimizer=li.SGD(momentum=0.9),
    )
)


def run(work: Callable[[Workers], Awaitable[Any]]) -> Any:
    async def opened() -> Any:
        workers = Workers(1)
        await workers.open()
        try:
            return await work(workers)
        finally:
            await workers.close()

    return asyncio.run(opened())


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


async def answered(workers: Workers, question: bytes = QUICK) -> dict[str, Any]:
    async with workers.answer(question) as lines:
        found = [json.loads(line) async for line in lines]
    return found[-1]


@on_linux
@pytest.mark.parametrize("long", [TOLD, UNTOLD], ids=["told", "untold"])
def test_a_computation_that_is_cancelled_burns_no_more_cpu(long: bytes) -> None:
    """It stops by itself where it tells its progress, and is ended where it does not."""

    async def work(workers: Workers) -> None:
        async with workers.answer(long) as lines:
            pid = lines.process.pid
            before = cpu_seconds(pid)
            await asyncio.sleep(0.4)
            assert cpu_seconds(pid) > before
        spent = cpu_seconds(pid) if alive(pid) else None
        await asyncio.sleep(0.5)
        assert not alive(pid) or spent is None or cpu_seconds(pid) - spent < 0.1
        assert (await answered(workers))["part"] == "answer"

    run(work)


def test_a_process_that_dies_is_replaced_and_its_reader_is_told() -> None:
    async def work(workers: Workers) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            await asyncio.sleep(3600)

        answer = asyncio.create_task(Answer(workers, UNTOLD)({"type": "http"}, receive, send))
        while not workers.busy:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.05)
        os.kill(workers.busy[0].pid, signal.SIGKILL)
        await answer
        assert (await answered(workers))["part"] == "answer"
        return sent

    start, *bodies = run(work)
    assert start["status"] == 500
    assert json.loads(bodies[0]["body"])["broken"]


def test_a_reader_who_leaves_ends_the_computation() -> None:
    async def work(workers: Workers) -> None:
        leaving = asyncio.Event()

        async def receive() -> Any:
            await leaving.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            assert message["type"] != "http.response.body" or b"progress" in message["body"]

        answer = asyncio.create_task(Answer(workers, UNTOLD)({"type": "http"}, receive, send))
        while not workers.busy:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.05)
        leaving.set()
        await asyncio.wait_for(answer, 10)
        assert not workers.busy

    run(work)


def test_questions_wait_for_each_other_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(workers: Workers) -> None:
        found = await asyncio.gather(*(answered(workers) for _ in range(4)))
        assert len({one["epsilon"] for one in found}) == 1
        monkeypatch.setattr(module, "_MOST_WAITING", 0)
        with raises("too_many_waiting", kind=TooBusy):
            await answered(workers)

    run(work)


def test_whoever_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(workers: Workers) -> None:
        monkeypatch.setattr(module, "_LONGEST_WAIT", 0.01)
        with raises("others_did_not_end", kind=TooBusy):
            await answered(workers)  # nothing is ready so soon

    run(work)
