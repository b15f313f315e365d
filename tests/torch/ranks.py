"""Trainings in several processes, for test_distributed.py: `python ranks.py FOLDER` writes what each process found.

PyTorch is loaded once; the processes are forked from there, and speak over the loopback device alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import lastiterate as li
from lastiterate.numerics.randomness import Source
from lastiterate.torch.distributed import team_of
from lastiterate.torch.private_steps import clip_and_noise
from lastiterate.torch.sampling import BatchSampler
from lastiterate.torch.trainer import PrivateTrainer

RECORDS = 24
SHIFTS = 3000
LAW = li.Run(
    li.losses.network(clip=100.0), li.FullBatch(RECORDS), 0.5, li.OnGradientSum(multiplier=0.02, clip=100.0), steps=3
)
_PATIENCE = 60.0
_NOISE = li.OnGradientSum(multiplier=1.0, clip=0.1)
_LOSS = li.losses.network(clip=0.1)
_POISSON = li.Poisson(RECORDS, rate=0.2)
_SHUFFLED = li.Shuffled(RECORDS, 5, last="smaller")
RUNS = {
    "poisson": li.Run(_LOSS, _POISSON, 0.1, _NOISE, steps=12, adjacency=li.ADD_OR_REMOVE_ONE),
    "momentum": li.Run(_LOSS, _SHUFFLED, 0.1, _NOISE, steps=12, optimizer=li.SGD(momentum=0.9), released=li.EMA(0.9)),
    "adam": li.Run(_LOSS, li.FixedSize(RECORDS, 3), 0.1, _NOISE, steps=8, optimizer=li.Adam()),
    "projected": li.Run(_LOSS, li.Cyclic(RECORDS, 6), 0.1, _NOISE, steps=8, domain=li.Ball(0.5)),
}


class Data(torch.utils.data.Dataset):  # type: ignore[misc]
    """Some records; `bad` is one that cannot be read."""

    def __init__(self, records: int = RECORDS, bad: int = -1) -> None:
        drawn = torch.Generator().manual_seed(1)
        self.features, self.bad = torch.randn(records, 3, generator=drawn, dtype=torch.float64), bad
        self.labels = (self.features[:, 0] > 0).long()

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, place: int) -> Any:
        if place == self.bad:
            raise OSError("this record cannot be read")
        return self.features[place], self.labels[place]


def half_square(output: Any, targets: Any) -> Any:
    return (output - targets).square().sum(1) / 2


def model(rank: int = 0, width: int = 4) -> Any:
    """Another one on every rank, and buffers that differ, too."""
    torch.manual_seed(rank)
    made = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 2)).double()
    made.register_buffer("told", torch.full((2,), float(rank)))
    return made


def trainer(run: Any, rank: int = 0, data: Any = None, **more: Any) -> Any:
    more = {"seed": 3, "at_once": 2, **more}
    return PrivateTrainer(model(rank), torch.nn.functional.cross_entropy, run, data or Data(), **more)


def numbers(module: Any) -> list[float]:
    return [float(one) for part in (*module.parameters(), *module.buffers()) for one in part.detach().reshape(-1)]


def said(work: Callable[[], Any]) -> dict[str, Any]:
    """The kind and the text of an error; of one of the library, also its code, its field and its values."""
    try:
        work()
    except (li.errors.InvalidInput, RuntimeError, OSError) as error:
        told = {"kind": type(error).__name__, "text": str(error)}
        if isinstance(error, li.errors.LastIterateError):
            told |= {"code": error.code, "field": error.field, "got": error.got, **error.values}
        return told
    return {}


def alike(rank: int, size: int, _: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, run in RUNS.items():
        trained = trainer(run, rank, releases=[3]).fit()
        found[name] = numbers(trained.model), [one.reshape(-1).tolist() for one in trained.released[3].values()]
        found[f"{name} factor"] = trained.run.arithmetic.factor
        team = team_of()
        with team.together({}):
            sampler = BatchSampler(run, source=Source(5), team=team)
            found[f"{name} batches"] = list(sampler)
            found[f"{name} order"] = sampler.order_at(run.steps) is not None
    found["report"] = trained.report(1e-5).epsilon
    return found


def law(_: int, __: int, ___: Path) -> dict[str, Any]:
    """Every coordinate is a training by itself."""
    layer = torch.nn.Linear(1, SHIFTS, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    trained = PrivateTrainer(layer, half_square, LAW, [(torch.ones(1), torch.ones(SHIFTS))] * RECORDS).fit()
    team = team_of()
    with team.together({}):
        batches = list(BatchSampler(li.Run(_LOSS, _POISSON, 0.1, _NOISE, steps=200), team=team))
    return {"weights": trained.model.weight.reshape(-1).tolist(), "batches": batches, "private": trained.private}


def with_workers(rank: int, size: int, _: Path) -> dict[str, Any]:
    """Loaders draw ahead. A model that is wrapped is unwrapped."""
    trained = trainer(RUNS["poisson"], rank, num_workers=1).fit()
    wrapped = torch.nn.parallel.DistributedDataParallel(model(rank))
    again = PrivateTrainer(wrapped, torch.nn.functional.cross_entropy, RUNS["poisson"], Data(), seed=3, at_once=2).fit()
    return {"workers": numbers(trained.model), "wrapped": numbers(again.model)}


def refused(rank: int, size: int, _: Path) -> dict[str, Any]:
    """Rank 1 is another one each time; all processes say the same, and can go on."""
    run, odd = RUNS["poisson"], rank == 1
    longer = li.Run(_LOSS, _POISSON, 0.1, _NOISE, steps=13)
    less = li.Run(_LOSS, li.Poisson(RECORDS - 1, rate=0.2), 0.1, _NOISE, steps=12)
    wider = model(rank, 5 if odd else 4)
    loss = torch.nn.functional.cross_entropy
    tries = {
        "run": lambda: trainer(longer if odd else run, rank),
        "records": lambda: trainer(less if odd else run, rank, Data(RECORDS - 1) if odd else None),
        "not those of its run": lambda: trainer(run, rank, Data(RECORDS - 1) if odd else None),
        "model": lambda: PrivateTrainer(wider, loss, run, Data()),
        "no model": lambda: PrivateTrainer(None if odd else model(rank), loss, run, Data()),
        "seed": lambda: trainer(run, rank, seed=4 if odd else 3),
        "budget": lambda: trainer(run, rank, epsilon=2.0 if odd else 1.0, delta=1e-5),
        "impossible": lambda: trainer(run, rank, epsilon=1e-200, delta=1e-5),
        "releases": lambda: trainer(run, rank, releases=[5] if odd else []).fit(),
        "loader": lambda: trainer(run, rank, num_workers=1 if odd else 0).fit(),
        "sharded": lambda: trainer_of_shards(rank),
        "own loop": lambda: clip_and_noise(None, None, loss, run, None),
    }
    found = {name: said(one) for name, one in tries.items()}
    return {**found, "after": numbers(trainer(run, rank).fit().model)}


def trainer_of_shards(rank: int) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    divided = fully_shard(model(rank), mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return PrivateTrainer(divided, torch.nn.functional.cross_entropy, RUNS["poisson"], Data())


def errors(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """An error in one process ends all, at once."""
    begun, full = time.monotonic(), li.Run(_LOSS, li.FullBatch(RECORDS), 0.1, _NOISE, steps=4)
    infinite = Data()
    infinite.features[5] = torch.inf
    nowhere = folder / "no such folder" / "checkpoint" if rank == 0 else None
    found = {
        "not finite": said(lambda: trainer(full, rank, infinite).fit()),
        "not readable": said(lambda: trainer(full, rank, Data(bad=RECORDS - 2)).fit()),
        "not readable at first": said(lambda: trainer(full, rank, Data(bad=2)).fit()),
        "by a worker": said(lambda: trainer(full, rank, Data(bad=RECORDS - 2), num_workers=1).fit()),
        "nowhere": said(lambda: trainer(full, rank).fit(checkpoint=nowhere)),
    }
    return {**found, "seconds": time.monotonic() - begun, "after": numbers(trainer(full, rank).fit().model)}


def killed(step: int, who: int, seed: int | None) -> Callable[[int, int, Path], dict[str, Any]]:
    """A training in which one process is killed at this step of its own, or none; it goes on from the file that is there."""

    def work(rank: int, size: int, folder: Path) -> dict[str, Any]:
        taken = []
        made = trainer(RUNS["momentum"], rank, seed=seed)
        gradient_sum = made.objective.gradient_sum

        def counted(*args: Any) -> Any:
            taken.append(len(taken))
            if len(taken) == step and rank == who:
                os.kill(os.getpid(), signal.SIGKILL)
            return gradient_sum(*args)

        made.objective.gradient_sum = counted
        orders, agreed = [], made.team.agree

        def watched(state: Any) -> Any:
            told = agreed(state)
            orders.append(told.order is not None)
            return told

        made.team.agree = watched
        file = folder / f"checkpoint-{seed}"
        outcome: list[Any] = []
        message = said(lambda: outcome.append(made.fit(file, checkpoint_every=0.0)))
        mode = oct(file.stat().st_mode & 0o777) if file.exists() else ""
        return {
            "taken": len(taken),
            "said": message,
            "mode": mode,
            "orders": orders,
            "weights": [numbers(one.model) for one in outcome],
            "left": sorted(one.name for one in folder.glob(f"checkpoint-{seed}*")),
        }

    return work


def joined(name: str, rank: int, size: int, work: Any, folder: Path) -> None:
    dist.init_process_group("gloo", f"file://{folder}/{name}.init", timedelta(seconds=30), rank=rank, world_size=size)
    (folder / f"{name}-{rank}.json").write_text(json.dumps(work(rank, size, folder)))
    dist.destroy_process_group()


def launched(name: str, size: int, work: Any, folder: Path) -> list[int | None]:
    """How the processes ended; one that does not is killed."""
    context, until = multiprocessing.get_context("fork"), time.monotonic() + _PATIENCE
    started = [context.Process(target=joined, args=(name, rank, size, work, folder)) for rank in range(size)]
    for one in started:
        one.start()
    for one in started:
        one.join(max(0.0, until - time.monotonic()))
        if one.is_alive():
            one.kill()
            one.join()
    return [one.exitcode for one in started]


LAUNCHES: dict[str, tuple[int, Any]] = {
    **{f"alike-{size}": (size, alike) for size in (1, 2, 4)},
    **{f"law-{size}": (size, law) for size in (1, 2, 4)},
    "workers": (2, with_workers),
    "refused": (2, refused),
    "errors": (4, errors),
    "whole": (2, killed(0, 0, 7)),
    "killed": (2, killed(5, 1, 7)),
    "by another number": (1, killed(0, 0, 7)),
    "leader killed": (2, killed(4, 0, 7)),
    "resumed": (2, killed(0, 0, 7)),
    "private killed": (2, killed(5, 1, None)),
    "private resumed": (2, killed(0, 0, None)),
}


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    torch.set_num_threads(1)
    trainer(RUNS["adam"]).fit().report(1e-5)  # whatever is loaded now is loaded once
    folder = Path(sys.argv[1])
    wanted = sys.argv[2:] or LAUNCHES
    codes = {}
    for name in wanted:
        begun = _processor_time()
        codes[name] = launched(name, *LAUNCHES[name], folder)
        print(name, codes[name], f"{_processor_time() - begun:.1f} s", flush=True)
    (folder / "codes.json").write_text(json.dumps(codes))


if __name__ == "__main__":
    main()
