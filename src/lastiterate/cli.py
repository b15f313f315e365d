"""The command line: the same words as in Python."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from lastiterate.accounting.account import account
from lastiterate.accounting.calibrate import NOISE, STEPS, calibrate
from lastiterate.accounting.certificate import verify
from lastiterate.accounting.each import account_each
from lastiterate.algorithms.files import read_run, read_text, run_to_toml, write_run
from lastiterate.auditing.audit import audit
from lastiterate.auditing.errata import ERRATA, Effect, Erratum
from lastiterate.auditing.simulate import OPPOSITE, PUSHES, simulation
from lastiterate.auditing.trainer import read_trainer
from lastiterate.errors import InvalidInput, LastIterateError, Unavailable
from lastiterate.papers import TITLES
from lastiterate.progress import progress_bar, tracked
from lastiterate.theorems.catalogue import CATALOGUE
from lastiterate.theorems.theorem import Theorem

_REJECTED, _BAD_INPUT = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all is well, 1 if a certificate is rejected, 2 with one sentence on bad input."""
    options = _parser().parse_args(arguments)
    try:
        with progress_bar():
            return int(options.command(options))
    except LastIterateError as error:
        print(f"lastiterate: {error}", file=sys.stderr)
        return _BAD_INPUT
    except BrokenPipeError:
        return 0


def _account(options: argparse.Namespace) -> int:
    run = read_run(options.run)
    if options.each:
        if options.certificate:
            raise InvalidInput("--each and --certificate do not go together. Leave one of them out.")
        records = account_each(run, options.delta, options.releases)
        if options.plot:
            records.plot(options.plot)
        _show(options, {"delta": records.delta, "epsilons": records.batch_epsilons.tolist()}, str(records))
        return 0
    report = account(run, options.delta, options.releases)
    text = "" if options.json else str(report)
    if options.certificate:
        if report.certificate is None:
            name = report.best.theorem.name
            raise InvalidInput(
                f"{name}, the best guarantee here, is a formula, with nothing to replay. Drop --certificate."
            )
        report.save_certificate(options.certificate)
        text += f"\n\ncertificate: {options.certificate} (check it with: lastiterate verify {options.certificate})"
    if options.plot:
        report.plot(options.plot)
        text += f"\nplot: {options.plot}"
    _show(options, report.to_dict(), text)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
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
    _show(options, report.to_dict(), text)
    return 0


def _compare(options: argparse.Namespace) -> int:
    report = account(read_run(options.run), options.delta, options.releases)
    lines = [f"epsilon at delta = {report.delta:g}, replace one record", ""]
    for guarantee, epsilon in zip(report.guarantees, report.epsilons, strict=True):
        lines.append(f"{epsilon:12.6g}  {epsilon / report.epsilon:8.3g}x  {guarantee.theorem.name}")
    lines += [f"{'-':>12}  {'':>9}  {one.theorem.name}: {'; '.join(one.reasons)}" for one in report.inapplicable]
    if options.plot:
        report.plot_comparison(options.plot)
        lines += ["", f"plot: {options.plot}"]
    _show(options, {name: report.to_dict()[name] for name in ("delta", "guarantees", "inapplicable")}, "\n".join(lines))
    return 0


def _verify(options: argparse.Namespace) -> int:
    try:
        content = json.loads(read_text(options.certificate))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{options.certificate} is not JSON: {error}.") from error
    verdict = verify(content, read_run(options.run) if options.run else None)
    _show(options, verdict.to_dict(), str(verdict))
    return 0 if verdict.accepted else _REJECTED


def _audit(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in ("delta", "runs", "confidence", "workers", "seed")}
    if options.what.endswith(".py"):
        trainer = read_trainer(options.what)
        found, known = audit(trainer.train, trainer.data, trainer.neighbour, **chosen), {}
    else:
        run = read_run(options.what)
        found = audit(simulation(run).train, PUSHES, OPPOSITE, **chosen)
        report = account(run, options.delta)
        known = {"lower_bound": report.sandwich.lower.epsilon, "proved": report.epsilon}
    text = str(found)
    if known:
        text += (
            f"\nan exact instance costs {known['lower_bound']:.4g}, and no more than {known['proved']:.4g} is proved"
        )
    if options.plot:
        found.plot(options.plot)
        text += f"\nplot: {options.plot}"
    _show(options, {**found.to_dict(), **known}, text)
    return 0


def _train(options: argparse.Namespace) -> int:
    """scikit-learn is loaded here only."""
    try:
        from lastiterate.estimators.command import train_table
    except ImportError as error:
        raise Unavailable(
            f"training needs scikit-learn ({error}). Install it with: pip install 'lastiterate[estimators]'."
        ) from error
    _show(options, *train_table(options))
    return 0


def _theorems(options: argparse.Namespace) -> int:
    _show(options, {"theorems": [_theorem(one) for one in CATALOGUE]}, "\n\n".join(map(_theorem_text, CATALOGUE)))
    return 0


def _theorem(theorem: Theorem) -> dict[str, Any]:
    return {
        "name": theorem.name,
        "citation": theorem.citation,
        "covers": theorem.covers,
        "assumptions": [assumption.statement for assumption in theorem.assumptions],
        "erratum": theorem.erratum,
    }


def _theorem_text(theorem: Theorem) -> str:
    lines = [theorem.name, f"  {theorem.citation}", f"  covers: {theorem.covers}"]
    lines += [f"  needs: {'; '.join(assumption.statement for assumption in theorem.assumptions)}"]
    return "\n".join(lines + ([f"  erratum {theorem.erratum}"] if theorem.erratum else []))


def _errata(options: argparse.Namespace) -> int:
    """Every number is computed afresh, so this takes a few seconds."""
    chosen = [one for one in ERRATA if options.effect in (None, one.effect.value)]
    found = [_erratum(one) for one in tracked(chosen, "errata")]
    lines = [_erratum_line(one) for one in found]
    if options.full:
        lines = [f"{line}{_erratum_text(one)}\n" for line, one in zip(lines, found, strict=True)]
    head = f"{'id':10} {'effect':14} {'place':49} {'printed':>9} {'an instance':>11} {'corrected':>9}"
    _show(options, {"errata": found}, "\n".join([head, *lines]))
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    """The exhibits are loaded here only."""
    from lastiterate.papers.command import reproduced

    _show(options, *reproduced(options))
    return 0


def _erratum_line(one: dict[str, Any]) -> str:
    line = f"{one['id']:10} {one['effect']:14} {one['place']:49.49}"
    if not one["numbers"]:
        return line.rstrip()
    values = [one["numbers"][name] for name in ("printed", "exact", "corrected")]
    printed, exact, corrected = ("" if value is None else f"{value:.5g}" for value in values)
    return f"{line} {printed:>9} {exact:>11} {corrected:>9}"


def _erratum(one: Erratum) -> dict[str, Any]:
    shown = one.evidence() if one.evidence else None
    numbers = {} if shown is None else {**vars(shown), "text": str(shown)}
    return {
        "id": one.name,
        "place": one.place,
        "printed": one.printed,
        "corrected": one.corrected,
        "effect": one.effect.value,
        "test": one.test,
        "numbers": numbers,
    }


def _erratum_text(one: dict[str, Any]) -> str:
    numbers = f"\n  numbers:   {one['numbers']['text']}" if one["numbers"] else ""
    return f"\n  printed:   {one['printed']}\n  corrected: {one['corrected']}{numbers}\n  test:      {one['test']}"


def _show(options: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    print(json.dumps(_finite(content), indent=2) if options.json else text)


def _finite(content: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _number(value: Any) -> str:
    return f"from {min(value):.9g} to {max(value):.9g}" if isinstance(value, tuple) else f"{value:.9g}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lastiterate",
        description="Differential privacy when only the last iterate is released.",
        epilog="example: lastiterate account examples/mnist.toml --delta 1e-5",
    )
    parser.add_argument("--version", action="version", version=f"lastiterate {version('lastiterate')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    one = _command(
        commands, "account", _account, "the least provable epsilon of a run", "account run.toml --delta 1e-5"
    )
    _add_run(one)
    one.add_argument("--each", action="store_true", help="every record's own epsilon, by its batch")
    one.add_argument("--certificate", metavar="FILE", help="write the proof, for `lastiterate verify`")
    _add_releases(one)
    _add_plot(one, "epsilon against steps")
    one = _command(
        commands, "calibrate", _calibrate, "the noise or the steps that meet a target", "calibrate run.toml --epsilon 1"
    )
    _add_run(one)
    one.add_argument("--epsilon", type=float, required=True, help="the target")
    one.add_argument("--free", choices=("noise", "steps"), default="noise", help="what may change (default: noise)")
    one.add_argument("--most-steps", type=int, default=1_000_000, help="with --free steps, never more than these")
    one.add_argument("--write", metavar="FILE", help="write the run that meets it, as .toml or .json")
    _add_releases(one)
    one = _command(
        commands, "compare", _compare, "every theorem side by side", "compare run.toml --plot out/compare.png"
    )
    _add_run(one)
    _add_releases(one)
    _add_plot(one, "epsilon of every theorem")
    one = _command(commands, "verify", _verify, "replay a certificate", "verify certificate.json --run run.toml")
    one.add_argument("certificate", help="a file that `account --certificate` wrote")
    one.add_argument("--run", metavar="FILE", help="it must be about this run")
    one = _command(
        commands,
        "audit",
        _audit,
        "train many times, bound epsilon from below",
        "audit run.toml --runs 2000 --delta 1e-5",
    )
    one.add_argument(
        "what", help="a run (.toml, .json), or a .py file that defines train(data, seed), data and neighbour"
    )
    one.add_argument("--delta", type=float, default=1e-5, help="the delta of the guarantee (default: 1e-5)")
    one.add_argument("--runs", type=int, default=1000, help="on each of the two data sets (default: 1000)")
    one.add_argument("--confidence", type=float, default=0.95, help="of the bound (default: 0.95)")
    one.add_argument("--workers", type=int, default=1, help="processes to spread the runs over (default: 1)")
    one.add_argument("--seed", type=int, default=0, help="from which the seeds of all runs are made (default: 0)")
    _add_plot(one, "the scores on both data sets")
    one = _command(
        commands, "train", _train, "a private linear model from a CSV file", "train data.csv --target y --epsilon 1"
    )
    _add_training(one)
    _command(commands, "theorems", _theorems, "the catalogue", "theorems --json")
    one = _command(commands, "errata", _errata, "errors of the papers, with fresh numbers", "errata --effect unsound")
    one.add_argument("--full", action="store_true", help="with the formulas, what the numbers are, and the tests")
    one.add_argument("--effect", choices=[effect.value for effect in Effect], help="only those with this effect")
    what = "every figure and table of the papers, made again"
    _add_reproduction(_command(commands, "reproduce", _reproduce, what, "reproduce bok2024 --quick"))
    return parser


def _command(commands: Any, name: str, function: Any, what: str, example: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=f"{what}.", epilog=f"example: lastiterate {example}")
    parser.set_defaults(command=function)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help="a CSV file with a line of names; features are numbers")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    kinds = ("logistic", "svc", "huber", "ridge")
    parser.add_argument("--model", choices=kinds, default="logistic", help="default: logistic")
    parser.add_argument("--epsilon", type=float, required=True, help="of the released model")
    parser.add_argument("--delta", type=float, help="of the released model; from the number of records if not given")
    parser.add_argument("--feature-norm", type=float, metavar="NORM", help="rows that are longer are scaled down to it")
    parser.add_argument("--classes", nargs="+", metavar="LABEL", help="all labels there can be")
    parser.add_argument(
        "--target-bound", type=float, metavar="BOUND", help="of a regression: targets beyond it are cut"
    )
    parser.add_argument("--l2", type=float, help="chosen if not given, as are the next three")
    parser.add_argument("--batches", type=int, help="in an epoch")
    parser.add_argument("--epochs", type=int, help="passes over the data")
    parser.add_argument("--step-size", type=float, metavar="SIZE", help="of gradient descent")
    parser.add_argument("--no-intercept", action="store_true", help="no constant term")
    parser.add_argument("--seed", type=int, help="for tests: the model is then not private")
    parser.add_argument("--test", metavar="FILE", help="a CSV file of public records to measure the model on")
    parser.add_argument("--write", metavar="FILE", help="write the model and its report, as JSON")


def _add_reproduction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", choices=[*TITLES, "all"], help="a paper, or all of them")
    parser.add_argument("--out", metavar="DIR", default="out/papers", help="where to (default: out/papers)")
    parser.add_argument("--quick", action="store_true", help="coarser grids, fewer repetitions: two minutes at most")
    parser.add_argument("--fresh", action="store_true", help="make again what is there already")
    parser.add_argument(
        "--mnist", metavar="DIR", help="the folder of MNIST's four files, for Bok2024's Tables 2, 5 and 6"
    )
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: one for each core)")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run, as .toml or .json")
    parser.add_argument("--delta", type=float, default=1e-5, help="the delta of the guarantee (default: 1e-5)")


def _add_releases(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--releases", type=int, nargs="+", default=(), metavar="STEP", help="checkpoints released as well"
    )


def _add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help=f"draw {what}")


if __name__ == "__main__":
    sys.exit(main())
