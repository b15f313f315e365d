"""Kong and Ribero 2025, Table 1: common assumptions, and the library's message for a run without each of them."""

from __future__ import annotations

from collections.abc import Callable

from lastiterate.curves.baselines import sampled_gaussian_rdp_closed_form
from lastiterate.errors import LastIterateError
from lastiterate.reproduction.exhibit import Agreement, Exhibit, Made, Outcome, Setting, judged
from lastiterate.reproduction.pictures import Sheet
from lastiterate.reproduction.tables import Row, tabled
from lastiterate.runs.batches import Cyclic, Poisson
from lastiterate.runs.domains import L1, ConvexSet, Unbounded
from lastiterate.runs.losses import general, network
from lastiterate.runs.noise import OnIterate
from lastiterate.runs.run import Run
from lastiterate.theorems.composition import RANDOM_COMPOSITION
from lastiterate.theorems.papers.bok2024 import RANDOM_BOUNDED
from lastiterate.theorems.papers.feldman2018 import ONE_PASS_CONVEX
from lastiterate.theorems.papers.kong2025 import BOUNDED_DOMAIN, UNBOUNDED_DOMAIN
from lastiterate.theorems.theorem import Inapplicable, Theorem

_SMOOTH = {"smoothness": 1.0, "strong_convexity": 0.0}
_CONVEX = general(gradient_sensitivity=2.0, **_SMOOTH)
_CYCLIC = Cyclic(records=100, batch_size=10)


def _run(**changes: object) -> Run:
    usual = {"loss": _CONVEX, "batches": _CYCLIC, "step_size": 0.1, "noise": OnIterate(1.0), "steps": 10}
    return Run(**{**usual, "domain": Unbounded(), **changes})  # type: ignore[arg-type]


def _asked(theorem: Theorem, **changes: object) -> Callable[[], object]:
    return lambda: theorem.apply(_run(**changes).process)


# label, the assumption, how a run states it, and a call of the library in which it fails
_ASSUMPTIONS: tuple[tuple[str, str, str, Callable[[], object] | None], ...] = (
    (
        "I_c",
        "h is the indicator of a convex set",
        "domain=; any prox= is covered",
        _asked(UNBOUNDED_DOMAIN, prox=L1(0.1)),
    ),
    ("H", "the domain of h is bounded", "domain=li.parts.ConvexSet(diameter)", _asked(BOUNDED_DOMAIN)),
    ("B_1", "batches of one record, one pass", "batches=, steps=", _asked(ONE_PASS_CONVEX, steps=20)),
    ("D", "batches are disjoint", "batches=li.Cyclic(...)", _asked(UNBOUNDED_DOMAIN, batches=Poisson(100, 0.1))),
    ("P", "Poisson batches", "batches=li.Poisson(...)", _asked(RANDOM_COMPOSITION)),
    ("S⁰_Q", "losses are Q-Lipschitz, Q known", "gradient_sensitivity= or clip=", lambda: general(**_SMOOTH)),
    ("S¹_L", "gradients are L-Lipschitz, L known", "smoothness=", _asked(UNBOUNDED_DOMAIN, loss=network(clip=1.0))),
    ("R¹_{H,η}", "gradients are Hölder continuous", "no theorem in the catalogue uses it", None),
    ("Λ", "the step size is small", "step_size=", _asked(ONE_PASS_CONVEX, step_size=3.0)),
    (
        "A",
        "only some orders and noises",
        "li.baselines.sampled_gaussian_rdp has no such range",
        lambda: sampled_gaussian_rdp_closed_form(mu=1.0, inclusion=0.01, order=2.0),
    ),
    (
        "N",
        "no clipping, or the sensitivity is known",
        "clip=None",
        _asked(ONE_PASS_CONVEX, loss=general(gradient_sensitivity=2.0, clip=1.0, **_SMOOTH)),
    ),
    (
        "Ñ",
        "the same if the loss is convex",
        "clip=None",
        _asked(
            RANDOM_BOUNDED,
            loss=general(gradient_sensitivity=2.0, clip=1.0, **_SMOOTH),
            batches=Poisson(100, 0.1),
            domain=ConvexSet(1.0),
        ),
    ),
)
_NOT_NEEDED = {"I_c", "R¹_{H,η}"}  # the first holds for every prox, the second is used by none


def _answer(ask: Callable[[], object] | None) -> str:
    """The library's reasons for refusing, or "not needed"."""
    if ask is None:
        return "not needed"
    try:
        answer = ask()
    except LastIterateError as error:
        return str(error)
    return "; ".join(answer.sentences) if isinstance(answer, Inapplicable) else "not needed"


def _table_1(setting: Setting) -> Made:
    rows: list[Row] = [
        {"label": label, "assumption": asks, "in a run": how, "without it": _answer(ask)}
        for label, asks, how, ask in _ASSUMPTIONS
    ]
    cells = tuple(tuple(map(str, row.values())) for row in rows)
    sheet = Sheet("assumptions, and the library's message for a run without them", tuple(rows[0]), cells)
    silent = {str(row["label"]) for row in rows if row["without it"] == "not needed"}
    if silent != _NOT_NEEDED:
        return tabled(
            rows, (sheet,), Agreement(Outcome.NOT, (), f"the library does not notice {sorted(silent - _NOT_NEEDED)}")
        )
    note = "a list; the library checks ten of the twelve assumptions and names the one that fails; two are not needed"
    return tabled(rows, (sheet,), judged((), note=note))


TABLE_1_EXHIBIT = Exhibit(
    "kong2025",
    "table-1",
    "Common assumptions of RDP accounting, and the library's message for a run without each of them",
    (),
    _table_1,
)
