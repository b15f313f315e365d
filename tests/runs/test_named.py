"""Words of PyTorch and Opacus are refused with ours; nothing is taken silently for something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lastiterate as li

RUN = li.Run(li.losses.network(clip=1.0), li.Poisson(100, 0.1), 0.1, li.OnGradientSum(1.0, 1.0), 10)
GIVEN: dict[str, Any] = {"loss": RUN.loss, "batches": RUN.batches, "noise": RUN.noise}
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "Adam(lr)": (
        lambda: li.Adam(lr=0.1),
        r"lr is not an argument of Adam.*use step_size of the run: li.Run\(step_size",
    ),  # type: ignore[call-arg]
    "SGD(lr)": (lambda: li.SGD(lr=0.1), "which takes momentum, nesterov, dampening; use step_size of the run"),  # type: ignore[call-arg]
    "Adam(0.001)": (lambda: li.Adam(0.001), "Adam takes betas, eps, .*by its name. Got 0.001"),  # type: ignore[misc]
    "SGD(0.1)": (lambda: li.SGD(0.1), "SGD takes momentum, .*by its name. Got 0.1"),  # type: ignore[misc]
    "beta1": (lambda: li.Adam(beta1=0.9), r"write betas=\(0.9, 0.999\)"),  # type: ignore[call-arg]
    "weight_decay": (lambda: li.SGD(weight_decay=0.1), "use weight_decay of the run"),  # type: ignore[call-arg]
    "Run(lr)": (lambda: li.Run(**GIVEN, lr=0.1, steps=3), "lr is not an entry of a run; did you mean step_size"),
    "Run(epochs)": (lambda: li.Run(**GIVEN, step_size=0.1, epochs=3), r"steps=li.epochs\(…\) in Python"),
    "noise_multiplier": (lambda: li.OnGradientSum(noise_multiplier=1.0, clip=1.0), "did you mean multiplier"),  # type: ignore[call-arg]
    "max_grad_norm": (lambda: li.losses.network(max_grad_norm=1.0), "did you mean clip"),  # type: ignore[call-arg]
    "sample_rate": (lambda: li.Poisson(records=10, sample_rate=0.1), "did you mean rate"),  # type: ignore[call-arg]
    "batch": (lambda: li.Shuffled(records=10, batch=5), "did you mean batch_size"),  # type: ignore[call-arg]
    "target_delta": (lambda: li.account(RUN, target_delta=1e-5), "did you mean delta"),  # type: ignore[call-arg]
    "target_epsilon": (lambda: li.calibrate(RUN, target_epsilon=1.0, delta=1e-5), "did you mean epsilon"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("name", CASES)
def test_words_of_others_are_refused_with_ours(name: str) -> None:
    call, message = CASES[name]
    with pytest.raises(li.errors.InvalidInput, match=message) as refusal:
        call()
    assert isinstance(refusal.value, TypeError)


def test_what_is_there_is_taken_as_before() -> None:
    assert replace(li.SGD(momentum=0.9), nesterov=True) == li.SGD(momentum=0.9, nesterov=True)
    assert repr(li.Adam(betas=(0.8, 0.9))) == "Adam(betas=(0.8, 0.9), eps=1e-08, decoupled=False)"
    assert li.Poisson(100, 0.1) == RUN.batches
