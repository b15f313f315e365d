"""Boninsegna 2023, a survey: Table I in numbers, for a concrete run of each row, and Table II as names of the library.

Table I gives orders of growth of the noise. We compute the noise multiplier that each technique needs for ε = 1 as the run
becomes longer, and the smallest one that is proved to be enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from lastiterate.curves.adjacency import ADD_OR_REMOVE_ONE
from lastiterate.curves.baselines import moments_accountant, sampled_gaussian_rdp
from lastiterate.curves.renyi import RenyiDP
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.reproduction.exhibit import Agreement, Claim, Exhibit, Made, Outcome, Setting, judged
from lastiterate.reproduction.pictures import Panel, Role, Sheet, line
from lastiterate.reproduction.tables import Row, number, tabled
from lastiterate.runs.batches import Batches, Cyclic, FullBatch
from lastiterate.runs.losses import general
from lastiterate.runs.noise import OnIterate
from lastiterate.runs.run import Run
from lastiterate.theorems.papers.bok2024 import CONTRACTING_FULL
from lastiterate.theorems.papers.boninsegna2023 import FIXED_BATCHES
from lastiterate.theorems.papers.langevin import FULL_BATCH
from lastiterate.theorems.shift_engine import SHIFT_ENGINE
from lastiterate.theorems.theorem import Theorem

_EPSILON, _DELTA = 1.0, 1e-5
_BATCHES, _PULL = 100, 0.01  # q = 1/100; λη of the last row
_LENGTHS = (160_000, 640_000, 2_560_000)  # far more epochs than batches
_ORDERS = np.arange(2.0, 65.0)
Spent = Callable[[float, int], float]  # from noise multiplier and steps to ε at δ, or a number that is ε where δ is met


@lru_cache(maxsize=64)
def _least_noise(spent: Spent, steps: int) -> float:
    """The noise multiplier at which ε is reached."""

    def beyond(log_noise: float) -> float:
        return min(spent(math.exp(log_noise), steps), 1e6) - _EPSILON

    return math.exp(float(brentq(beyond, math.log(2.0), math.log(5e4), xtol=1e-4)))


def _moments(noise: float, steps: int) -> float:
    """The moments accountant: ε = 1 plus log(δ found / δ wanted), which is 1 where δ is met. (Theorem IV.1)"""
    logs = steps * (_ORDERS - 1) * _sampled(noise)
    delta = float(moments_accountant(log_moments=logs, moments=_ORDERS - 1, epsilon=_EPSILON))
    return _EPSILON + math.log(max(delta, 1e-300) / _DELTA)


def _sampled(noise: float) -> np.ndarray:
    return np.asarray(sampled_gaussian_rdp(mu=1 / noise, inclusion=1 / _BATCHES, order=_ORDERS))


def _composed(noise: float, steps: int) -> float:
    curve = RenyiDP(orders=_ORDERS, divergences=steps * _sampled(noise), adjacency=ADD_OR_REMOVE_ONE)
    return float(curve.epsilon(_DELTA))


def _exactly_composed(noise: float, steps: int) -> float:
    return float(subsampled_gaussian(mu=1 / noise, inclusion=1 / _BATCHES).compose(steps).epsilon(_DELTA))


def _printed_iteration(noise: float, steps: int) -> float:
    """α·K/(2σ²Q²): §VI-A as printed, not a bound (E1.1)."""
    return float(RenyiDP(rho=steps / (2 * noise**2 * _BATCHES**2)).epsilon(_DELTA))


def _by(theorem: Theorem, batches: Batches, pull: float) -> Spent:
    def spent(noise: float, steps: int) -> float:
        loss = general(smoothness=1.0, strong_convexity=pull, gradient_sensitivity=batches.divisor)
        return float(theorem.notion(Run(loss, batches, 1.0, OnIterate(noise), steps).process).epsilon(_DELTA))

    return spent


_CYCLIC, _FULL = Cyclic(records=_BATCHES * 10, batch_size=10), FullBatch(1000)
# article, technique, exponent of T in Table I, the technique as printed, corrected, the least known noise
_ROWS: tuple[tuple[str, str, float, Spent, Spent | None, Spent], ...] = (
    ("ACG+16", "moments accountant, Poisson batches", 0.5, _moments, None, _exactly_composed),
    ("Mir17", "composition of RDP, Poisson batches", 0.5, _composed, None, _exactly_composed),
    (
        "FMTT18",
        "amplification by iteration, fixed batches",
        0.5,
        _printed_iteration,
        _by(FIXED_BATCHES, _CYCLIC, 0.0),
        _by(SHIFT_ENGINE, _CYCLIC, 0.0),
    ),
    (
        "CYS21",
        "Langevin diffusion, full batches, λη = 0.01",
        0.0,
        _by(FULL_BATCH, _FULL, _PULL),
        None,
        _by(CONTRACTING_FULL, _FULL, _PULL),
    ),
)


def _row(
    article: str, technique: str, exponent: float, spent: Spent, right: Spent | None, ours: Spent, last: int
) -> Row:
    ends = [_least_noise(spent, steps) for steps in (_LENGTHS[0], last)]
    return {
        "article": article,
        "technique": technique,
        "exponent of T, printed": exponent,
        "exponent of T, computed": math.log(ends[1] / ends[0]) / math.log(last / _LENGTHS[0]),
        f"noise, T = {_LENGTHS[0]}": ends[0],
        f"noise corrected, T = {_LENGTHS[0]}": None if right is None else _least_noise(right, _LENGTHS[0]),
        f"noise ours, T = {_LENGTHS[0]}": _least_noise(ours, _LENGTHS[0]),
    }


def _table_1(setting: Setting) -> Made:
    last = _LENGTHS[1 if setting.quick else 2]
    rows = [_row(*line_, last) for line_ in _ROWS]
    lengths = (_LENGTHS[0], last) if setting.quick else _LENGTHS
    panels = [_panel(*line_, lengths) for line_ in _ROWS]
    off = [
        row
        for row in rows
        if abs(number(row["exponent of T, computed"]) - number(row["exponent of T, printed"])) > 0.02
    ]
    first = f"T = {_LENGTHS[0]}"
    claims = [
        Claim(
            f"noise multiplier for ε = 1, {row['article']}, {first}"
            + (
                f"; corrected {number(row[f'noise corrected, {first}']):.4g}"
                if row[f"noise corrected, {first}"]
                else ""
            ),
            row[f"noise, {first}"],
            row[f"noise ours, {first}"],
        )
        for row in rows
    ]
    note = (
        "the noise grows as √T in the first three rows and not at all in the last, as printed; the table has no numbers"
    )
    if off:
        verdict = Agreement(Outcome.NOT, (), f"the noise of {off[0]['article']} does not grow as printed")
    else:
        wrong = [
            row for row in rows if number(row[f"noise corrected, {first}"]) > number(row[f"noise, {first}"]) * 1.0001
        ]
        verdict = judged((), ("E1.1",) if wrong else (), note=note)
    return tabled(rows, panels, verdict, claims)


def _panel(
    article: str,
    technique: str,
    exponent: float,
    spent: Spent,
    right: Spent | None,
    ours: Spent,
    lengths: tuple[int, ...],
) -> Panel:
    def along(one: Spent) -> list[float]:
        return [_least_noise(one, steps) for steps in lengths]

    curves = [line("paper", lengths, along(spent), Role.PAPER)]
    if right is not None:
        curves.append(line("corrected (E1.1)", lengths, along(right), Role.CORRECTED))
    curves.append(line("ours", lengths, along(ours), Role.OURS))
    return Panel(f"{article}: {technique}", "iterations T", "noise multiplier", tuple(curves), log_x=True, log_y=True)


_NAMES = (
    ("D, D'", "two data sets that differ in one record", "li.REPLACE_ONE, li.ADD_OR_REMOVE_ONE"),
    ("B, b", "a batch and its size", "batches=li.Cyclic(records, batch_size), …"),
    ("S_f", "ℓ2 sensitivity", "gradient_sensitivity=, Process.sensitivity"),
    ("θ, d", "parameters and their number", "Trained.weights, li.Unbounded(dimension=)"),
    ("ℓ, L(θ, B)", "loss of a record, of a batch", "loss=li.losses.…"),
    ("η", "learning rate", "step_size="),
    ("L, C", "Lipschitz constant, clipping constant", "gradient_sensitivity= is 2L; clip="),
    ("β, λ", "smoothness, strong convexity", "smoothness=, strong_convexity="),
    ("T", "number of iterations", "steps="),
    ("ε, δ", "privacy budget", "report.epsilon, delta="),
    ("ξ", "privacy loss variable", "li.notions.PrivacyLoss"),
    ("α, D_α, E_α", "Rényi order, divergence, moment", "notion.rdp(order), li.baselines.moments_accountant"),
    ("I_α", "Rényi information", "not used"),
)


def _table_2(setting: Setting) -> Made:
    rows = [{"symbol": symbol, "meaning": meaning, "here": here} for symbol, meaning, here in _NAMES]
    sheet = Sheet("symbols of the survey and names in the library", ("symbol", "meaning", "in the library"), _NAMES)
    return tabled(rows, (sheet,), Agreement(Outcome.NOTHING, (), "a table of symbols"))


EXHIBITS = (
    Exhibit(
        "boninsegna2023",
        "table-1",
        "The noise that four techniques need, against the number of steps",
        (
            ("ε", _EPSILON),
            ("δ", _DELTA),
            ("q = b/n", 1 / _BATCHES),
            ("T", ", ".join(map(str, _LENGTHS))),
            ("λη", _PULL),
        ),
        _table_1,
        cost=40,
    ),
    Exhibit("boninsegna2023", "table-2", "Symbols of the survey and their names in the library", (), _table_2),
)
