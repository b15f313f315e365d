"""The examples of CONTRIBUTING.md, word for word, in a copy of the library: one file, one line, and the laws hold."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import lastiterate as li
from raising import raises

ROOT = Path(__file__).parent.parent
SECTION = (ROOT / "CONTRIBUTING.md").read_text().split("## Extend the library")[-1]
BLOCKS = [block.split("\n", 1) for block in re.findall(r"```python\n(.*?)```", SECTION, re.S)]


@dataclass(frozen=True)
class Walk:
    """A new file, and the line that lists what is in it."""

    file: str
    code: str
    registry: str
    list: str
    line: str
    imported: str


def walks() -> list[Walk]:
    found = []
    for (path, code), (where, listed) in zip(BLOCKS[::2], BLOCKS[1::2], strict=True):
        name, registry = where.removeprefix("# ").split(" in ")
        imported, line = listed.strip().split("\n")
        found.append(Walk(path.removeprefix("# "), code, registry, name, line, imported))
    return found


WALKS = dict(zip(("noise", "loss", "batches", "theorem"), walks(), strict=True))
LAWS = {
    "noise": ("tests/laws/test_kinds.py", "square_root", 9),
    "loss": ("tests/laws/test_kinds.py", "log_cosh", 3),
    "batches": ("tests/laws/test_kinds.py", "strided", 7),
    "theorem": ("tests/laws/test_every_theorem.py", "mine", 8),
}


def copy_of_the_library(folder: Path) -> Path:
    """With what is compiled of it, which counts until a file changes; not what is being compiled just now."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "*.pyc.*"))
    return folder


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return copy_of_the_library(tmp_path)


def walked(walk: Walk, copy: Path) -> dict[str, str]:
    """What is written, is written; the environment in which it counts."""
    (copy / walk.file).write_text(walk.code)
    registry = copy / walk.registry
    text = registry.read_text()
    opening = next(line for line in text.splitlines() if re.match(rf"{walk.list}\b.* = \($", line))
    text = text.replace(opening, f"{walk.imported}\n{opening}\n    {walk.line}")
    registry.write_text(text)
    return {**os.environ, "PYTHONPATH": str(copy / "src")}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the laws say of all four: they are started once, which takes as long as some of them."""
    copy = copy_of_the_library(tmp_path_factory.mktemp("walks"))
    environment = [walked(walk, copy) for walk in WALKS.values()][-1]
    files, words = dict.fromkeys(one[0] for one in LAWS.values()), " or ".join(one[1] for one in LAWS.values())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", words, "-rA"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.xdist_group("walks")
@pytest.mark.parametrize("name", WALKS)
def test_the_walk_leads_there(name: str, told: str) -> None:
    tests, words, least = LAWS[name]
    assert not re.findall(rf"^(?:FAILED|ERROR).*{words}.*", told, re.M), told[-3000:]
    assert len(re.findall(rf"^PASSED {tests}::.*{words}", told, re.M)) >= least, told[-3000:]


@pytest.mark.parametrize(("name", "made"), [("noise", "SquareRoot(std=0.3)"), ("batches", "Strided(12, 4)")])
def test_a_new_kind_is_a_public_name(name: str, made: str, copied: Path) -> None:
    environment = walked(WALKS[name], copied)
    command = [sys.executable, "-c", f"import lastiterate as li; print(li.parts.{made})"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert answer.strip().startswith(made.removeprefix("li.").split("(")[0])


def test_a_kind_that_is_not_listed_is_not_written(copied: Path) -> None:
    """It trains and accounts, but says plainly that no file can hold it."""
    code = (
        "import lastiterate as li\n"
        "class Mine(li.OnIterate): pass\n"
        "loss = li.losses.logistic(feature_norm=1.0)\n"
        "run = li.Run(loss, li.FullBatch(10), 0.1, Mine(std=0.5), 5)\n"
        "print(li.account(run, delta=1e-5).epsilon > 0)\n"
        "try: li.write_run(run, 'run.toml')\n"
        "except li.errors.InvalidInput as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=copied, capture_output=True, text=True, check=True).stdout
    assert told.startswith("True\nnoise of type Mine cannot be written to a file or a certificate: it is not listed")


def test_a_loss_whose_facts_were_changed_is_not_written() -> None:
    """A file would hold the arguments, and read other facts out of them."""
    loss = replace(li.losses.logistic(feature_norm=1.0), smoothness=0.1)
    run = li.Run(loss, li.FullBatch(10), 0.1, li.OnIterate(std=0.5), 5)
    with raises("kind_not_listed", "loss", kind=li.errors.InvalidInput):
        _ = li.account(run, delta=1e-5).certificate
