"""tools/check_certificate.py, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

TOOL = Path(__file__).parents[1] / "tools" / "check_certificate.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("check_certificate", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


checker = _loaded()
