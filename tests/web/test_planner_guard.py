"""Nobody but the reader who was told the address gets an answer, and the page fetches nothing from elsewhere."""

from __future__ import annotations

import asyncio
import re
from hashlib import sha256

import pytest
from planner_address import PORT, TOKEN
from starlette.testclient import TestClient
from starlette.types import Message

from lastiterate.web.serve import LARGEST_QUESTION, STATIC, application
from lastiterate.web.workers import Workers

PATHS = ("", "start", "static/page.js")


@pytest.mark.parametrize("path", PATHS)
def test_the_address_is_answered(client: TestClient, path: str) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert client.get(f"/{TOKEN}/{path}", headers={"host": f"{name}:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "path", [f"/{path}" for path in PATHS] + [f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "//", "/é/start", "/%00/"]
)
def test_without_the_token_nothing_is(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 403
    assert "token" in response.json()["error"]
    assert client.post(path, json={}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_under_another_name_nothing_is(client: TestClient, host: str) -> None:
    """A page whose name was made to lead here (DNS rebinding) is refused, even if it knew the token."""
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"https://127.0.0.1:{PORT}"])
def test_other_pages_are_refused(client: TestClient, origin: str) -> None:
    response = client.post(f"/{TOKEN}/ask", json={}, headers={"origin": origin})
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_every_answer_forbids_what_the_page_does_not_need(client: TestClient) -> None:
    for response in (client.get(f"/{TOKEN}/"), client.get("/"), client.get(f"/{TOKEN}/nothing")):
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"


def test_files_outside_the_page_are_not_served(client: TestClient) -> None:
    for path in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/passwd"):
        assert client.get(f"/{TOKEN}/static/{path}").status_code in (403, 404)


def test_a_question_may_not_be_too_long(client: TestClient) -> None:
    response = client.post(f"/{TOKEN}/ask", content=b" " * (LARGEST_QUESTION + 1))
    assert (response.status_code, list(response.json())) == (413, ["error", "field"])


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_said_in_one_sentence(client: TestClient, body: bytes) -> None:
    response = client.post(f"/{TOKEN}/ask", content=body)
    assert (response.status_code, response.json()["error"]) == (422, "A request must be JSON.")


def test_the_page_names_no_other_place_and_builds_no_html_from_text() -> None:
    for path in STATIC.glob("*.*"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(
            r"https?:|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        ), path
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=", text), path


def test_the_charts_are_those_that_their_readme_names() -> None:
    vendor = STATIC / "vendor"
    named = re.findall(r"^\| `([\w.-]+)` \| .* \| `(\w{64})` \|$", (vendor / "README.md").read_text(), re.MULTILINE)
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in vendor.iterdir() if path.name != "README.md"}
    assert dict(named) == found


def test_a_reader_who_leaves_while_asking_is_no_error() -> None:
    """Before the whole question has come: nothing is raised, so that the server prints nothing."""
    app = application(TOKEN, PORT, {}, Workers())
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/{TOKEN}/ask",
        "raw_path": f"/{TOKEN}/ask".encode(),
        "query_string": b"",
        "headers": [(b"host", f"127.0.0.1:{PORT}".encode())],
    }
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        told.append(message)

    asyncio.run(app(scope, receive, send))
    assert [one["type"] for one in told] == ["http.response.start", "http.response.body"]
