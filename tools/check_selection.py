"""Does the certificate of a selection prove what it claims? With mpmath alone: python tools/check_selection.py FILE

Every setting is checked by check_certificate.py, beside this file, and has to prove a μ. Then the selection: of K trials,
each μ-GDP, only the best is released; f(x) = E x^K. It proves δ = Σ w·h(ε + log κ), h the profile of one trial; κ and w
are slopes and widths of the largest convex function below (0, 0) and all points (f'(1 − a), f'(T(a))), T the trade-off
function of one trial (docs/proofs.md, "The best of a random number of trials"). Between two points of a grid of a, f'(T(a))
lies above the line through the two before, and f'(1 − a) below its chord.
Nothing of lastiterate is used. `lastiterate verify` also checks that each setting is about its run, and knows trials without
μ, and claims by Rényi divergences, which are smaller for some Poisson numbers with a large mean.
"""

import sys
from itertools import pairwise
from statistics import NormalDist

from check_certificate import certificate_in, gap, judged
from mpmath import erfc, exp, expm1, inf, log, mp, mpf, sqrt

FORMAT = "lastiterate selection certificate 1"
SHAPES = {"geometric": 1, "logarithmic": 0}
POINTS = 4096


def falling(trials):
    """(E K, log f'(1) − log f'(1 − a) as a function of a, and its inverse)."""
    mean = mpf(trials["mean"])
    if trials["law"] == "poisson":
        if not 0 < mean < inf:
            raise ValueError("the mean must be above 0")
        return mean, lambda a: mean * a, lambda fall: fall / mean
    shape = mpf(trials["shape"] if trials["law"] == "negative-binomial" else SHAPES[trials["law"]])
    if not (1 < mean < inf and -1 < shape < inf):
        raise ValueError("the mean must be above 1, and the shape above -1")
    odds = expm1(logarithm(mean, shape))  # (1 − γ)/γ
    return mean, lambda a: (1 + shape) * log(1 + odds * a), lambda fall: expm1(fall / (1 + shape)) / odds


def logarithm(mean, shape):
    """log 1/γ for the negative binomial law with this mean, by bisection; a larger one has a larger mean."""
    low, high = mpf(0), mpf(1)

    def reached(x):
        return expm1(x) / x if shape == 0 else shape * expm1(x) / -expm1(-shape * x)

    while reached(high) < mean:
        low, high = high, 2 * high
    for _ in range(4 * mp.dps):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < mean else (low, middle)
    return high


def below(z):
    """Φ(z)."""
    return erfc(-z / sqrt(mpf(2))) / 2


def grid(fall, inverse):
    """Quantiles z of a = Φ(z), from near 1 to near 0: any will do, and these are evenly spread in log f'."""
    whole = fall(mpf(1))
    wanted = {float(inverse(whole * part / POINTS)) for part in range(1, POINTS)}
    return [mpf(NormalDist().inv_cdf(a)) for a in sorted(wanted, reverse=True) if 0 < a < 1]


def points(trials, mu):
    """(f'(1 − a), a lower bound of f'(T(a))) from a = 1 down to 0; T(Φ(z)) = Φ(−z − μ)."""
    mean, fall, inverse = falling(trials)
    quantiles = grid(fall, inverse)
    tails = [mpf(1), *map(below, quantiles), mpf(0)]
    better = [mpf(1), *(below(z + mu) for z in quantiles), mpf(0)]
    heights, others = ([mean * exp(-fall(a)) for a in one] for one in (tails, better))
    lower = [others[0], others[0]]
    for i in range(1, len(tails) - 1):
        steep = (others[i] - others[i - 1]) / (tails[i - 1] - tails[i])
        lower.append(max(others[i], others[i] + steep * (tails[i] - tails[i + 1])))
    return list(zip(heights, lower, strict=True))


def hull(given):
    """The greatest convex function below these points, by its corners."""
    corners = []
    for point in given:
        while len(corners) > 1 and bends(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    return corners


def bends(a, b, c):
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])


def delta_of(trials, mu, epsilon):
    """An upper bound on δ of the best trial."""
    corners = hull([(mpf(0), mpf(0)), *points(trials, mu)])
    pieces = [(right[0] - left[0], (right[1] - left[1]) / (right[0] - left[0])) for left, right in pairwise(corners)]
    return sum(width * gap(epsilon + log(slope), mu) for width, slope in pieces)


def check(content):
    """The reason why it is rejected, or nothing."""
    if content["format"] != FORMAT or content["caveats"] or not content["settings"]:
        return "it is no certificate of a selection, or has a caveat"
    claim, mus = content["claim"], [mpf(content["stated_mu"] or 0)]
    for number, setting in enumerate(content["settings"], start=1):
        if setting["claim"]["unit"] != claim["unit"] or claim["unit"]["records"]:
            return f"setting {number} is about other neighbours"
        if setting["caveats"]:
            return f"setting {number} has a caveat"
        if setting["claim"]["mu"] is None:
            return f"setting {number} proves no mu"
        if reason := judged(setting):
            return f"setting {number}: {reason}"
        mus.append(mpf(setting["claim"]["mu"]))
    epsilon, delta, mu = mpf(claim["epsilon"]), mpf(claim["delta"]), max(mus)
    if not (0 <= epsilon < inf and 0 < delta < 1 and min(mus) >= 0 and 0 < mu < inf):
        return "epsilon, delta or mu is out of range"
    proved = delta_of(content["trials"], mu, epsilon)
    return "" if proved <= delta else f"at this epsilon it proves delta = {float(proved)}"


def verdict_of(content):
    try:
        return check(content)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return f"it cannot be followed: {error!r}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = certificate_in(file.read())
    said = verdict_of(found)
    print(f"rejected: {said}" if said else f"accepted: {found['claim']}")
    sys.exit(1 if said else 0)
