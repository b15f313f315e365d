"""Executes notebooks: `python tools/notebooks.py [FILE …]` writes their outputs, with `--check` it compares instead.

Cells that are tagged `varies` (training draws fresh noise) have to run; what they print is not compared.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """The notebook with fresh outputs, and without times and other traces of this machine."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True).execute()
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return notebook


def texts(cell: Any) -> list[str]:
    """What a cell prints or returns as text; pictures are not compared."""
    outputs = cell.get("outputs", [])
    shown = (one["data"] for one in outputs if "data" in one and "image/png" not in one["data"])
    printed = "".join(
        one["text"] for one in outputs if "text" in one
    )  # in as many pieces as the kernel happens to send
    return [printed, *(data["text/plain"] for data in shown)]


def differences(path: Path) -> list[str]:
    """The cells whose output is not what the notebook shows."""
    before, after = nbformat.read(path, as_version=4), executed(path)
    pairs = zip(before.cells, after.cells, strict=True)
    compared = [(old, new) for old, new in pairs if "varies" not in old.metadata.get("tags", [])]
    return [f"{path.name}: {old.source}\n{texts(new)}" for old, new in compared if texts(old) != texts(new)]


if __name__ == "__main__":
    check, files = "--check" in sys.argv, [Path(name) for name in sys.argv[1:] if name != "--check"] or NOTEBOOKS
    if check:
        sys.exit("\n\n".join(found for path in files for found in differences(path)) or None)
    for path in files:
        nbformat.write(executed(path), path)
        print(path.name)
