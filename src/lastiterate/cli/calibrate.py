"""The command `lastiterate calibrate`."""

from __future__ import annotations

import argparse
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import Free, calibrate
from lastiterate.cli.options import add_releases, add_run
from lastiterate.cli.show import Extra, show, written
from lastiterate.cli.trials import add_trials, trials_in
from lastiterate.curves.trials import trials_to_dict
from lastiterate.errors import checked_choice, worded
from lastiterate.runs.files import check_ending, read_run, run_to_toml, write_run
from lastiterate.runs.run import Run
from lastiterate.selection.select import select


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="target epsilon; the result never exceeds it")
    names = [one.name.lower() for one in Free]
    parser.add_argument("--free", choices=names, default="noise", help="setting that may change (default: noise)")
    parser.add_argument(
        "--most-steps", type=int, default=1_000_000, help="with --free steps, upper limit (default: 1000000)"
    )
    parser.add_argument("--write", metavar="FILE", help="write the calibrated run, as .toml or .json")
    add_releases(parser)
    add_trials(parser, required=False)


def answer(options: argparse.Namespace) -> int:
    run = read_run(options.run)
    if options.write:
        check_ending(options.write)
    free, trials = checked_choice("free", options.free, Free), trials_in(options)
    found = calibrate(
        run,
        epsilon=options.epsilon,
        delta=options.delta,
        free=free,
        most_steps=options.most_steps,
        releases=options.releases,
        trials=trials,
    )
    report = account(found, options.delta, [release for release in options.releases if release < found.steps])
    name, value = _free_entry(found, free)
    text = worded(
        "calibrated",
        setting=name,
        value=value,
        before=_free_entry(run, free)[1],
        target=options.epsilon,
        delta=options.delta,
        epsilon=report.epsilon,
        theorem=report.best.theorem.name,
    )
    content = report.to_dict()
    if trials is not None:
        total = float(select(report, trials=trials).epsilon(options.delta))
        content["search"] = {"epsilon": total, "trials": trials_to_dict(trials)}
        text += worded("calibrated_search", epsilon=total, **trials_to_dict(trials))
    if free is Free.STEPS and found.steps + found.batches.per_epoch > options.most_steps:
        text += "\n" + worded("calibrated_to_most_steps", most_steps=options.most_steps)
    text += "" if options.write else f"\n\n{run_to_toml(found).rstrip()}"
    show(options, content, text)
    return written(options, Extra(options.write, lambda path: write_run(found, path), "written_run"))


def _free_entry(run: Run, free: Free) -> tuple[str, Any]:
    """Name and value of the setting of the run that was free to change."""
    if free is Free.NOISE:
        return run.noise.size, getattr(run.noise, run.noise.size)
    if free is Free.BATCH_SIZE:
        return "batch size", run.batches.divisor
    return ("step_size", run.step_size) if free is Free.STEP_SIZE else ("steps", run.steps)
