"""A process that takes cases one by one: `command 17` or `call 17` on its standard input, one line of JSON for each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import lastiterate as li
from benchmarks.attack.calls import Call, has_nan
from benchmarks.attack.commands import drawn_command
from lastiterate.cli import main

_MOST_VIRTUAL = 6 << 30
_LONGEST = 320
_NAN = re.compile(r"\bnan\b", re.IGNORECASE)


def case(kind: str, seed: int, folder: Path) -> dict[str, Any]:
    """What became of it: answered, refused, or a fault."""
    source = random.Random(f"{kind} {seed}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = _command(source, folder) if kind == "command" else _call(source, folder)
    odd = [str(one.message) for one in said if not issubclass(one.category, li.errors.PrivacyLeak) and _ours(one)]
    if odd and found["fault"] is None:
        found |= {"fault": "traceback", "detail": f"a warning: {odd[0]}"}
    return found


def _ours(warning: warnings.WarningMessage) -> bool:
    """matplotlib may lack a letter, and functions that the attack itself passes may do as they like."""
    return "matplotlib" not in str(warning.filename) and "attack" not in str(warning.filename)


def _command(source: random.Random, folder: Path) -> dict[str, Any]:
    arguments = drawn_command(source, folder)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    what = "lastiterate " + " ".join(map(ascii, arguments))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    except Exception as error:
        return _fault(what, "traceback", error)
    # What an estimator learnt outside the mechanism is warned of, before anything else can go wrong.
    said = "".join(line for line in err.getvalue().splitlines(True) if not line.startswith("warning: "))
    if code == 2 and (said.count("\n") != 1 or len(said) > _LONGEST):
        return {"what": what, "outcome": "refused", "fault": "traceback", "detail": f"not one sentence: {said[:400]!r}"}
    text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    shown = [
        line for line in text.splitlines() if not line.startswith(("plot:", "certificate:", "written to", "rejected:"))
    ]
    if code != 2 and _NAN.search("\n".join(shown)):
        return {"what": what, "outcome": "answered", "fault": "nan", "detail": text[:300]}
    return {"what": what, "outcome": "refused" if code == 2 else "answered", "fault": None, "detail": said[:300]}


def _call(source: random.Random, folder: Path) -> dict[str, Any]:
    call = Call(source, folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            returned = call.run()
    except li.errors.LastIterateError as error:
        fault = None if len(str(error)) <= 300 and "\n" not in str(error) else "traceback"
        return {"what": call.said, "outcome": "refused", "fault": fault, "detail": str(error)}
    except Exception as error:
        return _fault(call.said, "traceback", error)
    fault = "nan" if has_nan(returned) else None
    return {"what": call.said, "outcome": "answered", "fault": fault, "detail": str(returned)[:200] if fault else ""}


def _fault(what: str, kind: str, error: Exception) -> dict[str, Any]:
    places = [f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)[-5:]]
    detail = f"{type(error).__name__}: {ascii(str(error))[:200]} at {' '.join(places)}"
    return {"what": what, "outcome": "answered", "fault": kind, "detail": detail}


def _peak() -> float:
    """In gigabytes, since the process began."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def serve() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_VIRTUAL, _MOST_VIRTUAL))
    answers = os.fdopen(os.dup(1), "w")
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    home = Path(tempfile.mkdtemp(prefix="attack-"))
    os.chdir(home)
    for line in sys.stdin:
        kind, seed = line.split()
        folder = home / "case"
        folder.mkdir()
        found = case(kind, int(seed), folder) | {"peak": _peak()}
        shutil.rmtree(folder, ignore_errors=True)
        answers.write(json.dumps(found) + "\n")
        answers.flush()
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    serve()
