"""A small training whose releases are recorded, and the tutorial about that."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import lastiterate as li

DELTA = 1e-5
RUN = li.Run(
    loss=li.losses.general(smoothness=1.0, strong_convexity=0.5, gradient_sensitivity=1.0),
    batches=li.FullBatch(records=32),
    step_size=0.1,
    noise=li.OnMeanGradient(std=0.2),
    steps=20,
)
_TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorials" / "releases.md"
_BLOCK = re.compile(r"```(?:python|py|text)\n(.*?)```", re.DOTALL)


def printed_and_shown(title: str, namespace: dict[str, Any]) -> tuple[str, str]:
    """What the example under this title prints, after that of the beginning, and what the tutorial shows."""
    page = _TUTORIAL.read_text()
    beginning, section = page.partition("\n## ")[0], page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    blocks = _BLOCK.findall(beginning) + _BLOCK.findall(section)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for code in blocks[::2]:
            exec(compile(code, _TUTORIAL.name, "exec"), namespace)
    return output.getvalue(), "".join(blocks[1::2])
