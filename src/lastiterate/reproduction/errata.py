"""Errors of the papers that touch what the library computes: as printed, as corrected, and what comes of using them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from lastiterate.reproduction import evidence, unlearning
from lastiterate.reproduction.evidence import Finding


class Effect(Enum):
    """What the printed form does."""

    UNSOUND = "unsound"
    GAP = "proof gap"
    LOOSE = "loose"
    TYPO = "typo"
    NUMBERS = "wrong numbers"
    TRUE = "true after all"


@dataclass(frozen=True)
class Erratum:
    """`test` is where the correction is held to; `evidence` computes the numbers afresh."""

    name: str
    place: str
    printed: str
    corrected: str
    effect: Effect
    test: str
    evidence: Callable[[], Finding] | None = None

    def __post_init__(self) -> None:
        if self.evidence is not None:  # some take seconds, and their numbers do not change
            object.__setattr__(self, "evidence", lru_cache(maxsize=1)(self.evidence))


_CATALOGUE = "tests/laws/test_refuted.py"
_ASOODEH = "tests/theorems/test_asoodeh2023.py"
_BASELINES = "tests/curves/test_baselines.py"
_HERE = "tests/reproduction/test_errata.py"
_DIFFUSIONS = "tests/mechanisms/test_diffusions.py"
_KERNELS = "tests/mechanisms/test_kernels.py"
_LANGEVIN = "tests/theorems/test_langevin.py"
_TABLES = "tests/theorems/test_bok2024_tables.py"
_RANDOM = "tests/theorems/test_random_batches.py"
_UNLEARNING = "tests/reproduction/test_unlearning.py"

ERRATA = (
    Erratum(
        "E0.1",
        "Asoodeh2023, Prop. 5, Theorem 3 (21)",
        "θ_ε((r_t − σκ)/σ)",
        "θ_ε(2(r_t − σκ)/σ): a ball of radius r has diameter 2r",
        Effect.UNSOUND,
        _ASOODEH,
        evidence.regularised_two_wells,
    ),
    Erratum(
        "E0.1b",
        "the same, one step with 1 of 100 records",
        "see E0.1",
        "see E0.1",
        Effect.UNSOUND,
        _ASOODEH,
        evidence.regularised_one_step,
    ),
    Erratum(
        "E0.2",
        "Asoodeh2023, Theorem 3 (21)",
        "a factor b/(n − b), infinite for full batches",
        "b/n",
        Effect.LOOSE,
        _ASOODEH,
    ),
    Erratum(
        "E0.3",
        "Asoodeh2023, Theorems 1, 2",
        "the chord of the contraction curve",
        "the curve itself (`nonlinear-contraction`)",
        Effect.LOOSE,
        _ASOODEH,
        evidence.projected_limit,
    ),
    Erratum(
        "E0.3b",
        "Asoodeh2023, Theorems 1, 2",
        "steps with the record do not contract; all others contract by the worst factor",
        "`block-mixing`",
        Effect.LOOSE,
        _ASOODEH,
        evidence.projected_profile,
    ),
    Erratum(
        "E0.4",
        "Asoodeh2023, Poisson batches",
        "the mean over a batch, undefined if it is empty",
        "an empty batch has gradient 0 (`li.parts.PoissonMean`)",
        Effect.GAP,
        "tests/runs/test_run.py",
    ),
    Erratum(
        "E1.1",
        "Boninsegna2023, §VI-A",
        "α·K/(2σ²Q²) for every batch",
        "(α/2σ²)·[(E − 1)/Q + 1/(Q − κ + 1)] for batch κ; worst: (α/2σ²)·[1 + (E − 1)/Q]",
        Effect.UNSOUND,
        _CATALOGUE,
        evidence.last_batch,
    ),
    Erratum(
        "E1.2",
        "Boninsegna2023, §VI-A",
        "the two cases of s_t, one sign, and one case of a_t",
        "cases swapped; a minus sign; 2ηL/(B(Q − κ + 1))",
        Effect.TYPO,
        _CATALOGUE,
    ),
    Erratum(
        "E1.3",
        "Boninsegna2023, after Theorem II.3",
        "for ε < 1, ε' = 2√(2k ln(1/δ'))·ε",
        "ε' = √(2k ln(1/δ'))·ε + kε(e^ε − 1)",
        Effect.UNSOUND,
        _BASELINES,
        evidence.strong_composition,
    ),
    Erratum(
        "E1.4",
        "Boninsegna2023, §III-A",
        "(qε, qδ) after subsampling",
        "(log(1 + q(e^ε − 1)), qδ)",
        Effect.UNSOUND,
        _BASELINES,
        evidence.subsampling,
    ),
    Erratum(
        "E1.4b",
        "Boninsegna2023, §III-A",
        "noise √(2 ln(1.25/δ)/ε)",
        "√(2 ln(1.25/δ))/ε",
        Effect.UNSOUND,
        _BASELINES,
        evidence.gaussian_noise,
    ),
    Erratum(
        "E1.5",
        "Boninsegna2023, Theorem VII.2",
        "S_0^j = 1 for all j",
        "S = 1 only before the first step of the run",
        Effect.UNSOUND,
        _LANGEVIN,
        evidence.free_first_epoch,
    ),
    Erratum(
        "E1.6",
        "Boninsegna2023, §VII-A, observation",
        "α/(2σ²) for K steps without sampling or contraction",
        "α·K/(2σ²)",
        Effect.UNSOUND,
        _HERE,
        evidence.lost_steps,
    ),
    Erratum(
        "E1.7",
        "Boninsegna2023, Theorem VII.1",
        "a valid bound",
        "Bok2024, Theorem 4.2, is exact, and half as large in the limit",
        Effect.LOOSE,
        _LANGEVIN,
        evidence.langevin_limit,
    ),
    Erratum(
        "E2.1",
        "Kong2025, Theorem 2.2",
        "L_λ, proved only without clipping",
        "min(L_clip·D + s, D + 2ηC)/ν",
        Effect.GAP,
        "tests/runs/test_lipschitz.py",
    ),
    Erratum(
        "E2.2",
        "Kong2025, Prop. 2.1(b)",
        "√2·L_λ for clipped steps",
        "the exact constant, 2/√(4 − ηM) for convex losses",
        Effect.LOOSE,
        "tests/runs/test_lipschitz.py",
        evidence.clipped_constant,
    ),
    Erratum(
        "E2.3",
        "Kong2025, Lemma A.7",
        "a bound with m²/(2(M + m)), with a wrong proof",
        "the bound is true, by the spectrum: a concave function of an eigenvalue, nonnegative at both ends",
        Effect.TRUE,
        _HERE,
    ),
    Erratum(
        "E2.4",
        "Kong2025, Lemmas A.6, A.7",
        "curvature bounded on the domain, which may have no interior",
        "curvature bounded on a neighbourhood of the domain",
        Effect.UNSOUND,
        _HERE,
        evidence.flat_domain,
    ),
    Erratum(
        "E2.5",
        "Kong2025, Theorem 2.3",
        "4α(ηC/bν)²·[1 + E·θ_L(l)]",
        "2α(ηC/bν)²·[1 + (E − 1)·θ_L(l)], the optimum for L ≥ 1",
        Effect.LOOSE,
        _CATALOGUE,
        evidence.one_epoch_too_many,
    ),
    Erratum(
        "E2.6",
        "Kong2025, Corollary C.2",
        "noise (Cλ/2b)·√((1 + …)/(αε))",
        "(2λC/b)·√(α(1 + …)/ε): larger by 4α",
        Effect.UNSOUND,
        _HERE,
        evidence.corollary_noise,
    ),
    Erratum(
        "E2.7",
        "Kong2025, Lemma A.4(b)",
        "every step adds to the bound",
        "a step in which both runs agree adds nothing: plain composition is better",
        Effect.LOOSE,
        "tests/shift/test_engine.py",
    ),
    Erratum(
        "E2.8",
        "Kong2025, Prop. 2.1(a), Table 2",
        "diameter C; local DP with sensitivity C",
        "radius C; sensitivity 2C if a record is replaced",
        Effect.TYPO,
        "tests/runs/test_losses.py",
    ),
    Erratum(
        "E3.1",
        "Balle2019, Theorem 5",
        "(α, ε_i)-RDP",
        "(α, α·ε_i)",
        Effect.UNSOUND,
        _CATALOGUE,
        evidence.order_forgotten,
    ),
    Erratum(
        "E3.2",
        "Balle2019, §5.1, the Ornstein–Uhlenbeck equation",
        "√(2ρ)·dW",
        "√2·ρ·dW, which matches the semigroup, the generator and Corollary 7",
        Effect.TYPO,
        _DIFFUSIONS,
    ),
    Erratum(
        "E3.3",
        "Balle2019, Lemma 9, Fig. 1",
        "(γ, ε)-Dobrushin implies γ-Dobrushin",
        "only the converse holds. Counterexample: K = [[.6, .4], [.4, .6]] at ε = 0.5",
        Effect.UNSOUND,
        _KERNELS,
        evidence.dobrushin_reversed,
    ),
    Erratum(
        "E3.4",
        "Balle2019, Theorem 4 (3), Theorem 5",
        "αΔ²L^{r+1}/(2rν²)",
        "the optimum, L^{2r}(1 − L²)/(1 − L^{2r}), from the shift engine",
        Effect.LOOSE,
        _CATALOGUE,
        evidence.iterated_shift,
    ),
    Erratum(
        "E3.6",
        "Balle2019, Lemma 18",
        "√(1 − 2ηβρ/(β + ρ))",
        "1 − ηρ",
        Effect.LOOSE,
        "tests/runs/test_lipschitz.py",
    ),
    Erratum(
        "E3.7",
        "Balle2019, Theorem 8, “in particular”",
        "a special case of θR² ≤ 4dρ²",
        "false for d·Δ²/(2εR²) > 2: except at t = 1, the error can exceed the Gaussian mechanism's",
        Effect.GAP,
        _DIFFUSIONS,
    ),
    Erratum(
        "E3.8",
        "Balle2019, Theorem 1 (2)",
        "a bound",
        "the whole curve is exact for every kernel",
        Effect.TRUE,
        _KERNELS,
    ),
    Erratum(
        "E4.1",
        "Bok2024, §4.4, Tables 1, 3, 4",
        "a clipped softmax step contracts by 1 − ηλ",
        "not always: the clipped gradient is not monotone. True for linear models, for two classes, and without clipping",
        Effect.UNSOUND,
        "tests/runs/test_losses.py",
        evidence.clipped_softmax,
    ),
    Erratum(
        "E4.2",
        "Bok2024, Lemma C.11",
        "steps from τ* + 1",
        "steps from τ*; otherwise z ends below 0",
        Effect.TYPO,
        _TABLES,
    ),
    Erratum(
        "E4.3",
        "Bok2024, Lemma C.10",
        "(1 − c^t)(1 + c^{t−1}); 1 + c^{E(l−1)}",
        "(1 − c^l)(1 + c^{t−l}); 1 + c^{l(E−1)}",
        Effect.TYPO,
        _TABLES,
    ),
    Erratum(
        "E4.4",
        "Bok2024, Theorems 4.3, 4.5, 4.6, 4.9, 4.10",
        "missing roots, ceilings and one G(",
        "see the table of all theorems, docs/theorems.md",
        Effect.TYPO,
        _RANDOM,
    ),
    Erratum(
        "E4.5",
        "Bok2024, Lemma D.2",
        "X(t) = e^t(δ'' − δ')",
        "e^{−t}(δ'' − δ'); Proposition D.4, which follows, is right",
        Effect.TYPO,
        "tests/numerics/test_lattice.py",
    ),
    Erratum(
        "E4.6",
        "Bok2024, Theorem 4.2, used by others at c > 1",
        "((c^T − 1)/(c^T + 1))·((c + 1)/(c − 1))",
        "composition; linear losses attain it",
        Effect.UNSOUND,
        _CATALOGUE,
        evidence.closed_form_above_one,
    ),
    Erratum(
        "E4.7",
        "Bok2024, Lemma A.5, Table 3",
        "C_p(G(μ))^{⊗t} replaced by its limit",
        "this is only an estimate: above the exact ε in Table 3, but not everywhere",
        Effect.UNSOUND,
        "tests/curves/test_subsampled.py",
        evidence.central_limit,
    ),
    Erratum(
        "E4.9",
        "Bok2024, Tables 10 to 12, E*",
        "31, …",
        "41, …: all 27 printed values are too small. Even the corrected ones are below the E from which Theorem 4.6 holds "
        "(`make tables`)",
        Effect.NUMBERS,
        _TABLES,
    ),
    Erratum(
        "E5.4",
        "Bok2024, §5, §D.4, after McSherry and Talwar 2007",
        "the exponential mechanism on diameter D is (2LD, 0)-DP",
        "(LD, 0)-DP: F − F' varies by at most LD, and log Z − log Z' lies in the same range",
        Effect.LOOSE,
        "tests/mechanisms/test_sampling.py",
        evidence.pure_exponential,
    ),
    Erratum(
        "E6.1",
        "Chien2024 (2403.17105), its code: epsilon_with_alpha_z",
        "αz²/(2ησ²) times the contraction of later steps",
        "αz²/(4ησ²) times that: the added noise has variance 2ησ²",
        Effect.LOOSE,
        _UNLEARNING,
        unlearning.twice_the_noise,
    ),
    Erratum(
        "E6.2",
        "Chien2024, its code: ten classes, one against the rest",
        "a step whose gradient is clipped as one vector contracts by 1 − ηm",
        "not always, as for a softmax (E4.1). True for two classes, as in its totals, or if each class is clipped alone",
        Effect.UNSOUND,
        _UNLEARNING,
        unlearning.jointly_clipped,
    ),
    Erratum(
        "E6.3",
        "Koloskova2025 (2506.06985), its code: dp_accountant",
        "ε(δ) from `epsilon_renyi`, the same at every order α",
        "the divergence at α is α·`epsilon_renyi` with weight decay, and twice that without",
        Effect.UNSOUND,
        _UNLEARNING,
        unlearning.order_left_out,
    ),
    Erratum(
        "footnote 9",
        "Bok2024, Lemma C.12",
        "a stronger bound, as a conjecture",
        "it is true. Proof: docs/proofs.md, “Random batches”",
        Effect.TRUE,
        _RANDOM,
    ),
)


def markdown_table() -> list[str]:
    """The lines of the table in docs/errata.md."""
    lines = ["| id | place | printed | corrected | effect |", "|---|---|---|---|---|"]
    for one in ERRATA:
        cells = (one.name, one.place, one.printed, one.corrected, one.effect.value)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines
