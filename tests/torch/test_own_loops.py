"""A loop of one's own that was killed goes on where it was, with its book."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import lastiterate as li
from lastiterate.facts import fact
from raising import raises

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from lastiterate.torch import PrivateTrainer, clip_and_noise, loader  # noqa: E402
from lastiterate.torch.private_steps import PrivateSteps  # noqa: E402

RECORDS = 24
torch.manual_seed(0)
FEATURES, LABELS = torch.randn(RECORDS, 4, dtype=torch.float64), torch.randint(3, (RECORDS,))
DATA = TensorDataset(FEATURES, LABELS)
cross_entropy = torch.nn.functional.cross_entropy
OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "plain": (None, lambda p: torch.optim.SGD(p, 0.3)),
    "momentum": (li.SGD(momentum=0.9), lambda p: torch.optim.SGD(p, 0.3, momentum=0.9)),
    "adam": (li.Adam(), lambda p: torch.optim.Adam(p, 0.3)),
}


def a_run(batches: Any = None, **more: Any) -> li.Run:
    noise = li.OnGradientSum(1e-6, 0.5)
    return li.Run(li.losses.network(clip=0.5), batches or li.Cyclic(RECORDS, 8), 0.3, noise, 12, **more)


def a_model() -> Any:
    torch.manual_seed(1)
    return torch.nn.Linear(4, 3).double()


def begun(
    run: li.Run, file: Path | None, kind: str = "plain", data: Any = DATA, **more: Any
) -> tuple[Any, PrivateSteps]:
    gc.collect()  # whoever was killed has let go of the file
    model, batches = a_model(), loader(data, run)
    optimizer = OPTIMIZERS[kind][1](model.parameters())
    return batches, clip_and_noise(optimizer, model, cross_entropy, run, batches, checkpoint=file, **more)


def walked(batches: Any, steps: PrivateSteps, last: int = 12) -> list[int]:
    """Sizes of batches, up to this step."""
    seen = []
    for inputs, targets in batches:
        seen.append(len(inputs))
        steps.accumulate(inputs, targets)
        steps.step()
        if steps.taken == last:
            break
    return seen


def weights_of(model: Any) -> Any:
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])


@pytest.mark.parametrize("released", [li.LAST, li.EMA(decay=0.5)], ids=["last", "average"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("stop", [5, 12])
def test_a_loop_that_was_killed_goes_on(kind: str, released: Any, stop: int, tmp_path: Path) -> None:
    """With hardly any noise it comes to where one that was not killed does."""
    run, file = a_run(optimizer=OPTIMIZERS[kind][0], released=released), tmp_path / "state"
    batches, steps = begun(run, None, kind)
    walked(batches, steps)
    whole = weights_of(steps.finish().model)
    batches, steps = begun(run, file, kind, checkpoint_every=0.0)
    walked(batches, steps, stop)
    assert file.stat().st_mode & 0o777 == 0o600
    del batches, steps
    batches, steps = begun(run, file, kind)
    assert steps.taken == stop
    assert len(walked(batches, steps)) == 12 - stop
    trained = steps.finish()
    assert not list(tmp_path.iterdir())
    assert torch.allclose(weights_of(trained.model), whole, atol=1e-4)
    assert trained.report(1e-5).epsilon == li.account(trained.run, 1e-5).epsilon


def test_each_record_is_used_once_in_an_epoch_that_was_resumed(tmp_path: Path) -> None:
    places = TensorDataset(torch.arange(RECORDS, dtype=torch.float64)[:, None].expand(-1, 4).contiguous(), LABELS)
    run, file = a_run(li.Shuffled(RECORDS, 8)), tmp_path / "state"
    seen: list[float] = []
    for last in (4, 6):
        batches, steps = begun(run, file, data=places, checkpoint_every=0.0)
        for inputs, targets in batches:
            seen += inputs[:, 0].tolist()
            steps.accumulate(inputs, targets)
            steps.step()
            if steps.taken == last:
                break
        del batches, steps
    assert sorted(seen[RECORDS:]) == sorted(seen[:RECORDS]) == list(range(RECORDS))


def test_what_was_released_is_in_the_book_of_the_loop_that_goes_on(tmp_path: Path) -> None:
    """Written before it is seen: a step that somebody saw is not walked again."""
    run, file = a_run(), tmp_path / "state"
    batches, steps = begun(run, file, checkpoint_every=1e9)
    walked(batches, steps, 4)
    assert not file.exists()
    shown = steps.release("a checkpoint")
    steps.releases.leak(4, "the loss of a batch")
    del batches, steps
    batches, steps = begun(run, file)
    assert steps.taken == 4
    assert torch.equal(steps.release("again")["weight"], shown["weight"])
    walked(batches, steps)
    report = steps.finish().report(1e-5)
    assert report.releases == (4,)
    assert report.caveats == (fact("leaked", what=(("the loss of a batch", (4,)),)),)


def test_other_trainings_and_loaders_are_refused(tmp_path: Path) -> None:
    run, file = a_run(), tmp_path / "state"
    batches, steps = begun(run, file, checkpoint_every=0.0)
    walked(batches, steps, 4)
    with raises("checkpoint_in_use", kind=li.errors.InvalidInput) as caught:
        begun(run, file)
    del batches, steps, caught  # whose traceback holds what failed
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        begun(run, file, data=TensorDataset(FEATURES + 1, LABELS))
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        begun(run.with_noise(2.0), file)
    with raises("checkpoint_of_another_run", kind=li.errors.InvalidInput):
        PrivateTrainer(a_model(), cross_entropy, run, DATA).fit(file)
    model, plain = a_model(), DataLoader(DATA, batch_size=8)
    with raises("checkpoint_needs_new_loader", "checkpoint"):
        clip_and_noise(torch.optim.SGD(model.parameters(), 0.3), model, cross_entropy, run, plain, checkpoint=file)
    with raises("checkpoint_needs_new_loader", "checkpoint"):
        begun(run, file, seed=1)
