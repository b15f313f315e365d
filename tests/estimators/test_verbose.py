"""A fit draws a progress bar where it is asked to, and nowhere else."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from lastiterate.estimators import PrivateLogisticRegression

FEATURES = np.random.default_rng(0).normal(size=(200, 3)) / 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("verbose", [True, False])
def test_a_bar_of_steps(verbose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastiterate.progress._PATIENCE", 0.0)
    monkeypatch.setattr("lastiterate.progress._REDRAWN", 0.0)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    model = PrivateLogisticRegression(2.0, 1e-5, feature_norm=2.0, classes=[False, True], verbose=verbose)
    model.fit(FEATURES, FEATURES[:, 0] > 0)
    assert ("steps [" in screen.getvalue()) is verbose
