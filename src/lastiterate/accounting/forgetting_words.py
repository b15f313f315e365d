"""What a forgetting claims, and what its owner must guarantee, in plain words."""

from __future__ import annotations

from lastiterate.accounting.describe import promises
from lastiterate.accounting.forgetting import Requests
from lastiterate.accounting.groups import numbered
from lastiterate.algorithms.run import Run

_REMOVED = "From its request on, no step uses a removed record."
_ASKED = (
    "Which records these requests remove, and when, does not depend on models or on anything else that was computed with "
    "the noise of this run."
)
_HIDDEN = (
    "Between a request and the end of its further steps nothing is released: no iterate, no metric, no stopping time. The "
    "number of steps is fixed before they begin."
)


def compared(run: Run, requests: Requests) -> str:
    """Which two models cannot be told apart."""
    count, more = requests.records, sum(requests.steps)
    which = "the removed record" if count == 1 else f"the {count} removed records"
    never = f"that never had {which}: {_instead(run, count)}{_others(requests)}"
    actual = f"the model after {run.steps} steps of training and {more} further steps"
    if requests.adaptive:
        return (
            f"Given everything that was computed before the last request, {actual} is compared with the model of a separate "
            f"run of {run.steps + more} steps with the same settings and noise of its own {never}."
        )
    kept = requests.released_before_the_end(run.steps)
    also = f", together with the iterates released after {numbered(kept)} steps," if kept else ""
    return (
        f"{actual[0].upper()}{actual[1:]}{also} is compared with that of a run of {run.steps + more} steps with the same "
        f"start and settings {never}."
    )


def _instead(run: Run, count: int) -> str:
    if run.adjacency.replaces:
        others = "another record takes its place" if count == 1 else "other records take their places"
        return f"{others} from the start, as in the further steps"
    return f"{'its gradient is' if count == 1 else 'their gradients are'} left out, and sums are divided by the same numbers"


def _others(requests: Requests) -> str:
    earlier = sum(requests.removals) - requests.records
    if not earlier:
        return ""
    which = "record that was removed earlier is" if earlier == 1 else f"{earlier} records that were removed earlier are"
    return f". The {which} removed from both runs at the same step"


def covered_models(run: Run, requests: Requests) -> str:
    """Which of the models that a run and its requests release the claim is about."""
    later = "Models that are later trained from this one are covered as well, and later requests may depend on them."
    if requests.adaptive:
        return f"Earlier models may be public, and requests may depend on them. {later}"
    if requests.released_before_the_end(run.steps):
        return later
    return f"Models that were released earlier are not covered. {later}"


def forgetting_promises(run: Run, requests: Requests) -> list[str]:
    """What no program can check. The first two say what is compared, in place of what neighbours are."""
    whole = run.continued(sum(requests.steps))
    about = [compared(run, requests), covered_models(run, requests)]
    if requests.adaptive:  # what else is released is not limited, but for the further steps
        return [*about, *promises(whole, ())[2:], _REMOVED, _HIDDEN]
    return [*about, *promises(whole, requests.released_before_the_end(run.steps))[1:], _REMOVED, _ASKED]


def said_of(run: Run, requests: Requests) -> str:
    """In place of an adjacency, which it is not: nobody may take it for a guarantee of privacy."""
    records = "one record" if requests.records == 1 else f"{requests.records} records"
    given = ", given all earlier models" if requests.adaptive else ""
    return f"{records} forgotten ({'replaced by others' if run.adjacency.replaces else 'left out'}){given}"
