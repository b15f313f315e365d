"""The distribution of the number of trials, as several commands take it: apart, because it loads numpy."""

from __future__ import annotations

import argparse

from lastiterate.curves.trials import LAWS, Trials
from lastiterate.errors import InvalidInput


def add_trials(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--trials",
        choices=list(LAWS),
        default="geometric" if required else None,
        help="the distribution of the number of trials (default: geometric)",
    )
    what = "the mean number of trials"
    parser.add_argument(
        "--mean",
        type=float,
        required=required,
        help=what if required else f"{what} of a search; its best trial meets the target",
    )
    parser.add_argument(
        "--shape", type=float, help="with --trials negative-binomial, its shape: 1 is geometric, 0 logarithmic"
    )


def trials_in(options: argparse.Namespace) -> Trials | None:
    """Return the law of the number of trials, or None if no mean was given."""
    if options.mean is None:
        if options.trials is not None or options.shape is not None:
            raise InvalidInput("mean_of_trials_missing", field="mean")
        return None
    given = {"mean": options.mean, **({} if options.shape is None else {"shape": options.shape})}
    if (options.trials == "negative-binomial") != ("shape" in given):
        raise InvalidInput("shape_of_other_trials", field="shape")
    return LAWS[options.trials or "geometric"](**given)
