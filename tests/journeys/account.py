"""An ML engineer ran DP-SGD and publishes the final model: which ε may be claimed, and under which assumptions?"""

from __future__ import annotations

from steps import Steps, expect, holds, journey

RUN = """
step_size = 0.5
steps = { epochs = 20 }
[loss]
kind = "logistic"
feature_norm = 1.0
l2 = 0.01
[batches]
kind = "shuffled"
records = 8000
batch_size = 400
[noise]
kind = "on_mean_gradient"
std = 0.01
"""


def walk(steps: Steps) -> None:
    steps.written("run.toml", RUN)
    report = steps.answered("account run.toml --delta 1e-5")
    composition = next(one["epsilon"] for one in report["guarantees"] if one["theorem"].endswith("/composition"))
    holds("the last iterate has a far smaller epsilon than all iterates together", report["epsilon"] < composition / 4)
    holds("the lower bound is below it", 0 < report["lower_bound"]["epsilon"] <= report["epsilon"])
    assumed = {one["code"]: one for one in report["assumptions"]}
    holds("only the last iterate may be released", assumed["only_released"]["released"] == "last")
    holds("feature vectors have norm at most 1", assumed["feature_norm"]["at_most"] == 1.0)
    holds("every theorem that does not apply says why", all(one["reasons"] for one in report["inapplicable"]))

    expect(steps.typed("account run.toml --delta 1e-5"), str(report["epsilon"])[:3], report["theorem"])

    checkpoints = steps.answered("account run.toml --delta 1e-5 --releases 200")
    holds("releasing checkpoints as well costs more", checkpoints["epsilon"] > report["epsilon"])

    steps.written("wrong.toml", RUN.replace("step_size = 0.5", "step_size = -0.5"))
    said = steps.typed("account wrong.toml", code=2)
    expect(said, "lastiterate: ", "step_size", "-0.5")
    holds("a mistake is answered in one line", said.count("\n") == 1)


if __name__ == "__main__":
    journey("account", walk)
