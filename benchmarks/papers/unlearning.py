"""Unlearning by noisy steps: what two papers' code counts, and ours.

`python -m benchmarks.papers.unlearning`

Chien2024 (Graph-COM/SGD_unlearning, arXiv 2403.17105): 100 requests one after the other, full batches, ε = 1 at δ = 1/n.
Koloskova2025 (arXiv 2506.06985): μ of its clipped steps is one block of the engine; ε of it, converted exactly.
"""

from __future__ import annotations

import lastiterate as li
from lastiterate.progress import progress_bar, tracked
from lastiterate.reproduction.unlearning import CHIEN2024, REQUESTS, Koloskova2025, renyi_epsilon

DELTA = 1e-5


def requests() -> None:
    print("Chien2024: epochs for 100 requests, epsilon = 1, delta = 1/n, full batches")
    print(f"{'':18} {'stored':>7} {'formula':>8} {'noise as added':>15} {'exact conversion':>17} {'li.forget':>10}")
    for one in tracked(CHIEN2024, "data sets"):
        whole = li.forget(one.run, epsilon=1.0, delta=1 / one.records, removals=[1] * REQUESTS)
        print(
            f"{one.name:18} {one.printed:7d} {one.by_renyi(2.0):8d} {one.by_renyi(1.0):15d} {one.by_distance():17d} "
            f"{whole.steps:10d}"
        )


def blocks() -> None:
    print(f"\nKoloskova2025: epsilon at delta = {DELTA:g} of the same steps")
    print(
        f"{'radius':>7} {'step':>5} {'decay':>6} {'steps':>6} | {'mu':>7} {'engine':>7} | "
        f"{'Rényi':>7} {'exact':>7} {'less':>6}"
    )
    for one in (
        Koloskova2025(2.0, 0.0, 0.01, 100),
        Koloskova2025(2.0, 0.01, 0.0, 100),
        Koloskova2025(2.0, 0.01, 0.01, 400),
        Koloskova2025(5.0, 0.01, 0.0, 400),
    ):
        usual, exact = renyi_epsilon(one.mu, DELTA), float(li.notions.GaussianDP(one.mu).epsilon(DELTA))
        print(
            f"{one.radius:7g} {one.step:5g} {one.decay:6g} {one.steps:6d} | {one.mu:7.4f} {one.by_engine:7.4f} | "
            f"{usual:7.4f} {exact:7.4f} {100 * (1 - exact / usual):5.1f}%"
        )


def main() -> None:
    requests()
    blocks()


if __name__ == "__main__":
    with progress_bar():
        main()
