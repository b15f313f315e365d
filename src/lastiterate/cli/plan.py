"""`lastiterate plan`."""

from __future__ import annotations

import argparse
import inspect

from lastiterate.algorithms import losses
from lastiterate.algorithms.files import write_run
from lastiterate.cli.options import ADJACENCIES, add_adjacency, add_delta, add_plot
from lastiterate.cli.show import show
from lastiterate.cli.written import Extra, a_plot, written
from lastiterate.errors import InvalidInput
from lastiterate.training.plans.plan import MOST_PASSES
from lastiterate.training.plans.planning import plan

_LOSSES = ("logistic", "softmax", "smooth_hinge", "ridge", "huber")
_PLAN = "plan 1: {0} (account for it with: lastiterate account {0})"
_OF_THE_LOSS = ("feature_norm", "classes", "l2", "clip", "width", "threshold")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--loss", choices=_LOSSES, default="logistic", help="default: logistic")
    parser.add_argument("--records", type=int, required=True, help="how many there are")
    parser.add_argument("--features", type=int, required=True, help="how many a row has")
    parser.add_argument("--epsilon", type=float, required=True, help="the target")
    add_delta(parser)
    add_adjacency(parser)
    parser.add_argument(
        "--user-records",
        type=int,
        default=1,
        metavar="COUNT",
        help="protect users with up to so many records (default: 1)",
    )
    parser.add_argument(
        "--feature-norm", type=float, default=1.0, metavar="NORM", help="of a row, at most (default: 1)"
    )
    parser.add_argument("--classes", type=int, help="of a softmax, or one against the rest")
    parser.add_argument("--clip", type=float, help="of gradients; chosen if not given, as are the next four")
    parser.add_argument("--l2", type=float, help="a term of the loss")
    parser.add_argument("--batches", type=int, help="in an epoch")
    parser.add_argument("--epochs", type=int, help="passes over the data")
    parser.add_argument("--step-size", type=float, metavar="SIZE", help="of gradient descent")
    parser.add_argument(
        "--passes",
        type=int,
        default=MOST_PASSES,
        metavar="MOST",
        help=f"over the data, at most (default: {MOST_PASSES})",
    )
    parser.add_argument("--width", type=float, help="of the round corner of a smooth hinge")
    parser.add_argument("--threshold", type=float, help="of a Huber loss")
    parser.add_argument("--write", metavar="FILE", help="write the best plan's run, as .toml or .json")
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
        Extra(options.write, lambda path: write_run(found.best.run, path), _PLAN),
        a_plot(options.plot, found.plot),
    )


def _loss(options: argparse.Namespace) -> losses.Loss:
    make = getattr(losses, options.loss)
    known = inspect.signature(make).parameters
    given = {name: value for name in _OF_THE_LOSS if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name} is no setting of the loss {options.loss}. Leave it out.", field=name)
    loss: losses.Loss = make(**given)
    return loss
