"""Every listed kind of batches, noise, loss, domain and proximal map: the update as it is written, against all that is said.

To be listed is to be tested: nothing here knows the kinds by name.
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.runs.files import run_from_dict, run_from_text, run_to_dict, run_to_toml
from lastiterate.runs.kinds import BATCHES, DOMAINS, LOSSES, NOISES, PROXES, SECTIONS, UNEVEN, Kind
from lastiterate.training.data import linear_data
from lastiterate.training.objectives import clipped_gradient_sum
from lastiterate.training.steps import Sampler
from raising import raises

EVERY = {f"{section}: {kind.name}": (section, kind) for section, kinds in SECTIONS.items() for kind in kinds}
ALL_BATCHES = [*BATCHES, *UNEVEN]
EVERY |= {f"batches: {kind.example.described}": ("batches", kind) for kind in UNEVEN}
LINEAR = [kind for kind in LOSSES if kind.example.linear]
FACTS = li.losses.general(smoothness=1.0, strong_convexity=0.0, gradient_sensitivity=1.0, clip=0.5)


def shown(kind: Kind) -> str:
    """With what becomes of records that are left over."""
    return " ".join([kind.name, *(str(kind.arguments[name]) for name in ("last",) if name in kind.arguments)])


def named(kinds: Any) -> Any:
    return pytest.mark.parametrize("kind", kinds, ids=shown)


def run_with(section: str, value: Any) -> li.Run:
    """A short run in which one part is of this kind."""
    parts: dict[str, Any] = {"loss": FACTS, "batches": li.FullBatch(12), "noise": li.OnIterate(std=0.3)}
    return li.Run(**{**parts, section: value}, step_size=0.5, steps=6)


@pytest.mark.parametrize("name", EVERY)
def test_every_kind_is_described_written_and_certified(name: str) -> None:
    section, kind = EVERY[name]
    run = run_with(section, kind.example)
    assert getattr(run, section) == kind.example
    assert run_from_dict(run_to_dict(run)) == run
    assert run_from_text(run_to_toml(run), toml=True) == run
    report = li.account(run, delta=1e-5)
    assert str(report).startswith("epsilon")
    assert math.isfinite(report.epsilon)
    assert li.verify(report.certificate).accepted


def test_names_in_files_are_unique() -> None:
    for kinds in SECTIONS.values():
        assert len({kind.name for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("batches", ALL_BATCHES, ids=shown)
@pytest.mark.parametrize("noise", NOISES, ids=lambda kind: kind.name)
def test_the_account_is_above_exact_instances(batches: Kind, noise: Kind) -> None:
    parts = (FACTS, batches.example, 0.5, noise.example, 9, li.Ball(0.5))
    if batches.example.own_mean and noise.example.on_sum:
        with raises("no_fixed_divisor", "noise", kind=li.errors.InvalidInput):
            li.Run(*parts)
        return
    run = li.Run(*parts)
    assert li.lower_bound(run, delta=1e-5).epsilon <= li.account(run, delta=1e-5).epsilon * (1 + 1e-9)


@named(ALL_BATCHES)
def test_batches_are_drawn_as_often_as_they_say(kind: Kind) -> None:
    """A record by chance: 6 standard deviations. Passes have each record once an epoch."""
    batches, count = kind.example, 6_000
    sampler = Sampler(batches, Source(5))
    met = np.zeros((count, batches.records), bool)
    for step in range(count):
        chosen = np.arange(batches.records)[sampler.batch(step)]
        assert len(chosen) <= batches.largest
        sizes = batches.sizes_under(on_sum=False)
        last = sizes.last if (step + 1) % batches.per_epoch == 0 else None
        assert batches.divisor_of(len(chosen)) >= (last or sizes).divisor
        met[step, chosen] = True
    if batches.passes:
        epochs = met.reshape(-1, batches.per_epoch, batches.records)
        dealt = batches.largest * (batches.per_epoch - 1) + batches.last_size
        used = dealt if batches.constant_size else batches.records
        assert (epochs.sum(axis=1) <= 1).all()
        assert (epochs.sum(axis=(1, 2)) == used).all()
        assert batches.reshuffled == bool((epochs[0] != epochs[1]).any())
    if batches.shuffled and batches.constant_size:
        of_a_place = met[batches.per_epoch - 1 :: batches.per_epoch].mean()  # the smaller batch, if there is one
        assert of_a_place == pytest.approx(batches.inclusion(count)[batches.per_epoch - 1], rel=1e-12)
    met = met[:, : batches.records - batches.unused]
    chance = float(batches.inclusion(count).mean())
    assert np.abs(met.mean(axis=0) - chance).max() <= 6 * math.sqrt(chance * (1 - chance) / count) + 1e-12


@named(ALL_BATCHES)
def test_a_record_moves_a_step_by_no_more_than_its_sensitivity(kind: Kind) -> None:
    """Neighbours that are trained from the same seed, so that batch and noise are the same."""
    batches = kind.example
    loss = li.losses.huber(feature_norm=1.0, clip=0.5)
    run = li.Run(loss, batches, 0.7, li.OnIterate(std=0.01), 1)
    features = np.ones((batches.records, 1))
    farthest = 0.0
    for seed in range(60):
        targets = np.zeros(batches.records)
        iterates = []
        for target in (-5.0, 5.0):
            targets[0] = target
            iterates.append(float(li.train(run, (features, targets), seed=seed).weights[0]))
        farthest = max(farthest, abs(iterates[1] - iterates[0]))
    most = float(run.process.sensitivity[0])
    assert farthest <= most + 2e-5  # the grid of what is released
    if batches.constant_size:
        assert farthest >= most - 2e-5


@named(NOISES)
@pytest.mark.parametrize("scheduled", [False, True])
def test_noise_is_what_its_update_says(kind: Kind, scheduled: bool) -> None:
    """On the iterate as accounting sees it, and in training: 20,000 coordinates show an error of 3 %."""
    noise = kind.example
    if scheduled:
        noise = replace(noise, **{noise.size: [noise.at(0), 2.5 * noise.at(0)]})
    batches, sizes, many = li.Cyclic(records=12, batch_size=4), np.array([0.5, 0.25]), 20_000
    zero, ones = np.zeros(many), np.ones(many)
    run = li.Run(li.losses.huber(feature_norm=1.0, clip=noise.implied_clip), batches, sizes, noise, 2)
    spread = run.process.noise
    for step, size in enumerate(sizes.tolist()):
        apart = noise.update(zero, step, size, zero, batches.divisor, ones)
        assert np.abs(apart) == pytest.approx(np.full(many, spread[step]), rel=1e-14)
    trained = li.train(run, (np.zeros((12, many)), np.zeros(12)), seed=3).weights
    assert trained.std() == pytest.approx(math.hypot(*spread), rel=0.03)


@named(NOISES)
def test_a_gradient_moves_the_update_by_its_mean(kind: Kind) -> None:
    """Whatever the noise: x − step_size·(Σ gradients)/divisor."""
    noise, x, total = kind.example, np.array([2.0, -1.0]), np.array([3.0, 5.0])
    for size, divisor in itertools.product((0.1, 2.0), (1.0, 8.0)):
        found = noise.update(x, 0, size, total, divisor, np.zeros(2))
        assert found == pytest.approx(x - size * total / divisor, rel=1e-14)


def targets_of(model: Any, count: int, source: np.random.Generator) -> np.ndarray:
    """Targets that mean something: whole numbers where only these do."""
    some = np.concatenate([source.integers(-1, 5, 20 * count), source.normal(size=20 * count)])
    return np.asarray(source.permutation(some[model.known(some)])[:count], float)


@named(LINEAR)
def test_slopes_are_derivatives_and_facts_are_true(kind: Kind) -> None:
    """Values by their definition, slopes by differences; bound, sensitivity, smoothness and convexity of the gradients."""
    loss, source, count = kind.example, np.random.default_rng(1), 4000
    model, norm = loss.model, loss.feature_norm
    width = model.columns or 1
    shape = (count,) if model.columns is None else (count, width)
    scores, targets = source.normal(0, 3, shape), targets_of(model, count, source)
    slopes, width_of_step = model.slopes(scores.copy(), targets), 1e-6
    for column in range(width):
        shift = np.zeros(shape)
        shift[(slice(None), column) if model.columns else slice(None)] = width_of_step
        rise = model.values(scores + shift, targets) - model.values(scores - shift, targets)
        found = slopes[:, column] if model.columns else slopes
        if loss.smoothness < math.inf:
            assert np.abs(rise / (2 * width_of_step) - found).max() <= 2 * width_of_step * loss.smoothness + 1e-7
    flat = slopes.reshape(count, -1)
    assert np.linalg.norm(flat, axis=1).max() * norm <= loss.gradient_bound * (1 + 1e-12)
    assert loss.gradient_sensitivity <= 2 * loss.gradient_bound
    others = scores + source.normal(0, 1, shape)
    moved, turned = (
        (others - scores).reshape(count, -1),
        (model.slopes(others.copy(), targets) - slopes).reshape(count, -1),
    )
    assert (np.linalg.norm(turned, axis=1) * norm**2 <= loss.smoothness * np.linalg.norm(moved, axis=1) + 1e-9).all()
    assert ((turned * moved).sum(axis=1) >= loss.curvature * norm**2 - 1e-9).all()


@named(LINEAR)
def test_clipped_gradients_stay_within_the_clip(kind: Kind) -> None:
    """Record by record, and convex where the facts say that clipping keeps that."""
    loss, source, count = kind.example, np.random.default_rng(2), 2000
    model = loss.model
    shape = (count,) if model.columns is None else (count, model.columns)
    limits = np.full(count, 0.3)
    targets = targets_of(model, count, source)
    scores, others = source.normal(0, 3, shape), source.normal(0, 3, shape)
    cut, elsewhere = (
        model.cut(model.slopes(one.copy(), targets), limits).reshape(count, -1) for one in (scores, others)
    )
    assert np.linalg.norm(cut, axis=1).max() <= 0.3 * (1 + 1e-12)
    if loss.keeps_convexity:
        assert (((cut - elsewhere) * (scores - others).reshape(count, -1)).sum(axis=1) >= -1e-9).all()


@named(LINEAR)
def test_a_record_is_cut_whoever_is_beside_it(kind: Kind) -> None:
    """Sums over batches in which many, few or no records are too long are those of the records one by one."""
    loss, source, count = replace(kind.example, clip=None), np.random.default_rng(3), 300
    model, columns = loss.model, loss.model.columns
    shape = (2,) if columns is None else (2, columns)
    for longest in (0.9, 1.0, 1.2, 2.0, 5.0):
        norm = longest / (loss.gradient_bound / loss.feature_norm)
        rows = norm * random_directions(count, 2, source)
        weights, targets = source.normal(0, 30, shape), targets_of(model, count, source)
        data = linear_data((rows, targets), count, None, None).records
        each = sum(clipped_gradient_sum(model, weights, data[slice(i, i + 1)], 1.0) for i in range(count))
        assert np.allclose(clipped_gradient_sum(model, weights, data, 1.0), each, rtol=0, atol=1e-9)


def random_directions(count: int, width: int, source: np.random.Generator) -> np.ndarray:
    rows = source.normal(size=(count, width))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def known(kinds: tuple[Kind, ...], way: str, *others: float) -> list[Kind]:
    """Of those that say what they do to a point, and not only what is true of it."""
    found = []
    for kind in kinds:
        with suppress(li.errors.InvalidInput):
            getattr(kind.example, way)(np.ones((3, 3)), *others)
            found.append(kind)
    return found


def test_what_is_not_known_is_refused_in_training() -> None:
    unknown = [kind for kind in DOMAINS if kind not in known(DOMAINS, "projected")]
    for kind in unknown:
        with raises("no_projection", "domain", kind=li.errors.InvalidInput):
            kind.example.projected(np.ones(3))
    for kind in (kind for kind in PROXES if kind not in known(PROXES, "mapped", 0.5)):
        with raises("no_proximal_map", "prox", kind=li.errors.InvalidInput):
            kind.example.mapped(np.ones(3), 0.5)
    assert len(unknown) < len(DOMAINS)


@named(known(DOMAINS, "projected"))
def test_projections_find_the_nearest_point(kind: Kind) -> None:
    """⟨x − Πx, y − Πx⟩ ≤ 0 for every y of the domain; no two points are farther apart than the diameter."""
    domain, source = kind.example, np.random.default_rng(3)
    points = source.normal(0, 3, (200, domain.dimension or 3))
    inside = np.array([domain.projected(point) for point in points])
    again = np.array([domain.projected(point) for point in inside])
    assert again == pytest.approx(inside, abs=1e-12)
    assert ((points - inside) @ inside.T <= ((points - inside) * inside).sum(axis=1, keepdims=True) + 1e-9).all()
    apart = np.linalg.norm(inside[:, None] - inside[None], axis=2).max()
    assert apart <= domain.diameter
    assert domain.widest_interval <= domain.diameter


@named(known(PROXES, "mapped", 0.5))
def test_proximal_maps_minimise(kind: Kind) -> None:
    """step_size·value(y) + ‖y − x‖²/2 is nowhere smaller, and the map contracts as its modulus says."""
    prox, source, size = kind.example, np.random.default_rng(4), 0.8
    points = source.normal(0, 1, (40, 4, 3))
    mapped = np.array([prox.mapped(point, size) for point in points])
    for x, y in zip(points, mapped, strict=True):
        least = size * prox.value(y) + np.square(y - x).sum() / 2
        for reach in (1e-3, 0.1, 1.0):
            z = y + reach * source.normal(size=y.shape)
            assert size * prox.value(z) + np.square(z - x).sum() / 2 >= least - 1e-12
    before, after = (np.linalg.norm(np.diff(one, axis=0), axis=(1, 2)) for one in (points, mapped))
    assert (after <= before / (1 + size * prox.strong_convexity) * (1 + 1e-12)).all()
