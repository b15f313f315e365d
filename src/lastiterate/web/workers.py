"""Processes that compute, so that the page stays awake and what nobody waits for really stops."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from lastiterate.errors import LastIterateError

_COMMAND = (sys.executable, "-P", "-m", "lastiterate.web.worker")
_END, _READY, _STOP = b'{"end": true}\n', b'{"ready": true}\n', b"stop\n"
_LONGEST_LINE = 2**26  # bytes: a certificate with schedules is one line
_PATIENCE = 0.3  # seconds for a computation to stop by itself
_MOST_WAITING = 8
_LONGEST_WAIT = 60.0  # seconds


class TooBusy(LastIterateError):
    """All workers are busy, and as many questions wait as are allowed."""


class Workers:
    """A pool of `count` processes that answer one question each at a time; other questions wait.

    One process more is kept ready, so that nobody waits for the successor of one that had to be ended.
    """

    def __init__(self, count: int = 2) -> None:
        self._count, self._waiting = count, 0
        self._turns = asyncio.Semaphore(count)
        self._free: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        self._all: set[Process] = set()
        self.busy: list[Process] = []
        self._closed = False
        self._starting: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        for _ in range(self._count + 1):
            self._start_another()

    async def close(self) -> None:
        """Stop all processes; questions that wait are told that there will be no answer."""
        self._closed = True
        for _ in range(self._waiting):
            self._free.put_nowait(None)
        await asyncio.gather(*(self._end(process) for process in list(self._all)))
        await asyncio.gather(*self._starting)

    @asynccontextmanager
    async def answer(self, question: bytes) -> AsyncIterator[AnswerLines]:
        """Give the lines of the answer; the computation stops if the block is left before the last one."""
        process = await self._in_turn()
        lines = AnswerLines(process)
        self.busy.append(process)
        try:
            assert process.stdin is not None
            process.stdin.write(question.replace(b"\n", b" ") + b"\n")
            yield lines
        finally:
            await asyncio.shield(self._given_back(process, lines))

    async def _in_turn(self) -> Process:
        """Return a process as soon as one is free, or raise TooBusy."""
        if self._waiting >= _MOST_WAITING or self._closed:
            raise TooBusy("too_many_waiting")
        self._waiting += 1
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                return await self._next()
        except TimeoutError:
            raise TooBusy("others_did_not_end") from None
        finally:
            self._waiting -= 1

    async def _next(self) -> Process:
        await self._turns.acquire()
        try:
            process = await self._free.get()
            if process is None:
                raise TooBusy("planner_stopped")
        except BaseException:
            self._turns.release()
            raise
        return process

    async def _given_back(self, process: Process, lines: AnswerLines) -> None:
        """Reuse the process if it is done or stops in time; otherwise end it and start another."""
        reusable = lines.ended or await _stopped(process, lines)
        self.busy.remove(process)
        if reusable:
            self._free.put_nowait(process)
        else:
            await self._end(process)
            self._start_another()
        self._turns.release()

    def _start_another(self) -> None:
        if self._closed:
            return
        task = asyncio.create_task(self._start())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self) -> None:
        process = await create_subprocess_exec(*_COMMAND, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE)
        self._all.add(process)
        assert process.stdout is not None
        if self._closed:
            await self._end(process)
        elif await process.stdout.readline() == _READY:
            self._free.put_nowait(process)

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class AnswerLines:
    """Lines of an answer from a process, up to its end."""

    def __init__(self, process: Process) -> None:
        self.process, self.ended = process, False

    def __aiter__(self) -> AnswerLines:
        return self

    async def __anext__(self) -> bytes:
        if self.ended:
            raise StopAsyncIteration
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if line == _END:
            self.ended = True
            raise StopAsyncIteration
        if not line:
            raise StopAsyncIteration
        return line


async def _stopped(process: Process, lines: AnswerLines) -> bool:
    """Ask the process to stop, and return whether it did in time."""
    assert process.stdin is not None
    try:
        process.stdin.write(_STOP)
        async with asyncio.timeout(_PATIENCE):
            async for _ in lines:
                pass
    except (TimeoutError, ConnectionError):
        return False
    return lines.ended
