"""Bok et al. 2024, Fig. 2 to 5: trade-off functions, subsampling, and the shifted interpolated processes."""

from __future__ import annotations

import math

import numpy as np

from lastiterate.curves.adjacency import FIXED_SIZE, REPLACE_ONE
from lastiterate.curves.gaussian import GaussianDP
from lastiterate.curves.profile import Profile
from lastiterate.curves.subsampled import subsampled_gaussian
from lastiterate.kernel.steps import Steps
from lastiterate.numerics.arrays import Floats
from lastiterate.reproduction.bok2024_figures import tradeoff_panel
from lastiterate.reproduction.bounds import TYPE_I_ERRORS
from lastiterate.reproduction.exhibit import Agreement, Claim, Exhibit, Made, Outcome, Setting, from_curves, judged
from lastiterate.reproduction.instances import one_sampled_step
from lastiterate.reproduction.pictures import Curve, Panel, Role, line
from lastiterate.shift.optimise import best_schedule
from lastiterate.shift.schedule import payments

_ALPHAS = np.array(TYPE_I_ERRORS)


def _figure_2(setting: Setting) -> Made:
    pivot = 0.37  # from the authors' script: where the example's trade-off function meets the diagonal
    example = Profile(epsilons=[math.log((1 - pivot) / pivot)], deltas=[0.0]).tradeoff(_ALPHAS)
    shown = tradeoff_panel(
        "trade-off functions",
        (
            ("G(0): full privacy", 0.0, Role.OTHER),
            ("G(0.5)", 0.5, Role.PAPER),
            ("G(1)", 1.0, Role.PAPER),
            ("G(5): almost no privacy", 5.0, Role.PAPER),
        ),
    )
    curves = (*shown.curves, line("the example T(A(S), A(S'))", TYPE_I_ERRORS, example, Role.OURS))
    above = {mu: bool((example >= GaussianDP(mu).tradeoff(_ALPHAS) - 1e-9).all()) for mu in (1.0, 0.5)}
    right = above[1.0] and not above[0.5]
    note = f"1-GDP: {_yes(above[1.0])}, 0.5-GDP: {_yes(above[0.5])}; the caption says that the example is 1-GDP, not 0.5-GDP"
    verdict = judged((), note=note) if right else Agreement(Outcome.NOT, (), note)
    panel = Panel(shown.title, shown.x_label, shown.y_label, curves, corner=True)
    return from_curves((panel,), verdict, (Claim("the example is 1-GDP, not 0.5-GDP", "yes", _yes(right)),))


def _yes(held: bool) -> str:
    return "yes" if held else "no"


def _figure_4(setting: Setting) -> Made:
    """The worst of the instances f^(λ) is C_p(G(μ)): none lies below it, and together they touch it everywhere."""
    push, rate = 2.5, 0.25
    notion = subsampled_gaussian(mu=push, inclusion=rate, sampling=FIXED_SIZE, adjacency=REPLACE_ONE)
    bound = np.asarray(notion.tradeoff(_ALPHAS))
    instances = {split: _instance(push, rate, split) for split in (0.0, 0.5, 1.0)}
    gaps = np.min([np.interp(_ALPHAS, x, y) for x, y in instances.values()], axis=0) - bound
    curves = (
        line("ours: C_p(G(L/(bσ)))", TYPE_I_ERRORS, bound, Role.OURS),
        *(line(f"exact instance f^({split:g})", x, y, Role.LOWER) for split, (x, y) in instances.items()),
    )
    panel = Panel("one step on a random batch", "type I error", "type II error", curves, corner=True)
    claims = [
        Claim(
            "smallest gap between an instance and C_p(G), to 1e-6",
            "≥ 0",
            f"{max(gaps.min(), 0.0) if gaps.min() > -1e-6 else gaps.min():.1e}",
        )
    ]
    if gaps.min() < -1e-6:
        return from_curves((panel,), Agreement(Outcome.NOT, (), "an instance lies below C_p(G)"), claims)
    return from_curves((panel,), judged((), note="every instance lies on or above C_p(G) and touches it"), claims)


def _instance(push: float, rate: float, split: float) -> tuple[Floats, Floats]:
    """Its trade-off curve: the likelihood ratio is monotone, so thresholds are the best tests."""
    one, two, _ = one_sampled_step(push, rate, split).laws
    x, y = 1 - np.cumsum(two)[::-1], np.cumsum(one)[::-1]
    keep = np.linspace(0, len(x) - 1, 400).astype(np.intp)
    return np.clip(x[keep], 0, 1), np.clip(y[keep], 0, 1)


_FACTOR, _PUSH, _NOISE = 0.9, 1.0, 0.25


def _interpolated(steps: int, tau: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """X, X', and X̃ that starts on X' at τ and ends on X, under the same noise; λ_k from the engine's shifts. (6)"""
    noise = _NOISE * np.random.default_rng(seed).standard_normal(steps)
    ours, theirs = np.zeros(steps + 1), np.zeros(steps + 1)
    for k in range(steps):
        ours[k + 1] = _FACTOR * ours[k] + _PUSH + noise[k]
        theirs[k + 1] = _FACTOR * theirs[k] + noise[k]
    between, shares = theirs.copy(), _shares(steps - tau, float(ours[tau] - theirs[tau]))
    for k, share in zip(range(tau, steps), shares, strict=True):
        moved = share * (_FACTOR * ours[k] + _PUSH) + (1 - share) * _FACTOR * between[k]
        between[k + 1] = moved + noise[k]
    return ours, theirs, between


def _shares(steps: int, distance: float) -> list[float]:
    """λ_k = a_k/(z_k + a_k), with the shifts a_k that the engine finds best from this distance."""
    given = Steps(np.append(_FACTOR * distance + _PUSH, np.full(steps - 1, _PUSH)), *_alike(steps), math.inf)
    left, shares = 0.0, []
    for factor, push, paid in zip(
        given.lipschitz, given.sensitivity, payments(given, best_schedule(given)[1]), strict=True
    ):
        due = factor * left + push
        shares.append(min(float(paid / due), 1.0))  # a block ends with whatever is left
        left = (1 - shares[-1]) * due
    return shares


def _alike(steps: int) -> tuple[Floats, Floats]:
    return np.full(steps, _NOISE), np.full(steps, _FACTOR)


def _figure_3(setting: Setting) -> Made:
    steps, tau = 20, 8
    ours, theirs, between = _interpolated(steps, tau, seed=1)
    times = range(steps + 1)
    curves = (
        line("X", times, ours, Role.PAPER),
        line("X'", times, theirs, Role.OTHER),
        line("X̃: shifted interpolation", range(tau, steps + 1), between[tau:], Role.OURS),
    )
    panel = Panel(f"quadratic losses, c = {_FACTOR}, τ = {tau}", "step", "iterate", curves)
    return from_curves((panel,), _ends_meet(abs(between[-1] - ours[-1])), (_end_claim(between[-1] - ours[-1]),))


def _ends_meet(gap: float) -> Agreement:
    note = "a sketch in the paper; here a simulated run with the shifts that our engine finds"
    return judged((), note=note) if gap < 1e-9 else Agreement(Outcome.NOT, (), f"X̃ ends {gap:.2g} from X")


def _end_claim(gap: float) -> Claim:
    return Claim("distance between X̃ and X at the end (X̃ starts on X' at τ)", 0, f"{abs(gap):.1e}")


def _figure_5(setting: Setting) -> Made:
    """Left: one process beside each original, always apart by z_k at most. Right: one, with the same deviations as X'."""
    present = (np.random.default_rng(7).random(20) < 0.4).astype(float)
    noise = _NOISE * np.random.default_rng(5).standard_normal(20)
    left = Panel("Theorem 4.9: X̃ follows X, X̃' follows X'", "step", "iterate", _tracking(present, noise))
    right = Panel("Theorem 4.10: X̃ moves from X' to X", "step", "iterate", _catching_up(present, noise))
    note = "sketches in the paper; here simulated runs with shared noise and shared batches"
    last = [abs(curve.y[-1] - right.curves[0].y[-1]) for curve in right.curves if curve.role is Role.OURS]
    verdict = judged((), note=note) if last[0] < 1e-9 else Agreement(Outcome.NOT, (), "X̃ does not end on X")
    return from_curves((left, right), verdict, (_end_claim(last[0]),))


def _tracking(present: Floats, noise: Floats) -> tuple[Curve, ...]:
    """X̃ follows ψ, and a share λ of what the record adds whenever it is in the batch."""
    share, states = 0.7, {"X": 0.0, "X'": 0.0, "X̃": 0.0, "X̃'": 0.0}
    paths = {name: [0.0] for name in states}
    for seen, draw in zip(present, noise, strict=True):
        for one, beside, push in (("X", "X̃", _PUSH), ("X'", "X̃'", -_PUSH)):
            plain = _FACTOR * states[beside]
            moved = plain + share * seen * (_FACTOR * states[one] + push - plain)
            states[one] = _FACTOR * states[one] + seen * push + draw
            states[beside] = moved + draw
        for name, value in states.items():
            paths[name].append(value)
    roles = {"X": Role.PAPER, "X'": Role.OTHER, "X̃": Role.OURS, "X̃'": Role.OURS}
    return tuple(line(name, range(len(path)), path, roles[name]) for name, path in paths.items())


def _catching_up(present: Floats, noise: Floats) -> tuple[Curve, ...]:
    """From τ on the distance to X shrinks by the same amount each step; the record's pushes are those of X."""
    tau, steps = 8, len(noise)
    ours, theirs = (np.append(0.0, np.cumsum(sign * _PUSH * present + noise)) for sign in (1, -1))
    shrinking = np.linspace(1.0, 0.0, steps - tau + 1)
    between = ours[tau:] + (theirs[tau] - ours[tau]) * shrinking
    return (
        line("X", range(steps + 1), ours, Role.PAPER),
        line("X'", range(steps + 1), theirs, Role.OTHER),
        line("X̃", range(tau, steps + 1), between, Role.OURS),
    )


ILLUSTRATIONS = (
    Exhibit(
        "bok2024", "fig-2", "Trade-off functions and Gaussian differential privacy", (("μ", "0.5, 1, 5"),), _figure_2
    ),
    Exhibit(
        "bok2024", "fig-3", "The shifted interpolated process (6)", (("c", _FACTOR), ("τ", 8), ("t", 20)), _figure_3
    ),
    Exhibit("bok2024", "fig-4", "C_p(G(L/(bσ))) and the instances f^(λ)", (("p", 0.25), ("L/(bσ)", 2.5)), _figure_4),
    Exhibit(
        "bok2024",
        "fig-5",
        "Shifted interpolated processes in the proofs of Theorems 4.9 (left) and 4.10 (right)",
        (("c", _FACTOR), ("t", 20), ("τ, right", 8)),
        _figure_5,
    ),
)
