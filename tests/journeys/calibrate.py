"""An ML engineer has a target: which noise, and how many epochs, meet ε = 1?"""

from __future__ import annotations

from steps import Steps, expect, holds, journey

RUN = """
step_size = 0.5
steps = { epochs = 50 }
[loss]
kind = "logistic"
feature_norm = 1.0
l2 = 0.01
[batches]
kind = "cyclic"
records = 8000
batch_size = 400
[noise]
kind = "on_mean_gradient"
std = 0.014
"""


def walk(steps: Steps) -> None:
    steps.written("run.toml", RUN)
    before = steps.answered("account run.toml --delta 1e-5")
    holds("the run as planned misses the target", before["epsilon"] > 1)

    noisier = steps.answered("calibrate run.toml --epsilon 1 --delta 1e-5 --write noisier.toml")
    holds("more noise meets it", noisier["run"]["noise"]["std"] > 0.014 and 0.95 < noisier["epsilon"] <= 1)
    holds("the written run has that epsilon", steps.answered("account noisier.toml")["epsilon"] == noisier["epsilon"])

    shorter = steps.answered("calibrate run.toml --epsilon 1 --delta 1e-5 --free steps --write shorter.toml")
    passes = shorter["run"]["steps"] // 20
    holds("so does a number of whole epochs", shorter["run"]["steps"] == 20 * passes and shorter["epsilon"] <= 1)
    steps.written("longer.toml", RUN.replace("epochs = 50", f"epochs = {passes + 1}"))
    holds("one epoch more would not", steps.answered("account longer.toml")["epsilon"] > 1)

    said = steps.typed("calibrate run.toml --epsilon -1", code=2)
    expect(said, "epsilon", "-1")


if __name__ == "__main__":
    journey("calibrate", walk)
