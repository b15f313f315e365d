"""What docs/architecture.md says of the size of the library, and of how far a question travels, is what there is."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.house import DOCUMENT, ROOT, with_tables


def test_the_document_has_the_numbers_that_make_house_prints() -> None:
    code = "from benchmarks.house import counted; print(counted())"
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.rstrip("\n")
    document = DOCUMENT.read_text(encoding="utf-8")
    assert with_tables(document, told) == document, "make house HOUSE=--write"
