"""What has to be believed, module by module, and the tests that concern it: a few seconds each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """A file of the library, the tests that a mutant of it meets, and words for -k."""

    file: str
    tests: str
    words: str = ""

    def path(self, source: Path) -> Path:
        return source / "lastiterate" / self.file


MODULES = (
    Module("shift/certify.py", "tests/shift/test_engine.py", "certify or no_schedule or unknown"),
    Module("shift/merge.py", "tests/shift/test_records.py"),
    Module("shift/records.py", "tests/shift/test_records.py"),
    Module("shift/steps.py", "tests/shift/test_records.py"),
    Module("shift/schedule.py", "tests/shift/test_engine.py", "no_schedule or contracting or expanding"),
    Module("theorems/places.py", "tests/theorems/test_places.py"),
    Module("training/samplers.py", "tests/training/test_samplers.py"),
    Module("algorithms/noise.py", "tests/laws/test_conventions.py"),
    Module("algorithms/losses.py", "tests/algorithms/test_losses.py"),
    Module("algorithms/lipschitz.py", "tests/algorithms/test_lipschitz.py"),
    Module("mixing/recursion.py", "tests/mixing"),
    Module("mixing/window.py", "tests/mixing"),
    Module("mixing/contraction.py", "tests/mixing"),
    Module("mixing/ends.py", "tests/mixing"),
    Module("mixing/blocks.py", "tests/mixing"),
    Module("mixing/table.py", "tests/mixing"),
    Module("privacy/conversions.py", "tests/privacy/test_notions.py"),
)
