"""A team that accounts with dp-accounting and trains with Opacus gets the ε of the last iterate in its own pipeline."""

from __future__ import annotations

from steps import Steps, expect, holds, journey

PIPELINE = """
import json

import dp_accounting as dp

import lastiterate as li
from lastiterate.adapters.dp_accounting import LastIterateAccountant, LastIterateDpEvent

run = li.Run(
    loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    batches=li.FullBatch(records=1_000),
    step_size=0.5,
    noise=li.OnMeanGradient(std=0.05),
    steps=1_000,
)


def accountant():
    return LastIterateAccountant(dp.NeighboringRelation.REPLACE_ONE)


model = accountant().compose(LastIterateDpEvent(run))
released = accountant().compose(dp.SelfComposedDpEvent(dp.GaussianDpEvent(noise_multiplier=50.0), 1_000))
found = {
    "model": model.get_epsilon(1e-5),
    "ours": li.account(run, 1e-5).epsilon,
    "every iterate": released.get_epsilon(1e-5),
    "with a statistic": model.compose(dp.GaussianDpEvent(noise_multiplier=20.0)).get_epsilon(1e-5),
}
print(json.dumps(found))
"""
TRAINING = """
import json
import warnings

warnings.filterwarnings("ignore")  # of torch and Opacus

import torch
from opacus import PrivacyEngine
from opacus.accountants import register_accountant
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lastiterate as li

features = torch.randn(600, 20)
data = TensorDataset(features / features.norm(dim=1, keepdim=True), (features[:, 0] > 0).long())


def set_up(accountant):
    engine, model = PrivacyEngine(accountant=accountant), nn.Linear(20, 2)
    return engine, *engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(data, batch_size=50, shuffle=True),
        noise_multiplier=1.5,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )


engine, _, optimizer, loader = set_up("prv")
run = li.adapters.opacus.run_of(engine, optimizer, loader, epochs=2)
register_accountant("lastiterate", li.adapters.opacus.accountant_for(run))
engine, model, optimizer, loader = set_up("lastiterate")
for _ in range(2):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
report = engine.accountant.report(1e-5)
report.save_certificate("certificate.json")
print(json.dumps({"epsilon": engine.get_epsilon(1e-5), "reported": report.epsilon, "steps": len(engine.accountant)}))
"""


def walk(steps: Steps) -> None:
    found = steps.scripted("pipeline.py", PIPELINE)
    holds("the event has the epsilon of li.account", abs(found["model"] / found["ours"] - 1) < 1e-3)
    holds("which is less than for every iterate", found["model"] < 0.7 * found["every iterate"])
    holds("and composes with other releases", found["model"] < found["with a statistic"] < found["every iterate"])

    found = steps.scripted("training.py", TRAINING)
    holds("Opacus prints the epsilon of the training that took place", found["epsilon"] == found["reported"] > 0)
    holds("of all its steps", found["steps"] == 24)
    expect(steps.typed("verify certificate.json"), "accepted: epsilon = ")


if __name__ == "__main__":
    journey("team", walk)
