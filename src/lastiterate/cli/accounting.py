"""`lastiterate account`, `calibrate` and `compare`."""

from __future__ import annotations

import argparse
import math
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import NOISE, STEPS, calibrate
from lastiterate.accounting.each import RecordReport, account_each
from lastiterate.accounting.report import Report
from lastiterate.algorithms.files import read_run, run_to_toml, write_run
from lastiterate.cli.show import add, show


def account_command(options: argparse.Namespace) -> int:
    """The report comes first: what cannot be written afterwards does not lose it."""
    run = read_run(options.run)
    found: Report | RecordReport
    if options.each:
        found = account_each(run, options.delta, options.releases)
        content = {"delta": found.delta, "epsilons": found.batch_epsilons.tolist()}
    else:
        found = account(run, options.delta, options.releases)
        content = found.to_dict()
    show(options, content, "" if options.json else str(found))
    if options.certificate:
        found.save_certificate(options.certificate)
        checked_with = f"check it with: lastiterate verify {options.certificate}"
        add(options, f"\ncertificate: {options.certificate} ({checked_with})")
    if options.plot:
        found.plot(options.plot)
        add(options, f"plot: {options.plot}")
    return 0


def calibrate_command(options: argparse.Namespace) -> int:
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


def compare_command(options: argparse.Namespace) -> int:
    report = account(read_run(options.run), options.delta, options.releases)
    lines = [f"epsilon at delta = {report.delta:g}, replace one record", ""]
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        lines.append(f"{epsilon:12.6g}  {_times(epsilon, report.epsilon):8.3g}x  {guarantee.theorem.name}")
    lines += [f"{'-':>12}  {'':>9}  {one.theorem.name}: {'; '.join(one.reasons)}" for one in report.inapplicable]
    if options.plot:
        report.plot_comparison(options.plot)
        lines += ["", f"plot: {options.plot}"]
    show(options, {name: report.to_dict()[name] for name in ("delta", "guarantees", "inapplicable")}, "\n".join(lines))
    return 0


def _times(epsilon: float, best: float) -> float:
    """How many times the best; 0 is once 0, and anything else is infinitely more."""
    if epsilon == best:
        return 1.0
    return epsilon / best if best > 0 else math.inf


def _number(value: Any) -> str:
    return f"from {min(value):.9g} to {max(value):.9g}" if isinstance(value, tuple) else f"{value:.9g}"
