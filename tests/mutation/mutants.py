"""Mistakes of the kinds that papers made, each planted alone: a lost factor, a radius for a diameter, a free first epoch."""

from __future__ import annotations

from dataclasses import dataclass

LAWS = "tests/laws/test_every_theorem.py"
RUNS = "tests/laws/test_runs.py"


@dataclass(frozen=True)
class Mutant:
    """In `file`, `right` becomes `wrong`; the tests in `file::…` form, or with words for -k, have to notice."""

    what: str
    file: str
    right: str
    wrong: str
    tests: str
    words: str = ""


MUTANTS = (
    Mutant(
        "E0.1: the radius of the ball for its diameter",
        "theorems/asoodeh2023.py",
        "drift[0]) / noise * grown + 2 * radius * retain * earlier)",
        "drift[0]) / noise / 2 * grown + radius * retain * earlier)",
        "tests/theorems/test_asoodeh2023.py",
    ),
    Mutant(
        "a ball of radius r gets diameter r",
        "algorithms/domains.py",
        "return 2 * self.radius",
        "return self.radius",
        "tests/algorithms",
    ),
    Mutant(
        "2ηC forgotten beside the diameter",
        "theorems/asoodeh2023.py",
        "return (carried + extremes(process.drift)[1]) / extremes(process.noise)[0] * _UP",
        "return carried / extremes(process.noise)[0] * _UP",
        LAWS,
        "asoodeh2023 and projected",
    ),
    Mutant(
        "the record's share and that of the others swapped",
        "mixing/contraction.py",
        "((1 - rate) * contracted(distances, epsilons, ratio) + rate * fresh)",
        "(rate * contracted(distances, epsilons, ratio) + (1 - rate) * fresh * contracted(distances, epsilons, ratio))",
        LAWS,
        "nonlinear",
    ),
    Mutant(
        "√(2η) becomes 2η in Langevin noise",
        "algorithms/noise.py",
        "np.sqrt(2 * eta) * std",
        "2 * eta * std",
        "tests/laws/test_conventions.py",
    ),
    Mutant(
        "√(2η) becomes √η",
        "algorithms/noise.py",
        "np.sqrt(2 * eta) * std",
        "np.sqrt(eta) * std",
        "tests/laws/test_conventions.py",
    ),
    Mutant(
        "noise on the mean gradient is not scaled by the step size",
        "algorithms/noise.py",
        "return each(np.multiply, step_sizes, self._size(len(step_sizes)))",
        "return self._size(len(step_sizes))",
        "tests/laws/test_conventions.py",
    ),
    Mutant(
        "noise on the sum is not divided by the batch",
        "algorithms/noise.py",
        "eta * z * c / batch_size",
        "eta * z * c",
        "tests/laws/test_conventions.py",
    ),
    Mutant(
        "E2.8: two clipped records differ by C instead of 2C",
        "algorithms/run.py",
        "return np.minimum(2 * clips, self.loss.gradient_sensitivity)",
        "return np.minimum(clips, self.loss.gradient_sensitivity)",
        RUNS,
        "instance or convention",
    ),
    Mutant(
        "the gradient of a linear model moves by its bound, not by twice its bound",
        "algorithms/losses.py",
        "0.0, bound, 2 * bound, (*known, *promises), True)",
        "0.0, bound, bound, (*known, *promises), True)",
        "tests/algorithms/test_losses.py",
    ),
    Mutant(
        "E4.1: a clipped softmax counts as convex",
        "algorithms/lipschitz.py",
        "if clipped and not loss.keeps_convexity:",
        "if clipped and loss.curvature < 0:",
        "tests/algorithms/test_lipschitz.py",
    ),
    Mutant(
        "E2.2: the clipped constant without its bend",
        "algorithms/lipschitz.py",
        "np.where(curved, np.sqrt(1 + half_sum**2 / np.where(curved, product, 1.0)), plain)",
        "plain",
        "tests/algorithms/test_lipschitz.py",
    ),
    Mutant(
        "E1.5: the first step is free",
        "theorems/langevin.py",
        "for step in range(1, len(process) + 1):",
        "for step in range(1, len(process)):",
        "tests/theorems/test_langevin.py",
    ),
    Mutant(
        "the last epoch of a shuffled run is free",
        "theorems/langevin.py",
        "* (_hidden(square, 1) + _hidden(square, every // 2)",
        "* (0 * _hidden(square, 1) + _hidden(square, every // 2)",
        LAWS,
        "ye2022 and shuffled",
    ),
    Mutant(
        "E1.7 overdone: Chourasia's limit divided by four",
        "theorems/langevin.py",
        "rho=4 / lost *",
        "rho=1 / lost *",
        LAWS,
        "chourasia",
    ),
    Mutant(
        "E4.6: the closed form of Theorem 4.2 above c = 1",
        "theorems/assumptions.py",
        "    if process.contraction < 1:\n        return None",
        "    if process.contraction < 1.2:\n        return None",
        "tests/laws/test_refuted.py tests/laws/test_closed_forms.py",
    ),
    Mutant(
        "Theorem 4.2 with the fractions swapped",
        "theorems/bok2024.py",
        "lost / (2 - lost) * (1 + c) / (1 - c)",
        "lost / (2 - lost) * (1 - c) / (1 + c)",
        LAWS,
        "full-batch and strongly",
    ),
    Mutant(
        "Theorem 4.3 with 3 for what is left out",
        "theorems/bok2024.py",
        "math.sqrt(3 * s * d + s**2 * math.ceil(d / s)) / noise * _UP)",
        "math.sqrt(3 * s * d / 2 + s**2 * math.ceil(d / s) / 2) / noise * _UP)",
        "tests/laws/test_closed_forms.py",
    ),
    Mutant(
        "E4.3: Theorem 4.5 with the exponent of another batch",
        "theorems/bok2024.py",
        "lost = _lost(c, len(process) - every)",
        "lost = _lost(c, (len(process) - every) // every)",
        LAWS + " tests/laws/test_closed_forms.py",
        "cyclic or Cyclic",
    ),
    Mutant(
        "Theorem 4.6 without the last turn",
        "theorems/bok2024.py",
        "math.sqrt(3 * s * d / every + s**2 + s**2 / every",
        "math.sqrt(3 * s * d / every + s**2 / every",
        "tests/laws/test_closed_forms.py tests/theorems/test_bok2024_tables.py",
    ),
    Mutant(
        "E1.1: the last batch is hidden as well as the others",
        "theorems/boninsegna2023.py",
        "* (1 + (len(process) // every - 1) / every)",
        "* (len(process) // every / every)",
        LAWS + " tests/laws/test_refuted.py",
        "boninsegna",
    ),
    Mutant(
        "Kong 2.3 without the last turn: a free first epoch",
        "theorems/kong2025.py",
        "math.sqrt(1 + (turns - 1) * amplification(process.contraction, every))",
        "math.sqrt(turns * amplification(process.contraction, every))",
        LAWS + " tests/laws/test_refuted.py",
        "kong",
    ),
    Mutant(
        "Kong 2.2 with the radius for the diameter",
        "theorems/kong2025.py",
        "grown = float(process.lipschitz[last]) * process.diameter +",
        "grown = float(process.lipschitz[last]) * process.diameter / 2 +",
        LAWS + " tests/laws/test_closed_forms.py",
        "kong or engine",
    ),
    Mutant(
        "E3.1: the order of the divergence forgotten",
        "theorems/balle2019.py",
        "    return RenyiDP(rho=process.step_mu**2 / 2 * _UP)",
        "    return RenyiDP(rho=process.step_mu**2 / 4 * _UP)",
        LAWS,
        "balle2019",
    ),
    Mutant(
        "the trusted checker forgets the Lipschitz constant",
        "shift/certify.py",
        "        owed = factor * rest + push\n",
        "        owed = min(factor, 1.0) * rest + push\n",
        "tests/shift/test_engine.py " + LAWS,
        "certify or shift-engine",
    ),
    Mutant(
        "the trusted checker starts from half of the diameter",
        "shift/certify.py",
        "steps.lipschitz[start] == 0 else steps.diameter",
        "steps.lipschitz[start] == 0 else steps.diameter / 2",
        "tests/shift/test_engine.py tests/shift/test_growth.py",
    ),
    Mutant(
        "block mixing from half of the diameter",
        "theorems/block_mixing.py",
        "return Ends(GaussianDP(common), common, remaining_mu(maps, process.diameter), math.inf)",
        "return Ends(GaussianDP(common), common, remaining_mu(maps, process.diameter / 2), math.inf)",
        "tests/theorems/test_block_mixing.py",
    ),
    Mutant(
        "the profile recursion takes the better case for the worse",
        "mixing/recursion.py",
        "mixed = np.maximum(common, (1 - weights[split]) * common + weights[split] * elsewhere) * _UP",
        "mixed = common * _UP",
        LAWS + " tests/theorems/test_block_mixing.py",
        "block-mixing or interval",
    ),
    Mutant(
        "window and tail without e^a on the window",
        "mixing/window.py",
        "together = np.logaddexp(log_tail, splits + log_window)",
        "together = np.logaddexp(log_tail, log_window) - splits",
        "tests/theorems/test_random_batches.py " + LAWS,
        "window",
    ),
    Mutant(
        "E4.4: √2 under the root of Theorem 4.10",
        "theorems/bok2024_random.py",
        "GaussianDP(alpha * given.diameter / (noise * math.sqrt(window)) * _UP)",
        "GaussianDP(math.sqrt(alpha * given.diameter) / (noise * window) * _UP)",
        "tests/theorems/test_random_batches.py",
    ),
    Mutant(
        "Theorem 4.8 with twice the probability squared",
        "theorems/sampled.py",
        "inclusion=rate, sampling=sampling",
        "inclusion=rate**2, sampling=sampling",
        LAWS,
        "random and composition or sampled",
    ),
    Mutant(
        "Poisson batches of unusual size cost nothing",
        "algorithms/process.py",
        "return len(self) * self.typical.rare * (1 + 1e-12)",
        "return 0.0 * self.typical.rare",
        "tests/theorems/test_random_batches.py",
    ),
    Mutant(
        "an epoch that was begun is not counted",
        "theorems/bok2024.py",
        "turns = -(-len(process) // every)",
        "turns = max(len(process) // every, 1)",
        "tests/laws/test_closed_forms.py " + LAWS,
        "closed or quadratic or cyclic",
    ),
    Mutant(
        "the constant feature of an intercept is forgotten in the norm",
        "estimators/base.py",
        "return math.hypot(self.feature_norm, self.constant) * (1 + 4e-16)",
        "return self.feature_norm",
        "tests/estimators/test_estimators.py",
        "intercept or meets",
    ),
    Mutant(
        "a limited pull has the norm of its largest entry",
        "algorithms/losses.py",
        "return self.pull * math.sqrt(1 + 1 / self.parts) * (1 + 1e-12)",
        "return self.pull * (1 + 1e-12)",
        "tests/training/test_pull.py",
    ),
    Mutant(
        "E4.1: the softmax is clipped by what only the true class pulls",
        "training/pull.py",
        "over = (wrong.max(axis=1) > limit.pull / limit.parts) | (wrong.sum(axis=1) > limit.pull)",
        "over = wrong.sum(axis=1) > limit.pull",
        "tests/training/test_pull.py",
    ),
    Mutant(
        "rows that are too long are counted and not scaled",
        "training/models.py",
        "slopes = slopes * _column(records.scales, slopes)",
        "slopes = slopes + 0 * _column(records.scales, slopes)",
        "tests/training/test_train.py",
    ),
    Mutant(
        "every class gets the whole clip",
        "training/models.py",
        "part = clip / math.sqrt(self.classes)",
        "part = clip",
        "tests/training/test_train.py",
    ),
    Mutant(
        "a training that goes on takes the numbers from the start again",
        "training/train.py",
        "source.go_on(state.randomness)",
        "source.go_on(source.state())",
        "tests/training/test_continuing.py",
        "as_if_it_had_not",
    ),
    Mutant(
        "noise as large as that of hidden iterates is added without a step size",
        "training/train.py",
        "moved += noise * self.source.hidden_normal(weights.shape)",
        "moved += size * noise * self.source.hidden_normal(weights.shape)",
        "tests/training/test_papers_algorithms.py",
    ),
    Mutant(
        "released checkpoints are not charged",
        "training/train.py",
        "return report_of(self.run, delta, self.released, self.private)",
        "return report_of(self.run, delta, (), self.private)",
        "tests/training/test_train.py",
    ),
)
