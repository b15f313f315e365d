"""An answer that is sent while it is computed, and given up when its reader leaves."""

from __future__ import annotations

import asyncio
from json import dumps, loads

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lastiterate.errors import worded
from lastiterate.web.workers import TooBusy, Workers

_HEADERS = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]


class Answer(Response):
    """Lines of JSON; the first one decides on the status: 422 if it says what is wrong with the question."""

    def __init__(self, workers: Workers, question: bytes) -> None:
        self.workers, self.question = workers, question
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending, leaving = asyncio.create_task(self._sent(send)), asyncio.create_task(_left(receive))
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        for outcome in await asyncio.gather(sending, leaving, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def _sent(self, send: Send) -> None:
        try:
            async with self.workers.answer(self.question) as lines:
                broken = f"{dumps({'error': worded('computation_ended'), 'broken': True})}\n".encode()
                first = await anext(lines, broken)
                await _begin(send, _status(first))
                await _line(send, first)
                async for line in lines:
                    await _line(send, line)
                if not lines.ended and first != broken:
                    await _line(send, broken)
        except TooBusy as error:
            await _begin(send, 503)
            await _line(send, f"{dumps({'error': str(error)})}\n".encode())
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _begin(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(_HEADERS)})


async def _line(send: Send, line: bytes) -> None:
    await send({"type": "http.response.body", "body": line, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _status(line: bytes) -> int:
    answer = loads(line)
    if "error" not in answer:
        return 200
    return 500 if answer.get("broken") else 422
