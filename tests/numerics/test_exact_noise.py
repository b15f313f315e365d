"""What leaves is the nearest grid point to the ideal mechanism's result: certified quantiles, exact laws, no low bits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2, kstest

import lastiterate as li
from lastiterate.numerics import exact_noise
from lastiterate.numerics.exact_noise import (
    add_whole_noises,
    cosine_and_sine,
    laplace,
    nearest_multiples,
    normal,
    public_grid,
    states_drawn,
)
from lastiterate.numerics.randomness import Source
from lastiterate.training.objectives import leaves, leaves_with_normal_noise
from raising import raises

NEVER = 1e-9  # a test at this level does not fail by chance


@pytest.mark.parametrize("part", ["0", "1e-30", "0.3", "0.5", "0.999", "1"])
def test_sines_in_many_digits_agree_with_mpmath(part: str) -> None:
    with localcontext() as context, mpmath.workdps(130):
        context.prec = 120
        angle = Decimal(part) * exact_noise._PI / 2
        exact = mpmath.mpf(part) * mpmath.pi / 2
        for found, known in zip(cosine_and_sine(angle), (mpmath.cos(exact), mpmath.sin(exact)), strict=True):
            assert abs(mpmath.mpf(str(found)) - known) < mpmath.mpf(10) ** -115


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_normal_noise_is_a_length_and_an_angle(signs: tuple[int, int]) -> None:
    """From given bits, in digits that mpmath computes on its own way."""
    tail, angle = 123456789 << 35, 987654321 << 32
    drawn = normal(
        2, _Scripted(*(_word(one, sign) for one, sign in zip((tail, angle), signs, strict=True)), 0, 0, 0, 0)
    )  # type: ignore[arg-type]
    with mpmath.workdps(40):
        length = signs[0] * mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(tail) + mpmath.mpf(2) ** -129) / 2**63))
        turn = (mpmath.mpf(angle) + mpmath.mpf(2) ** -129) / 2**63 * mpmath.pi / 2
        known = [length * mpmath.cos(turn), signs[1] * length * mpmath.sin(turn)]
        with localcontext() as context:
            context.prec = 120
            for place in (0, 1):
                assert abs(mpmath.mpf(str(drawn.exactly(place))) - known[place]) < 1e-30
    assert drawn.values == pytest.approx([float(one) for one in known], rel=1e-14)


@pytest.mark.parametrize("law", [normal, laplace])
def test_noise_in_double_precision_is_within_half_of_its_stated_error(law: exact_noise.NoiseLaw) -> None:
    """For bits as they come, and for those near every border: tails near 0 and 1, angles near 0 and the right angle."""
    random = np.random.default_rng(4)
    near = [
        1,
        2,
        3,
        1 << 50,
        (1 << 51) - 1,
        1 << 51,
        (1 << 51) + 1,
        (1 << 55) - 1,
        1 << 55,
        (1 << 55) + 1,
        (1 << 63) - 1,
        (1 << 63) - (1 << 20),
    ]
    shifted = [(first + shift) % (1 << 63) for first in near for shift in (0, 7, 1 << 30, 1 << 45)]
    borders = [_word(one, sign) for one in shifted for sign in (1, -1)]
    words = [*borders, *(int(x) for x in random.integers(1 << 64, size=1000, dtype=np.uint64))]
    for one in words:
        others = [int(x) for x in random.integers(1 << 60, 1 << 64, size=8, dtype=np.uint64)]
        for first in ([one, *others], [others[0], one, *others[1:]]):
            drawn = law(2, _Scripted(*first))  # type: ignore[arg-type]
            with localcontext() as context:
                context.prec = 60
                for place in (0, 1):
                    error = abs(float(drawn.exactly(place) - Decimal(float(drawn.values[place]))))
                    assert error <= float(drawn.doubts(np.array([place]))[0]) / 2


def test_the_slow_way_and_the_quick_way_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, once with every decision in doubt."""
    value = np.random.default_rng(1).normal(size=300) * 1e4
    noises = ((normal, 1.0), (laplace, 0.3))
    quick = nearest_multiples(value, public_grid(1.0), noises, Source(7), 0.37)
    monkeypatch.setattr(exact_noise, "_OF_TAIL", 1e9)
    slow = nearest_multiples(value, public_grid(1.0), noises, Source(7), 0.37)
    assert (quick == slow).all()


@pytest.mark.parametrize("value", [0.0, 0.3, -7.1, 1e6 + 1 / 3])
def test_released_numbers_have_the_law_of_the_ideal_mechanism(value: float) -> None:
    """Binned: 200,000 numbers show a standard deviation that is off by 2 % with probability above 0.999 at this level."""
    count, std = 200_000, 0.8
    found = leaves_with_normal_noise(np.full(count, value), std, Source())
    edges = np.array([-np.inf, *np.linspace(-4, 4, 41), np.inf])
    observed = np.histogram((found - value) / std, edges)[0]
    expected = np.diff(ndtr(edges)) * count
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1) > NEVER
    grid = public_grid(std)
    assert (np.rint(found / grid) * grid == found).all()


def test_two_laplace_noises_have_their_law() -> None:
    found = leaves(np.zeros(100_000), ((laplace, 1.0), (laplace, 0.25)), Source())
    wide, narrow = 1.0, 0.25

    def distribution(x: np.ndarray) -> np.ndarray:
        far = np.abs(x)
        tail = (wide**2 * np.exp(-far / wide) - narrow**2 * np.exp(-far / narrow)) / (2 * (wide**2 - narrow**2))
        return np.where(x >= 0, 1 - tail, tail)

    spread = found + public_grid(1.0) * (np.random.default_rng(0).random(len(found)) - 0.5)
    assert kstest(spread, distribution).pvalue > NEVER


RELEASES = {
    "Laplace after Laplace": lambda value: li.mechanisms.LaplaceAfterLaplace(1.0, 1.0, 1.0).release(value).value,
    "Gaussian after Gaussian": lambda value: li.mechanisms.GaussianAfterGaussian(1.0, 1.0, 1.0).release(value).value,
    "Lipschitz then Gaussian": lambda value: (
        li.mechanisms.LipschitzThenGaussian(1.0, 1.0, 1.0, map=lambda x: x / 3).release(value).value
    ),
    "Brownian": lambda value: li.mechanisms.Brownian(1.0).release(value, 0.5).value,
    "Ornstein–Uhlenbeck": lambda value: li.mechanisms.OrnsteinUhlenbeck(1.0, 1.0, 1.0).release(value, 0.5).value,
    "Gaussian kernel": lambda value: li.mechanisms.GaussianKernel(1.0, 1.0).sample(value).value,
    "Langevin": lambda value: (
        li.mechanisms.langevin(lambda x: x - value, 0.0, lipschitz=1.0, step_size=0.1, steps=2, smoothness=1.0).value
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_no_output_betrays_the_value(name: str) -> None:
    """Every released number is a multiple of one public grid: what can occur at one value can occur at the other."""
    grids = []
    for value in (0.0, 1.0):
        found = np.array([float(RELEASES[name](value)) for _ in range(150)])
        exponents = [math.frexp(x)[1] - 53 + _trailing_zeros(x) for x in found if x]
        grids.append(2.0 ** min(exponents))
    assert grids[0] == pytest.approx(grids[1], rel=0)
    assert grids[0] > 1e-5  # 2¹² to 2¹³ times finer than the noise, and no finer


def whole_noises(count: int, law: exact_noise.NoiseLaw, scale: float, source: Source) -> np.ndarray:
    found = np.full(count, 5.0)
    add_whole_noises(found, law, scale, source)
    return found - 5.0


def _trailing_zeros(x: float) -> int:
    mantissa = int(math.frexp(abs(x))[0] * 2**53)
    return (mantissa & -mantissa).bit_length() - 1


def test_noise_that_the_value_swallows_is_refused() -> None:
    with raises("noise_lost_beside_value", kind=li.errors.InvalidInput):
        li.mechanisms.Brownian(1.0).release(1e15, 1e-10)
    with raises("must_be", "noise", kind=li.errors.InvalidInput, allowed="at least 1e-290"):
        li.mechanisms.GaussianAfterGaussian(1.0, 1e-300, 1e-300).release(0.0)


def test_states_are_drawn_with_their_probabilities() -> None:
    """Entries below the spacing of uniform doubles keep theirs: none may become 0."""
    matrix = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    counts = np.bincount(states_drawn(matrix, np.ones(100_000, int), Source()), minlength=3)
    expected = matrix[1] * 100_000
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 2) > NEVER


@pytest.mark.parametrize("scale", [1.0, 1.5, 1.999, 0.3, 1e-20, 1e20])
def test_the_public_grid_is_so_many_times_finer_than_the_noise(scale: float) -> None:
    for grid, finer in ((public_grid(scale), 12), (public_grid(scale, 20), 20)):
        assert math.frexp(grid)[0] == 0.5  # a power of two
        assert 2**finer <= scale / grid < 2 ** (finer + 1)


def _word(number: int, sign: int) -> int:
    """64 bits for this sign and the first 63 bits of a number."""
    return number if sign > 0 else (1 << 64) - 1 - number


class _Scripted:
    """A source that says what is written."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def bits(self, shape: object) -> np.ndarray:
        count = int(np.prod(shape))  # type: ignore[call-overload]
        given, self.words = self.words[:count], self.words[count:]
        return np.array(given, np.uint64).reshape(shape)  # type: ignore[call-overload]


def test_an_unlikely_state_takes_more_bits() -> None:
    tiny = 2.0**-80
    matrix = np.array([[tiny, 1.0]])
    one = np.zeros(1, int)
    assert states_drawn(matrix, one, _Scripted(0, 0, 0))[0] == 0  # type: ignore[arg-type]
    assert states_drawn(matrix, one, _Scripted(0, 1 << 60, 0))[0] == 1  # type: ignore[arg-type]
    assert states_drawn(matrix, one, _Scripted((1 << 64) - 1, 5))[0] == 1  # type: ignore[arg-type]


def test_a_tail_beyond_127_bits_is_drawn() -> None:
    """All leading bits 0: the length lies beyond thirteen standard deviations, where 120 digits decide; the angle is 0."""
    words = (0, 0, 0, 1 << 63, 0, 0)
    found = nearest_multiples(np.zeros(1), public_grid(1.0), ((normal, 1.0),), _Scripted(*words))  # type: ignore[arg-type]
    assert 13.0 < found[0] < 14.0


def test_both_numbers_of_a_pair_come_from_the_same_bits() -> None:
    """Whichever is asked first, and however often."""
    drawn = normal(2, Source(3))
    first, second, again = drawn.exactly(0), drawn.exactly(1), drawn.exactly(0)
    assert first == again
    assert float(first**2 + second**2) == pytest.approx(float(drawn.values @ drawn.values), rel=1e-14)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_any_number_of_noises_can_be_drawn(count: int) -> None:
    drawn = normal(count, Source(1))
    assert (
        len(drawn.values)
        == len(drawn.doubts(np.arange(count)))
        == len(whole_noises(count, normal, 9.0, Source(1)))
        == count
    )


@pytest.mark.parametrize("law", [normal, laplace])
@pytest.mark.parametrize("seed", range(5))
def test_no_doubt_is_wider_than_the_widest(law: exact_noise.NoiseLaw, seed: int) -> None:
    drawn = law(1001, Source(seed))
    assert drawn.doubts(np.arange(1001)).max() <= drawn.widest


@pytest.mark.parametrize("law", [normal, laplace])
def test_doubts_have_no_limit_where_nearly_all_bits_of_a_tail_are_nothing(law: exact_noise.NoiseLaw) -> None:
    drawn = law(2, _Scripted(_word(0, -1), 1 << 60, 0, 0, 0, 0))  # type: ignore[arg-type]
    assert drawn.doubts(np.array([0])).tolist() == [drawn.widest] == [math.inf]


@pytest.mark.parametrize("scale", [0.7, 2.0**12, 3 * 2.0**33])
def test_whole_noises_are_the_nearest_multiples_around_nothing(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with every decision in doubt, in 120 digits."""
    found = whole_noises(301, normal, scale, Source(3))
    assert (found == nearest_multiples(np.zeros(301), 1.0, ((normal, scale),), Source(3))).all()
    monkeypatch.setattr(exact_noise, "_OF_TAIL", 1e9)
    assert (found == whole_noises(301, normal, scale, Source(3))).all()


def test_long_vectors_of_whole_noises_have_their_law() -> None:
    """The sum of 100,000 squares: a standard deviation that is off by 2 % is off by nine of its own."""
    found = whole_noises(100_000, normal, 2.0**20, Source())
    assert NEVER < chi2.sf(float(np.square(found / 2.0**20).sum()), len(found)) < 1 - NEVER


def test_a_tail_is_in_doubt_where_nearly_all_of_its_bits_are_nothing() -> None:
    few = int(exact_noise._FEW)
    nothing = _word(0, -1)
    bits = np.array([0, nothing, 1, nothing, nothing, few], np.uint64)
    more = np.array([0, few, 0, few - 1, few + 1], np.uint64)
    drawn = exact_noise._Uniform(bits, np.arange(5), more, Source())
    assert drawn.far.tolist() == [0, 3]
    usual = exact_noise._Uniform(bits[5:], np.zeros(0, np.intp), more[:0], Source())
    assert usual.far.tolist() == []


@pytest.mark.parametrize("factor", [0.37, 1.7])
def test_a_product_that_is_rounded_leaves_a_doubt(factor: float) -> None:
    """Its last bit is a sixteenth of the grid: one result in a hundred would be wrong, and few are in doubt."""
    asked: list[int] = []

    def fixed(count: int, _: Source) -> exact_noise.Drawn:
        def exactly(place: int) -> Decimal:
            asked.append(place)
            return Decimal("0.3")

        return exact_noise.Drawn(np.full(count, 0.3), lambda places: np.zeros(len(places)), 0.0, exactly)

    value = np.random.default_rng(5).uniform(2.0**48, 2.0**49, 2000) / factor
    found = nearest_multiples(value, 1.0, [(fixed, 1.0)], Source(1), factor)
    exact = [math.floor(Fraction(one) * Fraction(factor) + Fraction(4, 5)) for one in value.tolist()]
    assert found.tolist() == exact
    assert 0 < len(asked) < 800


def test_noise_that_is_off_by_its_stated_error_is_decided_in_many_digits() -> None:
    """In double precision nine tenths of the error too much, which is a fifth of the grid; the results are exact."""

    def off(count: int, _: Source) -> exact_noise.Drawn:
        return exact_noise.Drawn(
            np.full(count, 0.509), lambda places: np.full(len(places), 0.01), 0.01, lambda place: Decimal("0.5")
        )

    value = np.random.default_rng(6).uniform(-5, 5, 1000)
    found = nearest_multiples(value, 0.125, [(off, 3.0)], Source(1))
    exact = [math.floor((Fraction(one) + Fraction(3, 2)) * 8 + Fraction(1, 2)) / 8 for one in value.tolist()]
    assert found.tolist() == exact
