"""One page for one reader: on this machine alone, under an address that nobody can guess, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lastiterate.errors import InvalidInput, must_be, worded

try:
    import uvicorn

    from lastiterate.web.app import application
    from lastiterate.web.workers import Workers
except ImportError as error:
    raise ImportError(worded("web_not_installed")) from error

from lastiterate.runs.batches import Cyclic
from lastiterate.runs.length import epochs
from lastiterate.runs.losses import logistic
from lastiterate.runs.noise import OnMeanGradient
from lastiterate.runs.run import Run
from lastiterate.web.form import start

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
    """What the page starts with if it is given nothing: every curve is there, and answers come at once."""
    return Run(
        loss=logistic(feature_norm=1.0, l2=0.01),
        batches=Cyclic(records=60_000, batch_size=1_500),
        step_size=0.5,
        noise=OnMeanGradient(std=0.002),
        steps=epochs(50),
    )


class _Server(uvicorn.Server):
    """Its end is the end of every computation, so that no answer is waited for."""

    def __init__(self, config: uvicorn.Config, workers: Workers) -> None:
        super().__init__(config)
        self.workers = workers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.workers.close()
        await super().shutdown(sockets)


@dataclass(frozen=True, eq=False)
class Planner:
    """A page that is about to be served: the socket listens already."""

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
        """Until Ctrl-C, which is the usual end."""
        if browser:
            threading.Thread(target=webbrowser.open, args=(self.address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            self.server().run(sockets=[self.listening])


def planner(run: Run | None, delta: float, port: int = 0) -> Planner:
    """On this port, or on any that is free."""
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
