"""The command `lastiterate plan`."""

from __future__ import annotations

import argparse
import inspect

from lastiterate.cli.options import (
    ADJACENCIES,
    add_adjacency,
    add_chosen_settings,
    add_delta,
    add_plot,
    add_user_records,
)
from lastiterate.cli.show import Extra, a_plot, show, written
from lastiterate.errors import InvalidInput
from lastiterate.runs import losses
from lastiterate.runs.files import write_run
from lastiterate.training.plans.plan import MOST_PASSES
from lastiterate.training.plans.planning import plan

_LOSSES = ("logistic", "softmax", "smooth_hinge", "ridge", "huber")
_OF_THE_LOSS = ("feature_norm", "classes", "l2", "clip", "width", "threshold")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--loss", choices=_LOSSES, default="logistic", help="loss to train (default: logistic)")
    parser.add_argument("--records", type=int, required=True, help="number of training records")
    parser.add_argument("--features", type=int, required=True, help="number of features per record")
    parser.add_argument("--epsilon", type=float, required=True, help="target epsilon of the released model")
    add_delta(parser)
    add_adjacency(parser)
    add_user_records(parser, default=1)
    parser.add_argument(
        "--feature-norm", type=float, default=1.0, metavar="NORM", help="largest norm of a feature row (default: 1)"
    )
    parser.add_argument("--classes", type=int, help="number of classes, for softmax or one against the rest")
    parser.add_argument("--clip", type=float, help="largest norm of a record's gradient (default: chosen)")
    add_chosen_settings(parser)
    parser.add_argument(
        "--passes",
        type=int,
        default=MOST_PASSES,
        metavar="MOST",
        help=f"largest number of passes over the data (default: {MOST_PASSES})",
    )
    parser.add_argument("--width", type=float, help="width of the rounded corner of the smooth hinge loss")
    parser.add_argument("--threshold", type=float, help="residual where the Huber loss becomes linear")
    parser.add_argument("--write", metavar="FILE", help="write the run of the best plan, as .toml or .json")
    add_plot(parser, "expected error against epsilon")


def answer(options: argparse.Namespace) -> int:
    found = plan(
        loss=_loss(options),
        records=options.records,
        features=options.features,
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=ADJACENCIES[options.adjacency],
        passes=options.passes,
        batches=options.batches,
        epochs=options.epochs,
        step_size=options.step_size,
        user_records=options.user_records,
    )
    show(options, found.to_dict(), "" if options.json else str(found))
    return written(
        options,
        Extra(options.write, lambda path: write_run(found.best.run, path), "written_plan"),
        a_plot(options.plot, found.plot),
    )


def _loss(options: argparse.Namespace) -> losses.Loss:
    make = getattr(losses, options.loss)
    known = inspect.signature(make).parameters
    given = {name: value for name in _OF_THE_LOSS if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in known:
            raise InvalidInput("option_of_other_loss", field=name, loss=options.loss)
    loss: losses.Loss = make(**given)
    return loss
