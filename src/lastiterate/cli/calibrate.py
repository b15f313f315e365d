"""`lastiterate calibrate`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import NOISE, STEPS, calibrate
from lastiterate.algorithms.files import read_run, run_to_toml, write_run
from lastiterate.cli.options import add_releases, add_run
from lastiterate.cli.show import show


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="the target")
    parser.add_argument("--free", choices=("noise", "steps"), default="noise", help="what may change (default: noise)")
    parser.add_argument("--most-steps", type=int, default=1_000_000, help="with --free steps, never more than these")
    parser.add_argument("--write", metavar="FILE", help="write the run that meets it, as .toml or .json")
    add_releases(parser)


def answer(options: argparse.Namespace) -> int:
    run = read_run(options.run)
    free = NOISE if options.free == "noise" else STEPS
    found = calibrate(
        run,
        epsilon=options.epsilon,
        delta=options.delta,
        free=free,
        most_steps=options.most_steps,
        releases=options.releases,
    )
    report = account(found, options.delta, [release for release in options.releases if release < found.steps])
    if options.write:
        write_run(found, options.write)
    name = found.noise.size if free is NOISE else "steps"
    value = getattr(found.noise, name) if free is NOISE else found.steps
    before = getattr(run.noise, name) if free is NOISE else run.steps
    text = (
        f"{name} = {_number(value)} meets epsilon = {options.epsilon:g} at delta = {options.delta:g} "
        f"(it was {_number(before)}); epsilon is then {report.epsilon:.9g}, by {report.best.theorem.name}"
    )
    if free is STEPS and found.steps + found.batches.per_epoch > options.most_steps:
        text += f"\nthe target is still met there: --most-steps is {options.most_steps}"
    text += f"\nwritten to {options.write}" if options.write else f"\n\n{run_to_toml(found).rstrip()}"
    show(options, report.to_dict(), text)
    return 0


def _number(value: Any) -> str:
    return f"from {min(value):.9g} to {max(value):.9g}" if isinstance(value, tuple) else f"{value:.9g}"
