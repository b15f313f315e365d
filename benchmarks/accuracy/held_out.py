"""Ten data sets on which no constant of the library was chosen: wine, iris, diabetes, six spectra, sparse counts.

As in `datasets`, rows are prepared without looking at the training data: by ranges that the description of the data set
publishes or that are common knowledge in medicine, or by each row's own norm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.datasets import Dataset, from_ranges, split, unit_rows

SMALL = ("wine", "iris", "diabetes")
TEXT = "topics"
TEST_ROWS = 5000

# Age in years, sex (1 or 2), body mass index, blood pressure in mm Hg, cholesterol, LDL and HDL in mg/dl, cholesterol over
# HDL, the logarithm of triglycerides, glucose in mg/dl: what adults mostly have. Progression is told in points up to 350.
DIABETES_LOW = np.array([18.0, 1, 15, 60, 90, 40, 20, 2, 3, 55])
DIABETES_HIGH = np.array([80.0, 2, 45, 135, 310, 250, 100, 9, 6.2, 125])
DIABETES_TARGETS = 350.0


@dataclass(frozen=True)
class Spectrum:
    """Gaussian rows around a mean, with labels from a random softmax model of the centred features."""

    seed: int
    records: int
    classes: int
    deviations: np.ndarray  # of each feature
    shared: float = 0.0  # the correlation of any two features
    degrees: float | None = None  # of freedom of the length of a row: few make heavy tails
    mean: float = 1.0  # the norm of the mean, over that of the deviations
    sharpness: float = 6.0  # the standard deviation of a score
    whole: bool = True  # each row divided by its own norm; otherwise only rows longer than twice the usual


def _places(features: int) -> np.ndarray:
    return np.arange(1, features + 1, dtype=float)


SPECTRA = {
    "flat": Spectrum(1, 4000, 3, np.ones(50)),
    "harmonic": Spectrum(2, 10_000, 2, 1 / _places(100), whole=False),
    "quadratic": Spectrum(3, 20_000, 5, _places(40) ** -2.0, whole=False),
    "few-strong": Spectrum(4, 5000, 2, np.where(_places(200) <= 5, 1.0, 0.05)),
    "block": Spectrum(5, 2000, 4, np.ones(10), shared=0.7, whole=False),
    "heavy-tailed": Spectrum(6, 8000, 3, _places(60) ** -0.5, degrees=2.5),
}
NAMES = (*SMALL, *SPECTRA, TEXT)


def load(name: str, seed: int = 0) -> Dataset:
    """`seed` splits the small ones into 80 % and 20 %; the others are always the same."""
    if name in SPECTRA:
        return from_spectrum(name, SPECTRA[name])
    return topics() if name == TEXT else _SMALL[name](seed)


def wine(seed: int) -> Dataset:
    """13 chemical measurements of 178 wines, 3 growers, by the published ranges."""
    from sklearn.datasets import load_wine

    data = load_wine()
    return split("wine", from_ranges(data.data, *_ranges(data.DESCR, 13)), data.target, seed)


def iris(seed: int) -> Dataset:
    """4 lengths of 150 flowers, 3 species, by the published ranges."""
    from sklearn.datasets import load_iris

    data = load_iris()
    return split("iris", from_ranges(data.data, *_ranges(data.DESCR, 4)), data.target, seed)


def diabetes(seed: int) -> Dataset:
    """Regression: 10 measurements of 442 patients, and how far their disease went in a year, from −1 to 1."""
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    data = load_diabetes(scaled=False)
    features = from_ranges(data.data, DIABETES_LOW, DIABETES_HIGH)
    train, test, train_targets, test_targets = train_test_split(
        features, 2 * data.target / DIABETES_TARGETS - 1, test_size=0.2, random_state=seed
    )
    return Dataset("diabetes", train, train_targets, test, test_targets, classes=0, target_bound=1.0)


_SMALL: dict[str, Callable[[int], Dataset]] = {"wine": wine, "iris": iris, "diabetes": diabetes}


def from_spectrum(name: str, spectrum: Spectrum) -> Dataset:
    random = np.random.default_rng(spectrum.seed)
    rows, scores = _drawn(spectrum, random)
    gumbel = random.gumbel(size=scores.shape)  # the largest sum has the probabilities of the softmax
    labels = (scores + gumbel).argmax(axis=1)
    usual = np.linalg.norm(spectrum.deviations) * np.hypot(1, spectrum.mean)
    short = unit_rows(rows) if spectrum.whole else _cut(rows / (2 * usual))
    return _parts(name, short, labels, spectrum.records, spectrum.classes)


def _drawn(spectrum: Spectrum, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the score of each class for each of them."""
    size, deviations = (spectrum.records + TEST_ROWS, len(spectrum.deviations)), spectrum.deviations
    common = np.sqrt(spectrum.shared) * random.standard_normal((size[0], 1))
    normal = common + np.sqrt(1 - spectrum.shared) * random.standard_normal(size)
    teacher = random.standard_normal((size[1], spectrum.classes)) * deviations[:, None] ** 0.5
    scores = (normal * deviations) @ teacher
    scores *= spectrum.sharpness / scores.std()
    lengths = 1.0 if spectrum.degrees is None else 1 / np.sqrt(random.chisquare(spectrum.degrees, (size[0], 1)))
    direction = random.standard_normal(size[1]) * deviations
    mean = spectrum.mean * np.linalg.norm(deviations) * direction / np.linalg.norm(direction)
    return mean + lengths * normal * deviations, scores


def topics() -> Dataset:
    """Counts of 800 words in 5,000 short texts and as many to test on, 4 subjects that mix 20 topics, unit rows."""
    random = np.random.default_rng(7)
    texts, words, subjects = 10_000, 800, 4
    common = 1 / _places(words)
    themes = random.dirichlet(30 * common / common.sum() + 0.01, size=20)
    tastes = random.dirichlet(np.full(20, 0.3), size=subjects)
    labels = random.integers(subjects, size=texts)
    mixtures = np.array([random.dirichlet(4 * tastes[label] + 0.02) for label in labels])
    lengths = 20 + random.poisson(40, size=texts)
    counts = np.array([random.multinomial(length, one @ themes) for length, one in zip(lengths, mixtures, strict=True)])
    return _parts(TEXT, unit_rows(counts.astype(float)), labels, 5000, subjects)


def _parts(name: str, rows: np.ndarray, labels: np.ndarray, records: int, classes: int) -> Dataset:
    return Dataset(name, rows[:records], labels[:records], rows[records:], labels[records:], classes)


def _cut(rows: np.ndarray) -> np.ndarray:
    """Rows longer than 1 divided by their norm."""
    return np.where(np.linalg.norm(rows, axis=1, keepdims=True) > 1, unit_rows(rows), rows)


def _ranges(description: str, features: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns Min and Max of the description's table, its rows in the order of the features."""
    rows = re.findall(r"^ *[A-Za-z][^\n:]*: +(\d+\.?\d*) +(\d+\.?\d*) +\d", description, re.MULTILINE)
    if len(rows) != features:
        raise ValueError(f"the description must have {features} ranges. It has {len(rows)}.")
    low, high = np.array(rows, dtype=float).T
    return low, high
