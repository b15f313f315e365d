"""The local server of the page: one reader, on this machine alone, under a secret address, until Ctrl-C."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from secrets import compare_digest
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lastiterate.errors import InvalidInput, must_be, worded
from lastiterate.runs.batches import Cyclic
from lastiterate.runs.losses import logistic
from lastiterate.runs.noise import OnMeanGradient
from lastiterate.runs.per_step import epochs
from lastiterate.runs.run import Run
from lastiterate.web.form import start
from lastiterate.web.workers import TooBusy, Workers

try:
    import uvicorn

    from lastiterate.web.workers import Workers
except ImportError as error:
    raise ImportError(worded("web_not_installed")) from error

HOST = "127.0.0.1"
_TOKEN_BYTES = 24
_QUIET: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "ws": "none",
    "timeout_graceful_shutdown": 2,  # seconds
}


def example() -> Run:
    """Return the run that the page starts with by default: it has every curve, and answers come at once."""
    return Run(
        loss=logistic(feature_norm=1.0, l2=0.01),
        batches=Cyclic(records=60_000, batch_size=1_500),
        step_size=0.5,
        noise=OnMeanGradient(std=0.002),
        steps=epochs(50),
    )


class _Server(uvicorn.Server):
    """A server whose shutdown ends all computations."""

    def __init__(self, config: uvicorn.Config, workers: Workers) -> None:
        super().__init__(config)
        self.workers = workers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.workers.close()
        await super().shutdown(sockets)


@dataclass(frozen=True, eq=False)
class Planner:
    """A page that is about to be served, with a socket that listens already."""

    listening: socket.socket
    token: str
    begins_with: dict[str, Any]

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self._port}/{self.token}/"

    @property
    def _port(self) -> int:
        return int(self.listening.getsockname()[1])

    def server(self) -> uvicorn.Server:
        workers = Workers()
        app = application(self.token, self._port, self.begins_with, workers)
        return _Server(uvicorn.Config(app, **_QUIET), workers)

    def serve(self, *, browser: bool) -> None:
        """Serve the page until Ctrl-C."""
        if browser:
            threading.Thread(target=webbrowser.open, args=(self.address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            self.server().run(sockets=[self.listening])


def planner(run: Run | None, delta: float, port: int = 0) -> Planner:
    """Return a planner that listens on this port, or on any free one if it is 0."""
    if not 0 <= port < 2**16:
        raise must_be("port", "from 0 (any free port) to 65535", f"{port}")
    begins_with = start(run or example(), delta)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise InvalidInput("port_not_usable", field="port", port=port, error=error.strerror) from error
    listening.listen()
    return Planner(listening, secrets.token_urlsafe(_TOKEN_BYTES), begins_with)


# The page and its one address: questions are JSON, answers are lines of JSON, part by part.


STATIC = Path(__file__).parent / "static"
LARGEST_QUESTION = 2**20  # bytes


def application(token: str, port: int, start: dict[str, Any], workers: Workers) -> Guard:
    """Return the application: under /token/ the page, what it starts with, and its questions."""

    @asynccontextmanager
    async def alive(_: Starlette) -> AsyncIterator[None]:
        await workers.open()
        try:
            yield
        finally:
            await workers.close()

    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def started(_: Request) -> Response:
        return JSONResponse(start)

    async def asked(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:  # there is nobody left to be told
            return Response(status_code=400)
        if body is None:
            return _refused(worded("request_too_large", most=LARGEST_QUESTION), 413)
        if not _is_json(body):
            return _refused(worded("request_not_json"), 422)
        return Answer(workers, body)

    routes = [
        Route("/", page),
        Route("/start", started),
        Route("/ask", asked, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Guard(Starlette(routes=[Mount(f"/{token}", routes=routes)], lifespan=alive), token, port)


async def _body(request: Request) -> bytes | None:
    """Return the body of a request, or None if it is too long."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_QUESTION:
            return None
    return body


def _is_json(body: bytes) -> bool:
    try:
        loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(reason: str, status: int) -> Response:
    return JSONResponse({"error": reason, "field": None}, status_code=status)


# Access: the browser that was given the address, under this machine's name, and no other page in it.


_USUAL_PORT = 80  # which browsers leave out
NAMES = ("127.0.0.1", "localhost")
_POLICY = {
    "default-src": "none",
    **dict.fromkeys(("script-src", "style-src", "img-src", "connect-src"), "self"),
    "require-trusted-types-for": "script",
    **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "none"),
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{what} '{allowed}'" for what, allowed in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuse every request whose path does not begin with the token, or whose headers name another host or page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = tuple(f"{name}:{port}" for name in NAMES) + (NAMES if port == _USUAL_PORT else ())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refused = self._refusal(scope)
        answer = self.app if refused is None else JSONResponse({"error": worded(refused)}, status_code=403)
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Return the code of why a request is refused, or None."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self.hosts:
            return "host_refused"
        origin = headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return "origin_refused"
        if not compare_digest(scope["path"].lstrip("/").partition("/")[0].encode(), self.token):
            return "token_missing"
        return None


# Answers, sent while they are computed and given up when their reader leaves.


_STREAM_HEADERS = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]


class Answer(Response):
    """A response of lines of JSON; the first decides on the status: 422 if it says what is wrong."""

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
    await send({"type": "http.response.start", "status": status, "headers": list(_STREAM_HEADERS)})


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
