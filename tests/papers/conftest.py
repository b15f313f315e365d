"""All exhibits, made once in their quick form, without MNIST."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lastiterate.papers.reproduce import Shown, reproduce


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.fixture(scope="session")
def shown(folder: Path) -> Sequence[Shown]:
    return reproduce(out=folder, quick=True, workers=1)
