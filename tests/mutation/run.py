"""Plant one mistake after the other and see that the tests notice: `python tests/mutation/run.py [words]`, or `make mutate`.

Prints a table, and fails if a mutant survives. First the same tests run on the library as it is: they have to pass.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"


def pytest_says(source: Path, mutant: Mutant) -> tuple[bool, str]:
    """Whether the tests of a mutant pass on this source, and the first that fails."""
    chosen = ["-k", mutant.words] if mutant.words else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests.split(), *chosen]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run for “{mutant.what}”:\n{done.stdout}{done.stderr}")
    failed = [line.removeprefix("FAILED ") for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return done.returncode == 0, failed[0].split(" - ")[0] if failed else ""


def planted(mutant: Mutant, folder: Path) -> Path:
    """A copy of the source with this mistake in it."""
    source = folder / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "lastiterate" / mutant.file
    text = file.read_text()
    if text.count(mutant.right) != 1:
        raise SystemExit(
            f"“{mutant.what}” names code that is in {mutant.file} {text.count(mutant.right)} times, not once"
        )
    file.write_text(text.replace(mutant.right, mutant.wrong))
    return source


def caught(mutant: Mutant) -> tuple[Mutant, str, float]:
    """The test that notices the mistake, or nothing; and how long that took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        passed, failed = pytest_says(planted(mutant, Path(folder)), mutant)
    return mutant, "" if passed else failed, time.monotonic() - started


def main() -> int:
    words = sys.argv[1:]
    chosen = [one for one in MUTANTS if all(word in one.what for word in words)]
    unique = {(one.tests, one.words): one for one in chosen}.values()
    with ThreadPoolExecutor(int(os.environ.get("MUTATE_JOBS", os.cpu_count() or 1))) as pool:
        for mutant, (passed, failed) in zip(
            unique, pool.map(lambda one: pytest_says(SOURCE, one), unique), strict=True
        ):
            if not passed:
                raise SystemExit(f"{failed} fails without any mistake; it belongs to “{mutant.what}”")
        survivors = 0
        for mutant, test, seconds in pool.map(caught, chosen):
            survivors += not test
            print(f"{'caught' if test else 'SURVIVES':8} {seconds:5.1f} s  {mutant.what}", flush=True)
            if test:
                print(f"{'':18}by {test}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mistakes are caught")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
