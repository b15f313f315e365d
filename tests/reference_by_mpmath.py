"""δ of composed subsampled Gaussians to 12 digits, by mpmath alone: `python tests/reference_by_mpmath.py` prints them.

Independent of the library: trapezoid rule in x (Gauss–Legendre for the half line of C_p), Bromwich integral in s, both
in 30-digit arithmetic, with period and number of terms far beyond what double precision needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mpmath as mp

ADD, REMOVE, REPLACE, FIXED = "add", "remove", "replace", "fixed size"


@dataclass(frozen=True)
class Instance:
    """k steps of a subsampled Gaussian, and where to put the contour."""

    kind: str
    mu: str
    inclusion: str
    steps: int
    epsilon: str
    abscissa: str
    period: int
    terms: int


INSTANCES = (
    Instance(ADD, "1", "0.01", 100, "0.71803566", "4", 16, 500),
    Instance(ADD, "1", "0.01", 10**4, "6.18771239", "3", 30, 60),
    Instance(ADD, "1", "0.01", 10**6, "139.0302728", "0.339", 220, 50),
    Instance(ADD, "1", "0.01", 10**4, "11.3", "4.9", 24, 60),
    Instance(ADD, "1", "0.01", 10**4, "17.6", "6", 40, 120),
    Instance(REMOVE, "1", "0.01", 10**4, "5.6", "3.7", 30, 60),
    Instance(REPLACE, "2", "0.01", 10**4, "10.9", "2", 40, 60),
    Instance(FIXED, "1", "0.01", 10**4, "8.0", "2.5", 36, 60),
    Instance(FIXED, "0.66666666666666666666666666667", "0.025", 2000, "4.4", "3.8", 26, 90),
    Instance(ADD, "0.5", "0.5", 10**6, "33431.1", "0.0135", 5200, 60),
)


def delta(instance: Instance) -> mp.mpf:
    """δ(ε), in the given order of the pair."""
    nodes = _nodes(instance)
    step = 2 * mp.pi / instance.period
    epsilon, abscissa = mp.mpf(instance.epsilon), mp.mpf(instance.abscissa)
    total = mp.mpf(0)
    for j in range(instance.terms):
        s = mp.mpc(abscissa, j * step)
        mgf = mp.fsum(weight * mp.exp(s * loss) for weight, loss in nodes)
        term = mp.exp(instance.steps * mp.log(mgf) - s * epsilon) / (s * (s + 1))
        total += term.real * (1 if j == 0 else 2)
    return step / (2 * mp.pi) * total


def epsilon(instance: Instance, target: str) -> mp.mpf:
    """The ε with δ(ε) = target, from the instance's ε on, by the secant method."""
    first = mp.mpf(instance.epsilon)
    goal = mp.log(mp.mpf(target))

    def excess(x: mp.mpf) -> mp.mpf:
        return mp.log(delta(replace(instance, epsilon=mp.nstr(x, 25)))) - goal

    return mp.findroot(excess, (first, first * (1 + mp.mpf("1e-7"))), tol=1e-20, maxsteps=4, verify=False)


def _nodes(instance: Instance) -> list[tuple[mp.mpf, mp.mpf]]:
    """(mass, privacy loss) pairs that integrate the moment generating function of one step."""
    mu, q = mp.mpf(instance.mu), mp.mpf(instance.inclusion)

    def ratio(x: mp.mpf, mode: mp.mpf) -> mp.mpf:
        return 1 - q + q * mp.exp(mode * x - mode * mode / 2)

    width = mp.mpf("0.1")
    line = [(width * mp.npdf(width * j), width * j) for j in range(-150, 181)]
    if instance.kind == ADD:
        return [(w * ratio(x, mu), mp.log(ratio(x, mu))) for w, x in line]
    if instance.kind == REMOVE:
        return [(w, -mp.log(ratio(x, mu))) for w, x in line]
    if instance.kind == REPLACE:
        half = mu / 2
        return [(w * ratio(x, half), mp.log(ratio(x, half) / ratio(x, -half))) for w, x in line]
    beyond = [(w * mp.npdf(x), x) for w, x in _half_line(mu / 2)]
    above = [(w * ratio(x, mu), mp.log(ratio(x, mu))) for w, x in beyond]
    below = [(w, -mp.log(ratio(x, mu))) for w, x in beyond]
    atom = 1 - mp.fsum(w for w, _ in above + below)
    return [*above, *below, (atom, mp.mpf(0))]


def _half_line(start: mp.mpf) -> list[tuple[mp.mpf, mp.mpf]]:
    """Gauss–Legendre weights and nodes on panels of length 1."""
    rule = mp.calculus.quadrature.GaussLegendre(mp.mp).calc_nodes(4, mp.mp.prec)
    return [(w / 2, start + panel + (1 + x) / 2) for panel in range(18) for x, w in rule]


if __name__ == "__main__":
    mp.mp.dps = 30
    for each in INSTANCES:
        print(each.kind, each.mu, each.inclusion, each.steps, each.epsilon, mp.nstr(delta(each), 14), flush=True)
    for each in INSTANCES[:3]:
        print("epsilon at 1e-5:", each.kind, each.steps, mp.nstr(epsilon(each, "1e-5"), 14), flush=True)
