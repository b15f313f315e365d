"""Command lines, and the files that they name."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from benchmarks.attack.runs import drawn_run
from benchmarks.attack.values import NUMBERS, WORDS, drawn

_WEIGHTS = {
    "account": 30, "calibrate": 20, "compare": 15, "verify": 12, "audit": 5, "train": 8, "theorems": 2, "reproduce": 2,
    "": 4, "errata": 1,
}  # fmt: skip
_BROKEN = (
    "",
    "{",
    "[",
    "steps = ",
    "[loss\n",
    '{"steps": }',
    "\udcff\udcfe",
    "[" * 3000,
    "null",
    "steps = 1\nsteps = 2",
    "\0",
)
_CSV = (
    "a,b,y\n1,2,0\n0,1,1\n2,0,0\n1,1,1\n" + "0.5,0.2,1\n0.1,0.9,0\n" * 8,
    "a,b,y\n",
    "",
    "a;b\n1;2\n",
    "a,y\nx,1\n",
    "a,a,y\n1,2,3\n",
    "y\n1\n",
    "a,y\nnan,0\ninf,1\n",
    "a,y\n1\n1,2,3\n",
    '"',
    "a,b,y\n1e308,1e308,0\n1,1,1\n",
)


def drawn_command(source: random.Random, folder: Path) -> list[str]:
    """Arguments for the command line; the files they name are written into the folder."""
    command = source.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    made = _MAKERS.get(command, _bare)(source, folder)
    arguments = [command, *made] if command else made
    if command and source.random() < 0.25:
        arguments.append("--json")
    if source.random() < 0.03:
        arguments.insert(
            source.randrange(len(arguments) + 1), source.choice(("--help", "--version", "--detla", "", "-x"))
        )
    # argv has no NUL: the operating system ends an argument there.
    return [argument.replace("\0", "") for argument in arguments]


def _bare(source: random.Random, folder: Path) -> list[str]:
    return [source.choice((*WORDS, "--help", "--version")) for _ in range(source.randrange(3))]


def _account(source: random.Random, folder: Path) -> list[str]:
    run = _run_file(source, folder)
    return [
        run,
        *_delta(source),
        *_releases(source),
        *_some(source, 0.1, "--each"),
        *_target(source, folder, "--certificate"),
    ]


def _calibrate(source: random.Random, folder: Path) -> list[str]:
    epsilon = _text(source, source.choice((1.0, 0.5, 3.0)) if source.random() < 0.6 else source.choice(NUMBERS))
    free = source.choice(
        ([], ["--free", "noise"], ["--free", "steps", "--most-steps", _text(source, drawn(source, "most_steps", 0.3))])
    )
    run = _run_file(source, folder)
    return [
        run,
        f"--epsilon={epsilon}",
        *_delta(source),
        *free,
        *_releases(source),
        *_target(source, folder, "--write"),
    ]


def _compare(source: random.Random, folder: Path) -> list[str]:
    arguments = [_run_file(source, folder), *_delta(source), *_releases(source)]
    if source.random() < 0.1:
        arguments += [
            "--plot",
            source.choice((str(folder / "x.png"), str(folder / "a\udcff.svg"), "/dev/full", "x.xyz", "")),
        ]
    return arguments


def _verify(source: random.Random, folder: Path) -> list[str]:
    path = folder / "certificate.json"
    path.write_text(json.dumps(_certificate(source)), errors="surrogateescape")
    if source.random() < 0.1:
        path.write_text(source.choice(_BROKEN), errors="surrogateescape")
    return [str(path), *(["--run", _run_file(source, folder)] if source.random() < 0.3 else [])]


def _certificate(source: random.Random) -> Any:
    """A real one, changed in some places."""
    import lastiterate as li

    run = li.Run(li.losses.logistic(feature_norm=1.0, l2=0.1), li.Cyclic(20, 5), 0.1, li.OnIterate(std=1.0), 8)
    content: Any = json.loads(json.dumps(li.account(run, 1e-5).certificate))
    for _ in range(source.randrange(3)):
        inner = content
        while isinstance(inner, dict | list) and inner and source.random() < 0.8:
            key = source.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            if source.random() < 0.5 or not isinstance(inner[key], dict | list):
                inner[key] = drawn(source, "x", 0.8)
                break
            inner = inner[key]
    return content


def _audit(source: random.Random, folder: Path) -> list[str]:
    if source.random() < 0.3:
        path = folder / "trainer.py"
        path.write_text(
            source.choice(
                (
                    "x = 1\n",
                    "import nothing_like_it\n",
                    "1/0\n",
                    "def train(d, s): return 'x'\ndata=neighbour=1\n",
                    "def train(data, seed): return data + seed\ndata, neighbour = 0.0, 1.0\n",
                    "def train(data, seed): raise OSError('x')\ndata, neighbour = 0.0, 1.0\n",
                    "def train(data, seed): return float('nan')\ndata, neighbour = 0.0, 1.0\n",
                )
            )
        )
        what = str(path)
    else:
        what = _run_file(source, folder)
    runs = source.choice((40, 60, 1)) if source.random() < 0.8 else source.choice((0, -1, 10**18))
    return [
        what,
        "--runs",
        str(runs),
        *_delta(source),
        *_option(source, "confidence", 0.3),
        *_option(source, "seed", 0.3),
    ]


def _train(source: random.Random, folder: Path) -> list[str]:
    path = folder / "data.csv"
    path.write_text(source.choice(_CSV) if source.random() < 0.6 else _CSV[0])
    arguments = [
        str(path) if source.random() < 0.95 else "missing.csv",
        "--target",
        source.choice(("y", "y", "y", "a", "z", "")),
    ]
    arguments += ["--model", source.choice(("logistic", "svc", "huber", "ridge"))]
    arguments.append(f"--epsilon={_text(source, drawn(source, 'epsilon', 0.2, NUMBERS))}")
    for name in ("delta", "feature-norm", "target-bound", "l2", "batches", "epochs", "step-size", "seed"):
        arguments += _option(source, name, 0.15)
    arguments += source.choice(([], ["--classes", "0", "1"], ["--classes", "0", "1"], ["--classes", "x"]))
    return [*arguments, *_target(source, folder, "--write")]


def _reproduce(source: random.Random, folder: Path) -> list[str]:
    bad = source.choice(
        (["--workers", "0"], ["--mnist", "missing"], ["--workers", "x"], ["--out", "/dev/null/x", "--workers", "1"])
    )
    return [source.choice(("kong2025", "x", "")), "--quick", "--out", str(folder / "papers"), *bad]


def _errata(source: random.Random, folder: Path) -> list[str]:
    return ["--effect", source.choice(("typo", "x", "", "loose"))]


_MAKERS = {
    "account": _account, "calibrate": _calibrate, "compare": _compare, "verify": _verify, "audit": _audit, "train": _train,
    "reproduce": _reproduce, "errata": _errata,
}  # fmt: skip


def _run_file(source: random.Random, folder: Path) -> str:
    chance = source.random()
    if chance < 0.04:
        return source.choice(
            ("missing.toml", "/", str(folder), "", "run.yaml", "a\udcff.toml", "/dev/null", "x" * 300 + ".toml")
        )
    wildness = source.choice((0.0, 0.02, 0.05, 0.1, 0.3, 0.8))
    toml = source.random() < 0.6
    path = folder / f"run{source.choice(('', '', ' ö', chr(0xDCFE)))}{'.toml' if toml else '.json'}"
    if chance < 0.08:
        content = source.choice(_BROKEN)
    else:
        content = run_to_toml(drawn_run(source, wildness)) if toml else json.dumps(drawn_run(source, wildness))
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    return str(path)


def run_to_toml(run: Any) -> str:
    """As a person would write it, whatever the values."""
    if not isinstance(run, dict):
        return f"run = {_toml(run)}\n"
    lines = [f"{json.dumps(name)} = {_toml(value)}" for name, value in run.items() if not isinstance(value, dict)]
    for section, entries in run.items():
        if isinstance(entries, dict):
            lines += [
                f"[{json.dumps(section)}]",
                *(f"{json.dumps(name)} = {_toml(value)}" for name, value in entries.items()),
            ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "2020-01-01"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(one)}" for name, one in value.items()) + " }"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _delta(source: random.Random) -> list[str]:
    return _option(source, "delta", 0.5)


def _option(source: random.Random, name: str, likely: float) -> list[str]:
    if source.random() >= likely:
        return []
    return [f"--{name}={_text(source, drawn(source, name, 0.25, NUMBERS))}"]


def _text(source: random.Random, value: Any) -> str:
    return source.choice(WORDS) if source.random() < 0.03 else str(value)


def _releases(source: random.Random) -> list[str]:
    if source.random() > 0.15:
        return []
    return ["--releases", *(str(source.choice((1, 2, 3, 0, -1, 10**18, "x", 1.5))) for _ in range(source.randrange(3)))]


def _some(source: random.Random, likely: float, *words: str) -> list[str]:
    return list(words) if source.random() < likely else []


def _target(source: random.Random, folder: Path, option: str) -> list[str]:
    if source.random() > 0.15:
        return []
    names = ("new/out.json", "out.toml", "out.json", "a\udcff.json", "", "out", "..", "x" * 300 + ".json", "\n.json")
    chosen = source.choice(("/dev/full", "/dev/null/x.json", str(folder), *(str(folder / name) for name in names)))
    return [option, chosen]
