"""Every journey of this folder reaches its end, in a few seconds, as a script does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
JOURNEYS = sorted(
    path.stem for path in FOLDER.glob("*.py") if path.stem != "steps" and not path.stem.startswith("test_")
)


def test_every_user_of_the_design_has_a_journey() -> None:
    """Account, calibrate, train with scikit-learn, use a pipeline, believe, do research; plan and train; audit."""
    users = {"account", "calibrate", "scientist", "team", "officer", "researcher"}
    assert set(JOURNEYS) == users | {"engineer", "auditor"}


@pytest.mark.parametrize("name", JOURNEYS)
def test_each_journey_reaches_its_end(name: str) -> None:
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(rf"{name}: \d+ commands, [\d.]+ s", done.stdout.splitlines()[-1])
