"""`make speed`: seconds an epoch and memory of private training of networks, beside Opacus and plain torch.

All train in this process, with the same threads, on the same data in memory that come in whole batches; they take turns, so
that a busy machine slows all of them. Medians of warm epochs, wall and CPU seconds. Peak memory is of a process of its own
for each, above what it held before; the median of three. The ratios are what to look at; Opacus' noise is torch's, ours is
exact.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

import lastiterate as li
from benchmarks.environments import ROOT
from benchmarks.speed.network_models import NETWORKS, SMALL, Marked, made, parameters, whole

RATE, CLIP, MULTIPLIER = 0.1, 1.0, 1.0
BATCHES, RECORDS, WARM = (256, 1024), 4_096, 4  # steps before the epoch that counts
PEAKS = 3  # processes: memory that is given back is not always found again, so that they differ by a few MB
HOPELESS = 8.0  # times the CPU seconds of the quickest: one turn will do
Way = Callable[[str, int, int, int], Marked]
"""Train a network on so many records in batches of a size, for so many steps; the data know when batches were fetched."""


def main() -> None:
    arguments = _arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    if arguments.alone:
        network, way, batch, records = arguments.alone
        print(_peak(network, way, int(batch), int(records)))
    else:
        _all(arguments)


def _all(arguments: Any) -> None:
    settings = [(network, batch) for network in arguments.networks for batch in arguments.batches]
    rows = [row for setting in settings for row in _measured(*setting, arguments)]
    _show(rows, arguments.threads)
    out = ROOT / "out" / "speed-networks.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"threads": arguments.threads, "rows": [asdict(row) for row in rows]}, indent=1))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=list(BATCHES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="fewer records and turns, and no memory")
    parser.add_argument("--alone", nargs=4, help=argparse.SUPPRESS)
    found = parser.parse_args()
    if found.quick:
        found.repeats, found.records = 3, 2_048
    return found


@dataclass(frozen=True)
class Row:
    """What one way of training takes; beside Opacus' best mode with the same optimiser and batch."""

    network: str
    batch: int
    way: str
    wall: float
    cpu: float
    peak: float | None
    times_wall: float = 1.0
    times_cpu: float = 1.0


def ours(optimizer: Any) -> Way:
    def train(network: str, records: int, batch: int, steps: int) -> Marked:
        from lastiterate.torch import PrivateTrainer

        module, data = made(network, records)
        run = li.Run(
            li.losses.network(clip=CLIP),
            li.Shuffled(records, batch),
            RATE if isinstance(optimizer, li.SGD) else 1e-3,
            li.OnGradientSum(multiplier=MULTIPLIER, clip=CLIP),
            steps + 1,  # the last one ends what is timed, and is not
            optimizer=optimizer,
        )
        PrivateTrainer(module, torch.nn.functional.cross_entropy, run, data, collate_fn=whole).fit()
        return data

    return train


def opacus(optimizer: Callable[[Any], Any], **mode: Any) -> Way:
    """Ghost clipping returns a loss of its own, whose `backward` makes both passes."""

    def train(network: str, records: int, batch: int, steps: int) -> Marked:
        from opacus import PrivacyEngine

        module, data = made(network, records)
        criterion: Any = torch.nn.CrossEntropyLoss()
        private = PrivacyEngine().make_private(
            module=module,
            optimizer=optimizer(module.parameters()),
            criterion=criterion,
            data_loader=_loader(data, batch),
            noise_multiplier=MULTIPLIER,
            max_grad_norm=CLIP,
            poisson_sampling=False,
            **mode,
        )
        criterion = private[2] if len(private) == 4 else criterion
        return _trained(private[0], private[1], criterion, private[-1], steps, data)

    return train


def plain(optimizer: Callable[[Any], Any]) -> Way:
    def train(network: str, records: int, batch: int, steps: int) -> Marked:
        module, data = made(network, records)
        loader, criterion = _loader(data, batch), torch.nn.CrossEntropyLoss()
        return _trained(module, optimizer(module.parameters()), criterion, loader, steps, data)

    return train


def _loader(data: Marked, batch: int) -> Any:
    return torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, collate_fn=whole)


def _trained(module: Any, optimizer: Any, criterion: Any, loader: Any, steps: int, data: Marked) -> Marked:
    while True:
        for inputs, targets in loader:
            if len(data.marks) > steps:
                return data
            optimizer.zero_grad()
            criterion(module(inputs), targets).backward()
            optimizer.step()


def _sgd(trained: Any) -> Any:
    return torch.optim.SGD(trained, lr=RATE)


def _momentum(trained: Any) -> Any:
    return torch.optim.SGD(trained, lr=RATE, momentum=0.9)


def _adam(trained: Any) -> Any:
    return torch.optim.Adam(trained, lr=1e-3)


GHOST = {"grad_sample_mode": "ghost"}
OPTIMIZERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "SGD": (li.SGD(), _sgd),
    "momentum": (li.SGD(momentum=0.9), _momentum),
    "Adam": (li.Adam(), _adam),
}
WAYS: dict[str, Way] = {
    f"{name}, {who}": way
    for name, (said, made_by) in OPTIMIZERS.items()
    for who, way in {
        "lastiterate": ours(said),
        "Opacus hooks": opacus(made_by),
        "Opacus ghost": opacus(made_by, grad_sample_mode="ghost"),
        "without privacy": plain(made_by),
    }.items()
}


def _measured(network: str, batch: int, arguments: Any) -> list[Row]:
    """With SGD all ways; with momentum and Adam ours, and the better of Opacus' modes."""
    print(f"{network}, batches of {batch} …", file=sys.stderr, flush=True)
    first = _timed([way for way in WAYS if way.startswith("SGD")], network, batch, arguments)
    mode = _best(first, "SGD").way.removeprefix("SGD")
    others = [f"{name}{who}" for name in ("momentum", "Adam") for who in (", lastiterate", mode)]
    rows = [*first, *_timed(others, network, batch, arguments)]
    return [_compared(row, _best(rows, row.way.split(",")[0])) for row in rows]


def _timed(ways: list[str], network: str, batch: int, arguments: Any) -> list[Row]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    epoch = arguments.records // batch
    for _ in range(arguments.repeats):
        for name, seconds in found.items():
            if not seconds or seconds[0][1] < HOPELESS * min(one[0][1] for one in found.values() if one):
                seconds.append(WAYS[name](network, arguments.records, batch, WARM + epoch).last(epoch))
    medians = {name: [statistics.median(one) for one in zip(*seconds, strict=True)] for name, seconds in found.items()}
    return [
        Row(network, batch, name, *both, None if arguments.quick else _peak_alone(network, name, batch, arguments))
        for name, both in medians.items()
    ]


def _best(rows: list[Row], optimizer: str) -> Row:
    """Of Opacus' modes that of fewer CPU seconds."""
    return min((one for one in rows if one.way.startswith(f"{optimizer}, Opacus")), key=lambda one: one.cpu)


def _compared(row: Row, best: Row) -> Row:
    return replace(row, times_wall=row.wall / best.wall, times_cpu=row.cpu / best.cpu)


def _peak_alone(network: str, way: str, batch: int, arguments: Any) -> float:
    command = [sys.executable, "-m", "benchmarks.speed.networks", "--threads", str(arguments.threads), "--alone"]
    asked = [*command, network, way, str(batch), str(2 * batch)]
    told = [subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout for _ in range(PEAKS)]
    return statistics.median(float(one.split()[-1]) for one in told)


def _peak(network: str, way: str, batch: int, records: int) -> float:
    """MB above what this process held before; training something small before loads what is needed."""
    WAYS[way](SMALL, 4, 2, 2)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _kilobytes("VmRSS")
    WAYS[way](network, records, batch, 3)
    return (_kilobytes("VmHWM") - before) / 1024


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _show(rows: list[Row], threads: int) -> None:
    print(f"{threads} threads; times: Opacus' better mode with the same optimiser and batch")
    print(
        f"{'':14} {'batch':>5} {'':24} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'wall, times':>12} {'CPU, times':>11}"
    )
    before = ("", 0)
    for row in rows:
        name = f"{row.network:14} {row.batch:5}" if before != (row.network, row.batch) else " " * 20
        before, peak = (row.network, row.batch), "" if row.peak is None else f"{row.peak:.0f}"
        print(
            f"{name} {row.way:24} {row.wall:8.3f} {row.cpu:8.3f} {peak:>8} {row.times_wall:12.2f} {row.times_cpu:11.2f}"
        )
    print("; ".join(f"{network}: {parameters(network):,} parameters" for network in NETWORKS))


if __name__ == "__main__":
    main()
