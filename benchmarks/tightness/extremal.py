"""A search for instances that cost more than those of the library: `make extremal` (EXTREMAL="--looks 400 --seed 1").

Hill climbing from the best that is kept, over chains whose maps, pushes and last steps may be anything that a setting
allows. Prints what is proved, the library's instance, the best fixed loss and the best changing maps that were found, for
one setting also the best loss in the plane. What is better than before is written to out/extremal.json; --keep writes it to
extremal_kept.json, which the tests compute again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.tightness.extremal_chains import (
    DELTA,
    GROUPS,
    LAST,
    LINEAR,
    RIDGES,
    SETTINGS,
    InPlane,
    InTime,
    OnInterval,
    Setting,
)

KEPT = Path(__file__).with_name("extremal_kept.json")
OUT = Path("out/extremal.json")
IN_PLANE = SETTINGS[1]
PULLS = (0.0, 0.3, 0.6, 1.0, 1.5, 3.0)
Found = tuple[float, Any]


def kept(path: Path = KEPT) -> dict[str, dict[str, Any]]:
    """By setting and shape: the numbers of the best chain, and its ε less the error of its grid."""
    return json.loads(path.read_text()) if path.exists() else {}


def restored(entry: dict[str, Any]) -> OnInterval:
    values = {one.name: entry["chain"][one.name] for one in fields(OnInterval)}
    return OnInterval(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def climbed(
    first: Any, setting: Setting, looks: int, source: np.random.Generator, fixed: tuple[str, ...] = ()
) -> Found:
    """Changes one number, or all a little, and keeps what costs more; steps shrink where nothing does."""
    best, chain, size = first.epsilon(setting), first, 1.0
    for _ in range(looks):
        tried = _changed(chain, size, source, fixed)
        found = tried.epsilon(setting)
        size = min(size * 1.5, 2.0) if found > best else max(size * 0.93, 0.01)
        if found > best:
            best, chain = found, tried
    return best, chain


def _changed(chain: Any, size: float, source: np.random.Generator, fixed: tuple[str, ...]) -> Any:
    names = [one.name for one in fields(chain) if one.name not in fixed and np.size(getattr(chain, one.name))]
    chosen = names if source.random() < 0.25 else [str(source.choice(names))]
    changes = {}
    for name in chosen:
        old = np.atleast_1d(np.asarray(getattr(chain, name), float))
        new = old + size * source.standard_normal(len(old)) * (source.random(len(old)) < max(0.5, 1 / len(old)))
        is_tuple = isinstance(getattr(chain, name), tuple)
        changes[name] = tuple(new.tolist()) if is_tuple else float(new[0])
    return replace(chain, **changes).within()


def one_loss(setting: Setting, looks: int, source: np.random.Generator, before: OnInterval | None) -> Found:
    starts = [before] if before else [OnInterval(offset=-pull) for pull in PULLS]
    return climbed(_best(starts, setting), setting, looks, source, ("last",))


def changing(setting: Setting, looks: int, source: np.random.Generator, before: OnInterval | None) -> Found:
    """From a pull that is the same up to the last step, or grows before it; against the record in the last one."""
    starts = [before] if before else []
    for pull, away, growing in product(() if before else PULLS, (2.0, 3.0, 4.0, 5.0), (0.0, 0.5)):
        last = (*(-pull - growing * (away - pull) * k / LAST for k in range(1, LAST)), -away)
        starts.append(OnInterval(offset=-pull, last=last))
    return climbed(_best(starts, setting), setting, looks, source)


def _best(starts: list[OnInterval], setting: Setting) -> OnInterval:
    return max(starts, key=lambda one: one.epsilon(setting))


def in_plane(looks: int, source: np.random.Generator) -> Found:
    zeros = (0.0,) * RIDGES
    first = InPlane(zeros, zeros, zeros, (1.0,) * RIDGES, (-1.28, 0.0), 0.3, 0.0)
    return climbed(first, IN_PLANE, looks, source)


def in_time(setting: Any, looks: int, source: np.random.Generator) -> Found:
    forgetting = (1.0,) * (GROUPS - 1) + (0.9,)
    starts = [InTime(), InTime(split=0.5), InTime(slopes=(0.95,) * GROUPS), InTime(slopes=forgetting)]
    return climbed(max(starts, key=lambda one: one.epsilon(setting)), setting, looks, source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=150, help="chains that are looked at in each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write what is better to what the tests compute again")
    chosen = parser.parse_args()
    best = {**kept()}
    print(f"delta = {DELTA:g}; lengths in units of the noise; {chosen.looks} looks in each search, seed {chosen.seed}")
    print(f"{'setting':42} {'proved':>8} {'by':20} {'library':>8} {'one loss':>9} {'changing maps':>14}")
    for setting in SETTINGS:
        source = np.random.default_rng([chosen.seed, SETTINGS.index(setting)])
        before = {shape: best.get(f"{setting.name}, {shape}") for shape in ("one loss", "changing maps")}
        starts = {shape: restored(entry) if entry else None for shape, entry in before.items()}
        _, one = one_loss(setting, chosen.looks, source, starts["one loss"])
        _, many = changing(setting, chosen.looks, source, starts["changing maps"])
        for shape, chain in (("one loss", one), ("changing maps", many)):
            found, old = chain.least_epsilon(setting), before[shape]
            if old is None or found > old["epsilon"]:
                best[f"{setting.name}, {shape}"] = {"epsilon": found, "chain": asdict(chain)}
        report = li.account(setting.run, DELTA)
        shown = [best[f"{setting.name}, {shape}"]["epsilon"] for shape in before]
        lower = report.lower_bound.epsilon
        print(f"{setting.name:42} {report.epsilon:8.4f} {report.best.theorem.name:20.20} {lower:8.4f}", end=" ")
        print(f"{shown[0]:9.4f} {shown[1]:14.4f}", flush=True)
    _, plane = in_plane(chosen.looks, np.random.default_rng([chosen.seed, len(SETTINGS)]))
    print(f"\nin the plane, {IN_PLANE.name}: one loss of two coordinates {plane.least_epsilon(IN_PLANE):.4f}")
    print(f"\n{'without a domain':42} {'proved':>8} {'by':20} {'library':>8} {'slopes in time':>15}")
    for one in LINEAR:
        report = li.account(one.run, DELTA)
        found, _ = in_time(one, chosen.looks, np.random.default_rng([chosen.seed, len(SETTINGS) + 1]))
        print(f"{one.name:42} {report.epsilon:8.4f} {report.best.theorem.name:20.20}", end=" ")
        print(f"{report.lower_bound.epsilon:8.4f} {found:15.4f}", flush=True)
    path = KEPT if chosen.keep else OUT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(best, indent=1) + "\n")


if __name__ == "__main__":
    main()
