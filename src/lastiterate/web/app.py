"""The page, and the one address under which it asks: questions are JSON, answers are lines of JSON, part by part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from json import loads
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lastiterate.errors import worded
from lastiterate.web.guard import Guard
from lastiterate.web.streaming import Answer
from lastiterate.web.workers import Workers

STATIC = Path(__file__).parent / "static"
LARGEST_QUESTION = 2**20  # bytes


def application(token: str, port: int, start: dict[str, Any], workers: Workers) -> Guard:
    """Under /token/: the page, what it starts with, and what it asks."""

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
    """As long as it is not too long."""
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
