"""The planner, asked through HTTP as the page asks it; without the extra `web` its tests are left out."""

from __future__ import annotations

from collections.abc import Iterator
from json import loads
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra web is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from planner_address import PORT, TOKEN, Ask
from starlette.testclient import TestClient

from lastiterate.web.form import as_form, start
from lastiterate.web.serve import application, example
from lastiterate.web.workers import Workers


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    app = application(TOKEN, PORT, start(example(), 1e-5), Workers())
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


@pytest.fixture
def ask(client: TestClient) -> Ask:
    """Status and lines of an answer, without those of progress."""

    def asked(**question: Any) -> tuple[int, list[dict[str, Any]]]:
        response = client.post(f"/{TOKEN}/ask", json=question)
        lines = [loads(line) for line in response.text.splitlines()]
        return response.status_code, [line for line in lines if "progress" not in line]

    return asked


@pytest.fixture
def run() -> dict[str, Any]:
    """That with which the page begins."""
    return as_form(example())
