"""Who may ask: the browser of whoever was told the address, under the name of this machine, and no other page in it."""

from __future__ import annotations

from secrets import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lastiterate.errors import worded

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
    """Refuses every request whose path does not begin with the token, or whose headers name another host or page."""

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
        """Why nobody may ask this, by its code."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self.hosts:
            return "host_refused"
        origin = headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return "origin_refused"
        if not compare_digest(scope["path"].lstrip("/").partition("/")[0].encode(), self.token):
            return "token_missing"
        return None
