"""What the peers' accountants print, in an environment of their own: `python -m … FILE` reads a list of questions as JSON.

A question is an accountant, a rate, a number of steps, a noise multiplier and δ. Accountants are for Poisson batches, or for
the Gaussian mechanism where the rate is 1, with one record added or removed.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")


def answer(accountant: str, rate: float, steps: int, multiplier: float, delta: float) -> float:
    if accountant == "Opacus":
        return _opacus(rate, steps, multiplier, delta)
    import dp_accounting as dp

    gaussian = dp.GaussianDpEvent(multiplier)
    step = gaussian if rate == 1 else dp.PoissonSampledDpEvent(rate, gaussian)
    by = dp.rdp.RdpAccountant() if accountant.endswith("RDP") else dp.pld.PLDAccountant()
    return float(by.compose(dp.SelfComposedDpEvent(step, steps)).get_epsilon(delta))


def _opacus(rate: float, steps: int, multiplier: float, delta: float) -> float:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(multiplier, rate, steps)]
    return float(accountant.get_epsilon(delta))


def _answered(question: dict[str, Any]) -> float | str:
    try:
        return answer(**question)
    except Exception as error:  # a peer may refuse in any way it likes
        return f"refuses: {str(error)[:80]}"


if __name__ == "__main__":
    questions = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([_answered(question) for question in questions]))
