"""An auditor gets a vendor's trainer and its claim, of which one is refuted and a weaker one is not."""

from __future__ import annotations

from steps import Steps, expect, journey

VENDOR = """
import numpy as np

data = np.concatenate([np.zeros(99), [10.0]])


def train(data, seed):
    noise = np.random.default_rng(seed).normal(scale=0.05, size=20)
    model = 0.0
    for step in range(20):
        model -= 0.5 * (0.2 * (model - data.mean()) + noise[step])
    return model
"""


def walk(steps: Steps) -> None:
    steps.written("vendor.py", VENDOR)
    said = steps.typed("audit vendor.py --make-neighbour replace-one --delta 1e-5 --claimed 0.5", code=1)
    expect(said, "the claim of epsilon = 0.5 at delta = 1e-05 is refuted, with 95% confidence")

    said = steps.typed("audit vendor.py --make-neighbour replace-one --delta 1e-5 --claimed 20")
    expect(
        said, "the claim of epsilon = 20 at delta = 1e-05 is not refuted by these runs; this does not prove the claim"
    )

    steps.written("broken.py", VENDOR.replace("def train(data, seed)", "def train(data)"))
    said = steps.typed("audit broken.py --make-neighbour replace-one --claimed 0.5", code=2)
    expect(said, "lastiterate: train must take data and a seed: train(data, seed). Got train(data);")


if __name__ == "__main__":
    journey("auditor", walk)
