"""No record's own ε is above the one that holds for everybody."""

from __future__ import annotations

import pytest

import lastiterate as li

CLIPPED = li.losses.network(clip=1.0, smoothness=1.0)


@pytest.mark.parametrize("radius", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("releases", [(), (10, 205)])
def test_never_above_what_everybody_is_promised(radius: float, releases: tuple[int, ...]) -> None:
    """A small ball and many steps: block mixing proves less than half of what the engine does for any record."""
    run = li.Run(CLIPPED, li.Cyclic(40, 10), 0.1, li.OnIterate(0.1), 400, domain=li.Ball(radius=radius))
    for_everybody = li.account(run, 1e-5, releases).epsilon
    each = li.account_each(run, 1e-5, iter(releases))
    assert each.worst <= for_everybody
    assert (each.epsilons <= for_everybody).all()
    assert (each.epsilons > 0).all()
