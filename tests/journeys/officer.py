"""A privacy officer gets a run, a report to sign and a claim; checks them; and is not taken in by a doctored page."""

from __future__ import annotations

from pathlib import Path

from steps import Steps, expect, holds, journey

CHECKER = Path(__file__).parents[2] / "tools" / "check_certificate.py"  # shares no line with the library

RUN = """
step_size = 1.0
steps = { epochs = 100 }
[loss]
kind = "logistic"
feature_norm = 1.0
l2 = 0.05
[batches]
kind = "cyclic"
records = 2000
batch_size = 100
[noise]
kind = "on_mean_gradient"
std = 0.1
"""
STATED = """
[registry.basic]
name = "Churn model"
data_curators = ["Example Ltd"]
[nist_sp_800_226]
access_control = "Two people may read the records."
"""


def walk(steps: Steps) -> None:
    steps.written("run.toml", RUN)
    steps.written("stated.toml", STATED)
    steps.written("model.bin", "the released weights")
    said = steps.typed("account run.toml --delta 1e-6 --report report.html --stated stated.toml --model model.bin")
    expect(said, "epsilon = 0.77964 at delta = 1e-06", "report: report.html")
    page = steps.text("report.html")
    expect(page, "Churn model", "Two people may read the records.", 'class="box"', "Signature", "<svg")

    report = steps.answered("account run.toml --delta 1e-6 --certificate certificate.json")
    lower = report["lower_bound"]["epsilon"]
    holds("the lower bound shows that epsilon is not much too large", lower <= report["epsilon"] < 1.5 * lower)
    holds("the report names a theorem and its source", report["theorem"] and report["citation"])
    holds("and says why each of the others does not apply", all(one["reasons"] for one in report["inapplicable"]))
    expect(steps.checked(CHECKER, "certificate.json"), "accepted: ")

    said = steps.typed("verify report.html --run run.toml --model model.bin")
    expect(said, "accepted: epsilon = 0.77963985", "the page says the same")

    doctored = page.replace('id="epsilon">0.779639849883<', 'id="epsilon">0.1<')
    holds("the page shows epsilon where it is doctored", doctored != page)
    steps.written("doctored.html", doctored)
    said = steps.typed("verify doctored.html", code=1)
    expect(said, "rejected: the page says epsilon = 0.1, its certificate proves 0.779639849883")

    steps.written("ours.toml", RUN.replace("epochs = 100", "epochs = 120"))
    said = steps.typed("verify report.html --run ours.toml", code=1)
    expect(said, "rejected: it is about another run: steps is 2000 in the certificate and 2400 in ours.toml")


if __name__ == "__main__":
    journey("officer", walk)
