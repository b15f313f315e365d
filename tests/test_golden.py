"""The words of every page are those of its golden file."""

from __future__ import annotations

import pytest

from golden import FOLDER, PAGES, text_of


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_words_of_its_golden_file(name: str) -> None:
    assert text_of(name) == (FOLDER / name).read_text(encoding="utf-8")


def test_every_golden_file_is_of_a_page() -> None:
    assert {one.name for one in FOLDER.iterdir()} == set(PAGES)
