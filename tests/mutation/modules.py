"""What has to be believed, module by module, and the tests that concern it: a few seconds each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """A file of the library, the tests that a mutant of it meets, and words for -k."""

    file: str
    tests: str
    words: str = ""

    def path(self, source: Path) -> Path:
        return source / "lastiterate" / self.file


MODULES = (
    Module("kernel/certify.py", "tests/kernel/test_slack.py tests/kernel/test_certify.py", "not merged and not turn"),
    Module(
        "kernel/merged_steps.py", "tests/kernel/test_slack.py tests/kernel/test_certify.py tests/kernel/test_turns.py"
    ),
    Module(
        "kernel/steps.py", "tests/kernel/test_certify.py tests/kernel/test_kernel.py", "values or paid or stored_once"
    ),
    Module("kernel/places.py", "tests/theorems/test_place_counts.py tests/theorems/test_places.py"),
    Module(
        "kernel/gaussian.py",
        "tests/kernel/test_kernel.py tests/kernel/test_gaussian_slack.py",
        "delta or average or slack",
    ),
    Module(
        "kernel/check.py",
        "tests/kernel/test_kernel.py tests/kernel/test_claims.py",
        "not kernel_can_be_read and not kernel_loads and not delta_is_rounded and not sum_can_lose",
    ),
    Module(
        "certificate/codec.py",
        "tests/kernel/test_kernel.py tests/kernel/test_claims.py",
        "not kernel_can_be_read and not kernel_loads and not delta_is_rounded and not sum_can_lose",
    ),
    Module(
        "runs/batches/passes.py",
        "tests/training/test_samplers.py tests/runs/test_run.py",
        "shuffled or cyclic or sampler or inclusion or each_epoch or wrong_in_a_file",
    ),
    Module("runs/noise.py", "tests/runs/test_noise.py"),
    Module("runs/losses/loss.py", "tests/runs/test_loss_facts.py"),
    Module("runs/losses/given.py", "tests/runs/test_loss_facts.py"),
    Module("runs/losses/residuals.py", "tests/runs/test_loss_facts.py tests/laws/test_kinds.py", "facts"),
    Module("runs/losses/residuals.py", "tests/runs/test_loss_facts.py tests/laws/test_kinds.py", "facts"),
    Module("runs/losses/several_classes.py", "tests/runs/test_loss_facts.py tests/laws/test_kinds.py", "facts"),
    Module("runs/quantities.py", "tests/runs/test_lipschitz.py"),
    Module("mixing/recursion.py", "tests/mixing", "recursion or for_ever or profile"),
    Module("mixing/window.py", "tests/mixing", "window or joined or tail or share"),
    Module("mixing/contraction.py", "tests/mixing", "contraction or curve"),
    Module("mixing/window.py", "tests/mixing", "ends or record"),
    Module("mixing/recursion.py", "tests/mixing", "grid"),
    Module("mixing/table.py", "tests/mixing", "table"),
    Module("curves/notion.py", "tests/curves/test_conversions.py"),
    Module(
        "shift/schedule.py",
        "tests/shift/test_schedule.py tests/kernel/test_slack.py tests/shift/test_engine.py",
        "test_schedule.py or no_schedule or contracting or growing",
    ),
    Module(
        "numerics/randomness.py",
        "tests/numerics/test_random_borders.py tests/training/test_samplers.py tests/numerics/test_randomness.py",
        "not cut and not deviation and not independent_from and not coordinates",
    ),
    Module("numerics/exact_noise.py", "tests/numerics/test_exact_noise.py", "not law_of_the and not betrays"),
    Module("curves/transformed.py", "tests/curves/test_displaced.py tests/training/test_floating_point.py", "displace"),
    Module("runs/noise.py", "tests/runs/test_arithmetic.py"),
)
