"""`make comparison`: the tables of docs/comparison.md, every cell computed here, each peer in an environment of its own.

`--ours` leaves the peers out. They are also written to out/comparison.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import lastiterate as li
from benchmarks.environments import ROOT, environment
from benchmarks.peers.comparison_peers import STEPS
from benchmarks.peers.settings import DELTA, MULTIPLIER, RATE, SMALL_DELTA
from lastiterate import estimators
from lastiterate.estimators.base import PrivateLinearModel
from lastiterate.runs.noise import Noise

ROWS = {
    "version": "version",
    "epsilon": "ε of 10⁴ Poisson steps, multiplier 1, rate 0.01, δ = 1e-5; exact: 6.187712",
    "small delta": "the same at δ = 1e-14; exact: 11.303559",
    "both sides": "lower and upper bound on the first number",
    "shuffled": "ε with a shuffled loader: 1000 records, batches of 50, 2 epochs, multiplier 1",
    "last iterate": "ε if only the last iterate is released",
    "certificate": "a certificate that another program can check",
    "lower": "lower bounds on ε: exact instances, audits",
    "calibrate": "noise for a target ε",
    "mechanisms": "mechanisms it accounts for",
    "networks": "trains networks",
    "estimators": "scikit-learn estimators",
}
PEERS = {
    "dp-accounting": "peers",
    "Opacus": "peers",
    "prv_accountant": "peers",
    "autodp": "autodp",
    "diffprivlib": "diffprivlib",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="leave the peers out")
    arguments = parser.parse_args()
    columns = {"lastiterate": ours()}
    for peer, where in {} if arguments.ours else PEERS.items():
        print(f"asking {peer} …", file=sys.stderr, flush=True)
        columns[peer] = theirs(peer, where)
    names = list(columns)
    text = "\n\n".join(
        table({name: columns[name] for name in names[place : place + 3]}) for place in range(0, len(names), 3)
    )
    print(text)
    out = ROOT / "out" / "comparison.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text + "\n")


def table(columns: dict[str, dict[str, str]]) -> str:
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {title} | {' | '.join(one[row] for one in columns.values())} |" for row, title in ROWS.items()]
    return "\n".join(lines)


def theirs(peer: str, where: str) -> dict[str, str]:
    command = [str(environment(where)), "-m", "benchmarks.peers.comparison_peers", peer]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.strip().splitlines()[-1])


def ours() -> dict[str, str]:
    poisson = li.notions.subsampled_gaussian(mu=1 / MULTIPLIER, inclusion=RATE).compose(STEPS)
    lower, upper = poisson.bracket(DELTA)
    last = li.account(_convex(li.Shuffled(1000, 50)), delta=DELTA)
    return {
        "version": li.__version__,
        "epsilon": f"{poisson.epsilon(DELTA):.6f}",
        "small delta": f"{poisson.epsilon(SMALL_DELTA):.6f}",
        "both sides": f"{lower:.6f} to {upper:.6f}",
        "shuffled": _shuffled(),
        "last iterate": f"a strongly convex run: {last.epsilon:.4f}, every iterate {last.epsilon_all_released:.4f}",
        "certificate": f"{li.verify(last.certificate).accepted and 'accepted'} by `lastiterate verify`",
        "lower": f"of the same run: {last.lower_bound.epsilon:.4f}",
        "calibrate": f"`li.{li.calibrate.__name__}`, `li.notions.{li.notions.largest_mu.__name__}`",
        "mechanisms": _mechanisms(),
        "networks": f"`li.torch.{li.torch.PrivateTrainer.__name__}`; layer by layer, or any module by vmap",
        "estimators": _estimators(),
    }


def _convex(batches: li.Shuffled) -> li.Run:
    loss = li.losses.logistic(feature_norm=1.0, l2=0.05)
    return li.Run(loss, batches, 1.0, li.OnMeanGradient(std=0.4), 2000)


def _shuffled() -> str:
    """The same loader as Opacus': nothing is known of the loss but its clip, so that both epochs are paid for."""
    run = li.Run(
        li.losses.network(clip=1.0), li.Shuffled(1000, 50), 0.1, li.OnGradientSum(MULTIPLIER, clip=1.0), li.epochs(2)
    )
    return f"{li.account(run, delta=DELTA).epsilon:.4f}, replace one"


def _mechanisms() -> str:
    public = (getattr(li.mechanisms, name) for name in li.mechanisms.__all__)
    released = [one for one in public if isinstance(one, type) and (hasattr(one, "release") or hasattr(one, "amplify"))]
    return f"{len(Noise.__subclasses__())} places for Gaussian noise, {len(released)} other mechanisms"


def _estimators() -> str:
    models = [name for name in estimators.__all__ if issubclass(getattr(estimators, name), PrivateLinearModel)]
    return f"{len(models)} models, (ε, δ)"


if __name__ == "__main__":
    main()
