"""What a loop of one's own brings from outside, entry by entry: an attack that is refused, or a line in the report."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.errors import worded
from lastiterate.facts import Basis, fact
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import DataLoader, TensorDataset, default_collate  # noqa: E402

from lastiterate.torch import PrivateTrainer, clip_and_noise, loader  # noqa: E402
from lastiterate.torch.private_steps import TRUSTED, PrivateSteps  # noqa: E402

RECORDS, CLIP, RATE = 24, 0.5, 0.3
FEATURES = torch.randn(RECORDS, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(RECORDS) % 3
DATA = TensorDataset(FEATURES, LABELS)
cross_entropy = torch.nn.functional.cross_entropy
DOCUMENT = Path(__file__).parents[2] / "docs" / "pytorch.md"


@pytest.fixture(autouse=True)
def unseeded() -> None:
    """Other tests may have seeded PyTorch's generator."""
    torch.seed()


def a_run(batches: Any = None, steps: int = 6, **more: Any) -> li.Run:
    noise = more.pop("noise", li.OnGradientSum(1.0, CLIP))
    return li.Run(li.losses.network(clip=CLIP), batches or li.Shuffled(RECORDS, 8), RATE, noise, steps, **more)


def begun(batches: Any = None, data: Any = DATA, run: li.Run | None = None, **more: Any) -> tuple[Any, PrivateSteps]:
    """A loop over the library's own loader, or over another one."""
    run, model = a_run() if run is None else run, torch.nn.Linear(4, 3)
    batches = loader(data, run) if batches is None else batches
    steps = clip_and_noise(torch.optim.SGD(model.parameters(), RATE), model, cross_entropy, run, batches, **more)
    return batches, steps


def of_pytorch(**more: Any) -> DataLoader[Any]:
    return DataLoader(DATA, batch_size=8, shuffle=True, **more)


def walk(batches: Any, steps: PrivateSteps, last: int | None = None) -> PrivateSteps:
    for inputs, targets in batches:
        steps.accumulate(inputs, targets)
        steps.step()
        if steps.taken == last:
            break
    return steps


def another_rate(batches: Any, steps: PrivateSteps) -> None:
    steps.optimizer.param_groups[0]["lr"] = 2 * RATE
    walk(batches, steps)


def other_parameters(batches: Any, steps: PrivateSteps) -> None:
    with torch.no_grad():
        next(iter(steps.network.parameters.values())).mul_(2)
    walk(batches, steps)


def other_loader(batches: Any, steps: PrivateSteps) -> None:
    walk(of_pytorch(), steps)


def batch_left_out(batches: Any, steps: PrivateSteps) -> None:
    drawn = iter(batches)
    next(drawn)
    walk(drawn, steps)


def record_left_out(batches: Any, steps: PrivateSteps) -> None:
    walk(((inputs[1:], targets[1:]) for inputs, targets in batches), steps)


def record_twice(batches: Any, steps: PrivateSteps) -> None:
    inputs, targets = next(iter(batches))
    steps.accumulate(inputs, targets)
    walk([(inputs, targets)], steps)


def training_goes_on(batches: Any, steps: PrivateSteps) -> None:
    """Two models would be released, and one accounted for."""
    drawn = iter(batches)
    walk(drawn, steps, last=2).finish(stopped=True)
    walk(drawn, steps).finish()


Attack = Callable[[Any, PrivateSteps], None]
ATTACKS: dict[str, tuple[Attack, ...]] = {
    "learning rate": (another_rate,),
    "parameters": (other_parameters,),
    "loader": (other_loader, batch_left_out),
    "batch": (record_left_out, record_twice),
    "end": (training_goes_on,),
}


@pytest.mark.parametrize("own", [True, False], ids=["li.torch.loader", "DataLoader"])
@pytest.mark.parametrize("attack", [attack for attacks in ATTACKS.values() for attack in attacks])
def test_every_attack_is_refused(attack: Attack, own: bool) -> None:
    with pytest.raises(li.errors.InvalidInput):
        attack(*begun(None if own else of_pytorch()))


def test_a_finished_training_is_finished() -> None:
    """Its release is the last one: the report is that of the steps before it."""
    batches, steps = begun(run=a_run(noise=li.OnGradientSum(2.0, CLIP)))
    drawn = iter(batches)
    trained = walk(drawn, steps, last=3).finish(stopped=True)
    before = trained.report(1e-5).epsilon
    for goes_on in (lambda: steps.accumulate(*next(drawn)), steps.step):
        with raises("training_finished", "finish"):
            goes_on()
    assert steps.taken == 3
    assert steps.finish(stopped=True).report(1e-5).epsilon == before == li.account(trained.run, 1e-5).epsilon


@pytest.mark.parametrize("seeds", [(3**38, 3**38), (3**38, 3**38 + 1), (0, 1), (2**33 + 1, None)])
@pytest.mark.parametrize("own_generator", [False, True])
def test_seeds_are_looked_at_in_every_step(seeds: tuple[int, int | None], own_generator: bool) -> None:
    generator = torch.Generator() if own_generator else torch.default_generator
    generator.seed()
    batches, steps = begun(of_pytorch(generator=generator if own_generator else None))
    for seed in seeds:
        if seed is not None:
            generator.manual_seed(seed)
        walk(batches, steps)
    assert steps.finish().report(1e-5).caveats == (fact("order_seeded"),)


@pytest.mark.parametrize("workers", [0, 1])
def test_generators_that_go_on_are_no_caveat(workers: int) -> None:
    batches, steps = begun(of_pytorch(num_workers=workers))
    for _ in range(2):
        walk(batches, steps)
    assert steps.finish().report(1e-5).caveats == ()


def mixup(records: list[Any]) -> Any:
    inputs, targets = default_collate(records)
    share = float(torch.rand(()))
    return share * inputs + (1 - share) * inputs[torch.randperm(len(inputs))], targets


def standardised(records: list[Any]) -> Any:
    inputs, targets = default_collate(records)
    return inputs - inputs.mean(0) + 1e-9 * torch.randn(inputs.shape, dtype=inputs.dtype), targets


def noisy_mixup(records: list[Any]) -> Any:
    inputs, targets = mixup(records)
    return inputs + torch.randn(inputs.shape), targets


def rare_mixup(records: list[Any]) -> Any:
    return mixup(records) if torch.rand(()) < 1e-9 else default_collate(records)


def unreadable(records: list[Any]) -> Any:
    if len(records) == 1:
        raise ValueError("no batches of one record")
    return default_collate(records)


@pytest.mark.parametrize("collate_fn", [mixup, standardised])
@pytest.mark.parametrize("double", [False, True])
def test_collate_functions_that_mix_and_round_are_refused(collate_fn: Any, double: bool) -> None:
    data = TensorDataset(FEATURES.double() if double else FEATURES, LABELS)
    model = torch.nn.Linear(4, 3).double() if double else torch.nn.Linear(4, 3)
    with raises("collate_mixes_records", "collate_fn"):
        PrivateTrainer(model, cross_entropy, a_run(), data, collate_fn=collate_fn)


@pytest.mark.parametrize(
    ("collate_fn", "compared"),
    [(noisy_mixup, "impossible"), (unreadable, "impossible"), (rare_mixup, "once"), (None, None)],
)
def test_what_a_collate_function_may_do_is_assumed(collate_fn: Any, compared: str | None) -> None:
    model = torch.nn.Linear(4, 3)
    trained = PrivateTrainer(model, cross_entropy, a_run(), DATA, collate_fn=collate_fn).fit()
    run = a_run()
    steps = walk(*begun(loader(DATA, run, collate_fn=collate_fn), run=run))
    for report in (trained.report(1e-5), steps.finish().report(1e-5)):
        found = [one for one in report.also_assumed if one.code == "collate_separate"]
        basis = Basis.CHECKED if compared == "once" else Basis.PROMISED
        assert found == ([] if compared is None else [fact("collate_separate", compared=compared).on(basis)])


def test_every_entry_has_an_attack_or_a_line_in_the_report_and_is_documented() -> None:
    run = a_run()
    batches = DataLoader(DATA, batch_size=8, shuffle=True, collate_fn=noisy_mixup)
    steps = begun(batches, run=run)[1]
    for _ in range(2):
        walk(batches, steps)
    assumed = {one.code for one in steps.finish().report(1e-5).also_assumed}
    names = [one.name for one in TRUSTED]
    assert len(set(names)) == len(names)
    assert all(one.name in ATTACKS or assumed & set(one.assumed) for one in TRUSTED)
    text = DOCUMENT.read_text()
    assert all(f"| {one.name} | {worded(one.needed)} |" in text for one in TRUSTED)


@pytest.mark.parametrize("place", [(3, 0), None])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_record_that_is_not_finite_is_named_as_such(value: float, place: Any) -> None:
    """One record, which may not be among those that are compared; or all of them."""
    features = FEATURES.clone()
    features[slice(None) if place is None else place] = value
    run = a_run(li.FullBatch(RECORDS), steps=1)
    with raises("records_not_finite", "dataset"):
        walk(*begun(data=TensorDataset(features, LABELS), run=run))


def test_the_lock_of_a_checkpoint_follows_no_link(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "state"
    os.symlink(elsewhere, f"{file}.lock")
    with pytest.raises(li.errors.InvalidInput):
        begun(checkpoint=file)
    assert not elsewhere.exists()
