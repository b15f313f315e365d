"""Off-the-shelf mutants of what has to be believed: `python tests/mutation/study.py [words]`, or `make mutation-study`.

The mutants are Cosmic Ray's, and so is the session file, so that a study that was stopped goes on where it was. Every mutant
meets the tests of its own module only, in a process that is forked from one in which numpy, scipy and pytest are loaded.
Prints, for each module, how many were killed, and at the end every survivor with its change. `--report` prints that alone,
`--again` meets the survivors with the tests as they are now. `--most N` meets N of each module, drawn
with a fixed seed.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import importlib
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from modules import MODULES, Module

ROOT = Path(__file__).parent.parent.parent
SESSION = ROOT / "out" / "mutation"
# Shifts and the like of floats raise at once, and would only make the figures look better.
LEFT_OUT = re.compile(
    r"core/(RemoveDecorator|ReplaceBinaryOperator_BitOr_.*|ReplaceBinaryOperator_BitAnd_(?!BitOr).*"
    r"|ReplaceBinaryOperator_.*_(RShift|LShift|BitAnd|BitXor|Mod|FloorDiv|Pow)|ReplaceBinaryOperator_(?!BitAnd).*_BitOr"
    r"|ReplaceComparisonOperator_.*_(Is|IsNot)|ReplaceUnaryOperator_.*_(Invert|Not)"
    r"|ReplaceComparisonOperator_Is.*_(Eq|NotEq|Lt|LtE|Gt|GtE))"
)
LOADED = ("numpy", "scipy.special", "scipy.optimize", "scipy.stats", "pytest", "mpmath", "hypothesis", "ssl", "pdb")
PLAIN = ("-x", "-q", "--no-header", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")
SLOWER = 3  # times as long as without a mistake, and it hangs
PATIENCE = 4.0


def sessions(module: Module) -> WorkDB:
    """The session of a module; filled with all mutants if the module has changed since."""
    SESSION.mkdir(parents=True, exist_ok=True)
    name = module.file.replace("/", "-").removesuffix(".py")
    path, copy = SESSION / f"{name}.sqlite", SESSION / f"{name}.py"
    source = module.path(ROOT / "src").read_text()
    fresh = not path.exists() or not copy.exists() or copy.read_text() != source
    if fresh:
        path.unlink(missing_ok=True)
    session = WorkDB(str(path), WorkDB.Mode.create)
    if not session.num_work_items:
        copy.write_text(source)
        init([copy], session, {})
    return session


def chosen_items(source: str, items: tuple[WorkItem, ...]) -> list[WorkItem]:
    """The mutants of a session that are not left out, in the order of their lines."""
    silent, checks = _silent_lines(source), _length_checks(source)
    kept = [
        item
        for item in items
        if not LEFT_OUT.fullmatch(item.mutations[0].operator_name)
        and item.mutations[0].start_pos[0] not in silent
        and item.mutations[0].start_pos not in checks
    ]
    return sorted(kept, key=lambda one: (one.mutations[0].start_pos, one.mutations[0].operator_name))


def mutated(source: str, item: WorkItem) -> str | None:
    """The text of a mutant; None if it is no Python, or the same program."""
    spec: MutationSpec = item.mutations[0]
    code = mutate_code(source, get_operator(spec.operator_name)(**spec.operator_args), spec.occurrence)
    with suppress(SyntaxError):
        if code is not None and ast.dump(ast.parse(code)) != ast.dump(ast.parse(source)):
            return str(code)
    return None


def _silent_lines(source: str) -> set[int]:
    """Lines of messages: what an error says is tested elsewhere, and proves nothing."""
    silent: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            silent |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return silent


def _length_checks(source: str) -> set[tuple[int, int]]:
    """Where `strict=True` is said of lists that have the same length: without it, the same program."""
    given = [
        node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.keyword) and node.arg == "strict"
    ]
    return {(value.lineno, value.col_offset) for value in given}


def met_tests(source: Path, module: Module, limit: float) -> tuple[bool, str, float]:
    """Whether the tests of this module pass, what they said, and how long they took: in a fork of this process.

    Time is that of the processor, so that nothing depends on what else the machine does.
    """
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            _run_tests(source, module, said.fileno(), limit)
        _, status, used = os.wait4(child, 0)
        said.seek(0)
        text = said.read()
    code = os.waitstatus_to_exitcode(status)
    return code == 0, "too slow" if code == -signal.SIGXCPU else text, used.ru_utime + used.ru_stime


def _run_tests(source: Path, module: Module, out: int, limit: float) -> None:
    """Never returns."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(source), str(ROOT)]
    os.chdir(ROOT)
    import pytest

    words = f"(({module.words or 'test'}) and not test_values.py) or {module.file}"
    tests = [*module.tests.split(), "tests/test_values.py", "-k", words]
    code = 3
    with suppress(BaseException):
        code = int(pytest.main([*PLAIN, *tests]))
    sys.stdout.flush()
    os._exit(code)


def planted(code: str, path: Path) -> None:
    """The module's text becomes this; what was compiled of it before is forgotten."""
    path.write_text(code)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def drawn(module: Module, items: list[WorkItem], most: int | None) -> list[WorkItem]:
    """So many mutants of a module, always the same ones; all of them in their order, if `most` is None."""
    return items if most is None else random.Random(module.file).sample(items, min(most, len(items)))


def study(module: Module, source: Path, again: bool, most: int | None) -> None:
    """Meet every mutant of this module that has no result yet."""
    path, session = module.path(source), sessions(module)
    original = path.read_text()
    survived = {job for job, one in session.results if one.test_outcome is TestOutcome.SURVIVED} if again else set()
    wanted = survived | {item.job_id for item in session.pending_work_items}
    items = chosen_items(original, session.work_items)
    among = survived | {item.job_id for item in drawn(module, items, most)}
    waiting = [item for item in items if item.job_id in wanted & among]
    if not waiting:
        return
    passed, said, seconds = met_tests(source, module, 600.0)
    if not passed:
        raise SystemExit(f"the tests of {module.file} fail without any mistake:\n{said}")
    print(f"{module.file}: {len(waiting)} mutants, {seconds:.1f} s each at most", flush=True)
    for item in waiting:
        result = met(module, path, source, original, item, SLOWER * seconds + PATIENCE)
        session.set_result(item.job_id, result)
        if result.test_outcome is TestOutcome.SURVIVED:
            print(_told(module, item, result), flush=True)
    planted(original, path)


def met(module: Module, path: Path, source: Path, original: str, item: WorkItem, limit: float) -> WorkResult:
    """What becomes of one mutant."""
    code = mutated(original, item)
    if code is None:
        return WorkResult(WorkerOutcome.NO_TEST)
    planted(code, path)
    passed, said, _ = met_tests(source, module, limit)
    change = "".join(difflib.unified_diff(original.splitlines(True), code.splitlines(True), n=0))
    outcome = TestOutcome.SURVIVED if passed else TestOutcome.KILLED
    return WorkResult(WorkerOutcome.NORMAL, said[-600:], outcome, change)


def _told(module: Module, item: WorkItem, result: WorkResult) -> str:
    changed = [line for line in (result.diff or "").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join(
        [f"  survives: {module.file}:{item.mutations[0].start_pos[0]}", *(f"    {line}" for line in changed)]
    )


def report(modules: list[Module]) -> None:
    """Killed and survived, for each module; then every survivor."""
    survivors, all_killed, all_known = [], 0, 0
    for module in modules:
        session = sessions(module)
        results = dict(session.results)
        items = chosen_items(module.path(ROOT / "src").read_text(), session.work_items)
        items = [item for item in items if item.job_id not in results or results[item.job_id].test_outcome is not None]
        known = [(item, results[item.job_id]) for item in items if item.job_id in results]
        left = [(item, result) for item, result in known if result.test_outcome is TestOutcome.SURVIVED]
        killed = len(known) - len(left)
        all_killed, all_known = all_killed + killed, all_known + len(known)
        survivors += [_told(module, *pair) for pair in left]
        share = f"{killed / len(known):.1%}" if known else ""
        print(f"{module.file:28} {len(items):5d} mutants {len(known):5d} met {killed:5d} killed {share:>7}")
    print(*survivors, sep="\n")
    if all_known:
        print(f"together: {all_killed} of {all_known} killed, {all_killed / all_known:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="of the modules to study; all, if none is given")
    parser.add_argument("--report", action="store_true", help="print what is known, and meet no mutant")
    parser.add_argument("--again", action="store_true", help="meet the survivors once more")
    parser.add_argument("--most", type=int, help="meet at most so many mutants of each module, drawn with a fixed seed")
    chosen = parser.parse_args()
    modules = [one for one in MODULES if not chosen.words or any(word in one.file for word in chosen.words)]
    if not chosen.report:
        for name in LOADED:
            importlib.import_module(name)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "src"
            shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(source, quiet=2)
            for module in modules:
                study(module, source, chosen.again, chosen.most)
    report(modules)


if __name__ == "__main__":
    main()
