"""Calls of the public functions, and of the methods of what they return."""

from __future__ import annotations

import enum
import inspect
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.attack.runs import drawn_run
from benchmarks.attack.values import OBJECTS, PLAIN, drawn
from lastiterate.curves.sampled_steps import SampledStep
from lastiterate.runs.files import run_from_dict

WILD = (*PLAIN, *OBJECTS)
# Made by the library, not by its users: their methods are called on what the library returned.
_RESULTS = {
    "Amplified", "Audit", "Diffusion", "Guarantee", "Inapplicable", "LowerBound", "Process", "RecordReport", "Release",
    "Report", "Sample", "Theorem", "Trained", "Verdict", "PrivacyLeak",
}  # fmt: skip
_SLOW = {
    "account",
    "account_each",
    "calibrate",
    "lower_bound",
    "train",
    "audit",
    "verify",
    "write_run",
    "Chain",
    "langevin",
}
_LOSSES = ("general", "logistic", "softmax", "ridge", "huber", "smooth_hinge", "network")
# Drawing takes a second each; the others are how a run becomes a process, on arrays that the library has checked.
_SKIPPED = ("plot", "plot_comparison", "plot_errors", "save")
# What a kind says to the library, with arrays and sources that were checked before.
_BETWEEN_KINDS = (
    *("batch", "order", "place", "divisor_of", "inclusion", "sampled_change", "reason", "clip_promise"),
    *("update", "on_iterate", "at", "mapped", "value", "roundings", "projected"),
)
_GOOD = li.Run(li.losses.logistic(feature_norm=1.0, l2=0.1), li.Cyclic(20, 5), 0.1, li.OnIterate(std=1.0), 8)


def public() -> dict[str, Any]:
    """Every public callable by its name."""
    found = {f"losses.{name}": getattr(li.losses, name) for name in _LOSSES}
    for name in li.__all__:
        value = getattr(li, name)
        if callable(value) and name not in _RESULTS and not (isinstance(value, type) and issubclass(value, enum.Enum)):
            found[name] = value
    return found


class Call:
    """One call, and calls on what it returned; `said` tells what was done, for a replay by hand."""

    def __init__(self, source: random.Random, folder: Path) -> None:
        self.source, self.folder, self.said = source, folder, ""
        self.wildness = source.choice((0.0, 0.05, 0.2, 0.5))

    def run(self) -> list[Any]:
        """Everything that was returned."""
        functions = public()
        weights = [1.0 if name.split(".")[-1] not in _SLOW else 0.5 for name in functions]
        name = self.source.choices(list(functions), weights)[0]
        returned = [self._called(name, functions[name])]
        for _ in range(2):
            if (further := self._on(returned[0])) is not None:
                returned.append(further)
        return returned

    def _called(self, name: str, function: Any) -> Any:
        arguments = self._arguments(name, function)
        self.said += f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in arguments.items())})"
        return _bound(function, arguments)

    def _arguments(self, function_name: str, function: Any) -> dict[str, Any]:
        arguments = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if name == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.default is inspect.Parameter.empty or self.source.random() < 0.4:
                arguments[name] = self._value(function_name, name)
        return arguments

    def _value(self, function: str, name: str) -> Any:
        if self.source.random() < self.wildness:
            return self.source.choice(WILD)
        made = getattr(self, f"_some_{name}", None)
        return made(function) if made else drawn(self.source, name, 0.0)

    def _on(self, thing: Any) -> Any:
        """Some public attribute of it, called if it can be."""
        if not type(thing).__module__.startswith("lastiterate") or isinstance(thing, enum.Enum | Exception):
            return None
        names = [name for name in dir(thing) if not name.startswith("_") and name not in (*_SKIPPED, *_BETWEEN_KINDS)]
        if not names:
            return None
        name = self.source.choice([*names, "__str__", "__repr__"])
        self.said += f".{name}"
        attribute = getattr(thing, name)
        if not inspect.ismethod(attribute) and not name.startswith("__"):
            return None if callable(attribute) or _no_delta(thing, name) else attribute
        arguments = self._arguments(name, attribute) if inspect.ismethod(attribute) else {}
        self.said += f"({', '.join(f'{key}={_shown(value)}' for key, value in arguments.items())})"
        return _bound(attribute, arguments)

    # Arguments that are more than numbers, by their names.

    def _some_run(self, _: str) -> Any:
        for _ in range(20):
            try:
                return run_from_dict(drawn_run(self.source, 0.02))
            except li.errors.LastIterateError:
                continue
        return _GOOD

    def _some_loss(self, function: str) -> Any:
        if function == "train":
            return self.source.choice((None, None, lambda w, x, y: np.zeros((len(y), *w.shape)), lambda *_: "x"))
        return self._some_run("").loss

    def _some_batches(self, function: str) -> Any:
        return self._some_run("").batches

    def _some_noise(self, function: str) -> Any:
        if function == "Run":
            return self._some_run("").noise
        return [0.5, 0.5, 0.5] if function == "Chain" else drawn(self.source, "noise", 0.0)

    def _some_domain(self, _: str) -> Any:
        return self._some_run("").domain

    def _some_prox(self, _: str) -> Any:
        return self._some_run("").prox

    def _some_steps(self, function: str) -> Any:
        if function == "SubsampledGaussians":
            return ((SampledStep(0.5, 0.1, li.notions.POISSON), 3),)
        return li.epochs(2) if function == "Run" and self.source.random() < 0.3 else drawn(self.source, "steps", 0.0)

    def _some_adjacency(self, _: str) -> Any:
        return self.source.choice((li.REPLACE_ONE, li.ADD_OR_REMOVE_ONE))

    def _some_sampling(self, _: str) -> Any:
        return self.source.choice((li.notions.POISSON, li.notions.FIXED_SIZE))

    def _some_free(self, _: str) -> Any:
        return self.source.choice((li.NOISE, "steps"))

    def _some_guarantees(self, _: str) -> Any:
        step = li.notions.subsampled_gaussian(mu=0.5, inclusion=0.1)
        some = (
            li.notions.GaussianDP(0.5),
            step,
            li.notions.RenyiDP(rho=0.1),
            li.notions.Profile(epsilons=[1.0], deltas=[1e-6]),
        )
        return [self.source.choice(some) for _ in range(self.source.randrange(3))]

    def _some_notion(self, _: str) -> Any:
        return li.notions.GaussianDP(0.5)

    _some_before = _some_other = _some_notion

    def _some_function(self, _: str) -> Any:
        return self.source.choice(
            (None, lambda e: np.exp(-np.asarray(e)) / 3, lambda a: 1 - np.asarray(a), lambda _: "x")
        )

    def _some_map(self, _: str) -> Any:
        return self.source.choice((None, lambda x: x / 2, lambda x: "x"))

    def _some_without(self, _: str) -> Any:
        return lambda x: 0.5 * x

    def _some_record(self, function: str) -> Any:
        return (lambda x: 0.5 * x + 0.1) if function == "Chain" else drawn(self.source, "count", 0.0)

    def _some_neighbour(self, function: str) -> Any:
        return (lambda x: 0.5 * x - 0.1) if function == "Chain" else 1.0

    def _some_gradient(self, _: str) -> Any:
        return self.source.choice((lambda x: x, lambda x: x, lambda x: "x", lambda x: x * math.nan))

    def _some_train(self, _: str) -> Any:
        return self.source.choice(
            (lambda data, seed: float(seed % 7), lambda data, seed: "x", lambda data, seed: math.nan)
        )

    def _some_score(self, _: str) -> Any:
        return self.source.choice((None, float, lambda x: None))

    def _some_start(self, function: str) -> Any:
        return (
            drawn(self.source, "x", 0.0)
            if function == "Chain"
            else self.source.choice((np.zeros(2), np.zeros(3), None))
        )

    def _some_data(self, function: str) -> Any:
        if function == "audit":
            return 0.0
        rows = self.source.choice((10, 20, 100))
        features = np.random.default_rng(self.source.randrange(99)).normal(size=(rows, 2)) / 3
        return features, np.where(features[:, 0] > 0, 1.0, self.source.choice((-1.0, 0.0)))

    def _some_certificate(self, _: str) -> Any:
        report = li.account(_GOOD, 1e-5).certificate
        return self.source.choice((report, json.dumps(report), None, "x", {}, {**(report or {}), "run": 3}))

    def _some_path(self, _: str) -> Any:
        return self.source.choice(
            (str(self.folder / "x.toml"), self.folder / "x.json", "a\0.toml", "x.yaml", self.folder)
        )

    def _some_checkpoint(self, _: str) -> Any:
        return self.source.choice((None, str(self.folder / "kept"), "a\0", "", self.folder))

    def _some_message(self, _: str) -> Any:
        return "words"

    def _some_rng(self, _: str) -> Any:
        return None


def _no_delta(thing: Any, name: str) -> bool:
    """A certificate that was rejected says nothing, and its δ is NaN on purpose."""
    return isinstance(thing, li.results.Verdict) and not thing.accepted and name == "delta"


def _bound(function: Any, arguments: dict[str, Any]) -> Any:
    kinds = inspect.signature(function).parameters
    by_place = [value for name, value in arguments.items() if kinds[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    by_name = {
        name: value for name, value in arguments.items() if kinds[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    return function(*by_place, **by_name)


def _shown(value: Any) -> str:
    try:
        return ascii(value)[:80]
    except ValueError:
        return f"a {type(value).__name__} too long to show"


def has_nan(value: Any) -> bool:
    """In numbers, arrays, and tuples, lists and dictionaries of them."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(has_nan(one) for one in value.values())
    return isinstance(value, tuple | list) and any(has_nan(one) for one in value)
