"""Epochs composed, in each of which earlier noise and other places hide a record: for networks of a known smoothness.

As epoch by epoch: every epoch begins in a common state. Within it the record's push may be prepaid, and its place is hidden.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lastiterate.curves.chosen_slack import ChosenSlack
from lastiterate.curves.compose import compose_counted
from lastiterate.curves.hidden_place import HiddenPlaceDP
from lastiterate.curves.notion import Notion
from lastiterate.facts import Fact
from lastiterate.numerics.rounding import down
from lastiterate.runs.process import Process
from lastiterate.theorems.assumptions import FINITE_LIPSCHITZ
from lastiterate.theorems.epoch_by_epoch import GROWING, SOME_PROTECTION
from lastiterate.theorems.evidence import Evidence
from lastiterate.theorems.features import ANY_NEIGHBOURS, CHECKPOINTS, NEW_ORDERS, UNEVEN_BATCHES, Assumption
from lastiterate.theorems.hidden_epochs import tabled
from lastiterate.theorems.hidden_place import MOST_REPRESENTED, prepaid_hidden_evidence
from lastiterate.theorems.prepayment import ALIKE_IF_NEW, SEVERAL, SMOOTH, prepaid_evidence, too_much_to_prepay
from lastiterate.theorems.theorem import Theorem


def one_epoch(process: Process, slack: float) -> Notion:
    """An epoch from a common state, but for a probability `slack`; of many places only the average is taken."""
    epoch = replace(process.like_the_first(process.batches.per_epoch), displacement=0.0)
    if process.batches.per_epoch > MOST_REPRESENTED:
        return prepaid_evidence(epoch, averaged=True, slack=slack).notion
    found = prepaid_hidden_evidence(epoch, slack).notion
    return tabled(found) if isinstance(found, HiddenPlaceDP) else found


def _all_epochs(process: Process, slack: float) -> Notion:
    """The exceptions of all epochs together have probability `slack`."""
    epochs = len(process) // process.batches.per_epoch
    return compose_counted([(one_epoch(process, down(slack / epochs)), epochs)])


def _bound(process: Process) -> Evidence:
    """Update: X ← φ(X) + N(0, ν²), a new secret order each epoch, smooth losses, no decay.
    Bound: δ0 + epochs composed, each with a hidden place and prepayment from a common state.
        With more than 24 batches per epoch, the average over the places is used instead.
    Assumes: no projection and no proximal map, a known smoothness, bounded gradients, one clip for all steps, which
        are identical; no weight decay; whole epochs, and releases only at their ends; some step moves iterates apart.
    Attained by: one epoch of two batches, where a record's effect is constant, to 2 %.
    Reference: a composition of hidden places with prepayment (docs/proofs.md).
    """
    return Evidence(ChosenSlack(partial(_all_epochs, process)))


def _little_enough(process: Process) -> Fact | None:
    if any(one.failure(process) is not None for one in (SMOOTH, ALIKE_IF_NEW)):
        return None
    per_epoch = process.batches.per_epoch
    pairs = per_epoch * (per_epoch - 1) // 2 if per_epoch <= MOST_REPRESENTED else 0
    return too_much_to_prepay(process.like_the_first(per_epoch), per_epoch + pairs)


PREPAID_EPOCHS = Theorem(
    "prepayment/epoch-by-epoch",
    "lastiterate, a composition of epochs with hidden places and prepayment",
    "a new secret order each epoch, smooth losses, steps that may move iterates apart",
    {NEW_ORDERS, UNEVEN_BATCHES, CHECKPOINTS} | ANY_NEIGHBOURS,
    (
        SEVERAL,
        FINITE_LIPSCHITZ,
        GROWING,
        SMOOTH,
        ALIKE_IF_NEW,
        Assumption("short_enough", _little_enough),
        SOME_PROTECTION,
    ),
    _bound,
)
