from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Before numpy and torch are loaded: one process for each core is quicker than several threads that wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Tests start Python dozens of times: what is compiled once need not be compiled again, whatever the shell says.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

# A shell starts jobs in the background so that they ignore Ctrl-C, and the processes that tests start would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until everything is loaded: nothing of it is garbage

sys.path.insert(0, str(Path(__file__).parent))

import browsing  # noqa: E402
from sampling import sampled  # noqa: E402

settings.register_profile("lastiterate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("lastiterate")

# Tests that share something that takes long to make: one worker of a parallel run makes it, and no other waits for it.
SHARED = {
    "test_errata": "errata",
    "test_scikit_learn_agrees": "scikit-learn",
    "tests/certificate/test_certificate.py": "certificates",
    "tests/kernel/test_second_checker.py": "second checker",
    "tests/laws/test_refusals.py": "refusals",
    "tests/test_benchmarks.py::test_the_": "benchmarks",
    "tests/test_site.py": "site",
    "tests/web/": "planner",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample", type=int, default=1, metavar="N", help="about one in N of the laws, each at least once"
    )


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = _papers_at_the_ends(sampled(items, config.getoption("--sample")))
    for item in items:
        if "test_every_theorem.py" in item.nodeid and "[" in item.nodeid:  # examples are drawn for each theorem
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("[")[2].rstrip("]")))
        for part, group in SHARED.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="module")  # while it runs, nothing else in its process can run an event loop
def browser() -> Iterator[Any]:
    with browsing.started() as browser:
        yield browser


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from scheduling import Forgetful

    return Forgetful(config, log)


def pytest_collection_finish() -> None:
    """What is loaded now stays: collections need not go through it."""
    gc.freeze()
    gc.enable()


def _papers_at_the_ends(items: list[pytest.Item]) -> list[pytest.Item]:
    """All exhibits of the papers are made by the first test, and looked at by the last ones: so nobody waits for them."""
    papers = [item for item in items if "shown" in getattr(item, "fixturenames", ())]
    return [*papers[:1], *(item for item in items if "shown" not in getattr(item, "fixturenames", ())), *papers[1:]]
