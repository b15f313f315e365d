"""Each peer in an environment of its own, made on first use: the peers' requirements contradict each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS_REQUIREMENTS = ROOT / "benchmarks" / "peers" / "requirements.txt"

# One `pip install` for each tuple, in this order: torch before what asks for any torch.
INSTALLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "peers": (("torch==2.13.0",), ("-r", str(PEERS_REQUIREMENTS))),
    "diffprivlib": (("diffprivlib>=0.6.6", "scikit-learn<=1.7.2"),),
    "autodp": (("autodp>=0.2",),),
    "pld-accounting": (("PLD_accounting>=2.0",),),
}


def environment(name: str) -> Path:
    """The Python of `.venv-NAME`, one of `INSTALLS`; installed where it is missing or out of date."""
    if name not in INSTALLS:
        raise ValueError(f"environment must be one of {', '.join(INSTALLS)}. Got {name}.")
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists() or ready.read_text() != _recipe(name):
        print(f"installing into {folder.name} …", file=sys.stderr, flush=True)
        subprocess.run([os.environ.get("PYTHON", "python3"), "-m", "venv", str(folder)], check=True)
        (folder / ".gitignore").write_text("*\n")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for install in INSTALLS[name]:
            subprocess.run([*pip, *install], check=True)
        ready.write_text(_recipe(name))
    return python


def peers_python() -> Path:
    return environment("peers")


def _recipe(name: str) -> str:
    """What was installed, so that a changed requirement is noticed."""
    installs = "\n".join(" ".join(install) for install in INSTALLS[name])
    return installs + ("\n" + PEERS_REQUIREMENTS.read_text() if name == "peers" else "")
