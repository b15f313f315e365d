"""`make out-of-core`: training on 10⁷ rows that stay on disk, beside training on the same rows in memory.

Rows a second are of trained rows, by CPU time: what a longer training takes beyond a short one, each a program of its own.
"First pass" is what comes before the first step: every record is read and checked once. Own memory is
what the program holds itself (RssAnon, looked at every few milliseconds) above what it held before it opened the data;
pages of mapped files are the system's, which takes them back when it likes. "With pages" counts them (VmHWM; ru_maxrss
would count the program that started this one).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import lastiterate as li
from benchmarks.environments import ROOT

FEATURES, BATCH, ROW_GROUP = 20, 100_000, 122_880
_AT_ONCE = 1_000_000
_LOOK = 0.003  # seconds between two looks at the memory

KINDS = ("FullBatch", "Cyclic", "Shuffled", "FixedSize", "Poisson")
PLACES = ("memory", "mapped", "Parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10**7)
    parser.add_argument("--one", nargs=4, metavar=("PLACE", "KIND", "STEPS", "FOLDER"), help="a single row, as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measured(options.records, *options.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        _write(options.records, Path(folder))
        _show(options.records, Path(folder))


def _write(records: int, folder: Path) -> None:
    """A .npy file of features, one of targets, and the same as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (records, FEATURES))
    sides = np.lib.format.open_memmap(folder / "targets.npy", "w+", np.int8, (records,))
    source = np.random.default_rng(0)
    (folder / "parquet").mkdir()
    for first in range(0, records, _AT_ONCE):
        part = source.normal(size=(min(_AT_ONCE, records - first), FEATURES)).astype(np.float32)
        part /= 1.01 * np.linalg.norm(part, axis=1, keepdims=True)
        labels = np.where(part[:, 0] > 0, 1, -1).astype(np.int8)
        rows[first : first + len(part)], sides[first : first + len(part)] = part, labels
        table = pa.table({f"x{place}": part[:, place] for place in range(FEATURES)} | {"label": labels})
        name = folder / "parquet" / f"{first:012d}.parquet"
        pq.write_table(table, name, row_group_size=ROW_GROUP, use_dictionary=False)


def _show(records: int, folder: Path) -> None:
    sizes = {name: sum(one.stat().st_size for one in folder.glob(name)) / 1e6 for name in ("*.npy", "parquet/*")}
    print(f"{records} rows of {FEATURES} features in single precision, batches of about {_batch(records)}")
    print(f"on disk: .npy {sizes['*.npy']:.0f} MB, Parquet {sizes['parquet/*']:.0f} MB")
    print(f"{'':24} {'million rows/s':>14} {'first pass, s':>14} {'own memory, MB':>15} {'with pages, MB':>15}")
    found = {}
    for kind in (*KINDS, "to_memmap"):
        for place in PLACES if kind in KINDS else ("Parquet",):
            row = found[f"{kind}, {place}"] = _row(records, place, kind, folder)
            print(
                f"{f'{kind}, {place}':24} {row['rows a second'] / 1e6:14.3f} {row['first pass']:14.2f} "
                f"{row['own memory']:15.0f} {row['with pages']:15.0f}",
                flush=True,
            )
    out = ROOT / "out" / "out-of-core.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"records": records, "on disk, MB": sizes, "rows": found}, indent=1))


def _row(records: int, place: str, kind: str, folder: Path) -> dict[str, float]:
    """From a short training and a longer one, each a program of its own."""
    if kind == "to_memmap":
        found = _elsewhere(records, place, kind, 1, folder)
        return {**found, "rows a second": records / found.pop("seconds"), "first pass": 0.0}
    batches = _batches(records, kind)
    few, many = _steps(place, kind, batches)
    short, long = (_elsewhere(records, place, kind, steps, folder) for steps in (few, many))
    each = (long["seconds"] - short["seconds"]) / (many - few)
    memory = {name: max(short[name], long[name]) for name in ("own memory", "with pages")}
    return {"rows a second": batches.divisor / each, "first pass": max(0.0, short["seconds"] - few * each), **memory}


def _elsewhere(records: int, place: str, kind: str, steps: int, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.speed.out_of_core", "--records", str(records), "--one", place, kind]
    answer = subprocess.run([*command, str(steps), str(folder)], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def _measured(records: int, place: str, kind: str, steps: str, folder: str) -> dict[str, float]:
    _warm()
    before = _megabytes("RssAnon")
    with _Watch() as watch:
        if kind == "to_memmap":
            seconds = _converted(folder)
        else:
            seconds = _seconds(_run(_batches(records, kind), int(steps)), _opened(place, Path(folder)))
    own, pages = max(0.0, watch.most - before), _megabytes("VmHWM") - before
    return {"seconds": seconds, "own memory": own, "with pages": pages}


def _warm() -> None:
    """All that is loaded when it is first used."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"x": np.zeros(100), "y": np.ones(100)}), f"{folder}/one.parquet")
        source = li.training.ParquetRecords(folder, target="y")
        _seconds(_run(_batches(100, "Shuffled"), 1), source)
        _seconds(_run(_batches(100, "Cyclic"), 1), source.to_memmap(folder))


def _run(batches: Any, steps: int) -> li.Run:
    return li.Run(li.losses.logistic(feature_norm=1.0, l2=0.01), batches, 0.5, li.OnMeanGradient(std=1.0), steps)


def _converted(folder: str) -> float:
    source = li.training.ParquetRecords(f"{folder}/parquet", target="label")
    start = time.process_time()
    with tempfile.TemporaryDirectory(dir=folder) as into:
        source.to_memmap(into)
    return time.process_time() - start


def _opened(place: str, folder: Path) -> Any:
    if place == "Parquet":
        return li.training.ParquetRecords(folder / "parquet", target="label")
    mode = "r" if place == "mapped" else None
    return tuple(np.load(folder / f"{name}.npy", mmap_mode=mode) for name in ("features", "targets"))  # type: ignore[arg-type]


def _batch(records: int) -> int:
    return max(1, min(BATCH, records // 10))


def _batches(records: int, kind: str) -> Any:
    size = _batch(records)
    match kind:
        case "FullBatch":
            return li.FullBatch(records)
        case "Poisson":
            return li.Poisson(records, size / records)
        case "FixedSize":
            return li.FixedSize(records, size)
        case "Cyclic":
            return li.Cyclic(records, size, last="drop")
    return li.Shuffled(records, size, last="drop")


def _steps(place: str, kind: str, batches: Any) -> tuple[int, int]:
    """A few, and more: whole passes, or fewer steps where each looks at all records, or decodes most of them."""
    if kind in ("FullBatch", "Cyclic"):
        return batches.per_epoch, (3 if place == "Parquet" else 6) * batches.per_epoch
    return (1, 3) if place == "Parquet" else (5, 15)


def _seconds(run: li.Run, data: Any) -> float:
    start = time.process_time()
    li.train(run, data)
    return time.process_time() - start


def _megabytes(what: str) -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1e3 for line in status if line.startswith(what))


class _Watch:
    """The most memory of its own that the program was seen with."""

    def __enter__(self) -> _Watch:
        self.most, self._done = _megabytes("RssAnon"), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(_LOOK):
            self.most = max(self.most, _megabytes("RssAnon"))

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


if __name__ == "__main__":
    main()
