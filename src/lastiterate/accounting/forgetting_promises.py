"""What a forgetting claims, and what it assumes, as facts."""

from __future__ import annotations

from lastiterate.accounting.forgetting import Requests
from lastiterate.accounting.promises import promises
from lastiterate.facts import Fact, fact
from lastiterate.runs.run import Run


def forgotten_unit(run: Run, requests: Requests) -> Fact:
    """In place of a privacy unit, which it is not: nobody may take it for a guarantee of privacy."""
    return fact("forgotten", records=requests.records, replaced=run.adjacency.replaces, adaptive=requests.adaptive)


def compared(run: Run, requests: Requests) -> Fact:
    """Which two models cannot be told apart."""
    about = {
        "steps": run.steps,
        "further": sum(requests.steps),
        "records": requests.records,
        "replaced": run.adjacency.replaces,
        "earlier": sum(requests.removals) - requests.records,
    }
    if requests.adaptive:
        return fact("separate_run", **about)
    return fact("same_start_and_settings", **about, after=requests.released_before_the_end(run.steps))


def covered_models(run: Run, requests: Requests) -> Fact:
    """Which of the models that a run and its requests release the claim is about."""
    released = bool(requests.released_before_the_end(run.steps))
    earlier = "public" if requests.adaptive else "covered" if released else "not covered"
    return fact("models_covered", earlier=earlier)


def forgetting_promises(run: Run, requests: Requests) -> tuple[Fact, ...]:
    """What a claim about forgetting rests on. The first two say what is compared."""
    whole, about = run.continued(sum(requests.steps)), (compared(run, requests), covered_models(run, requests))
    if requests.adaptive:  # what else is released is not limited, but for the further steps
        others = tuple(one for one in promises(whole, ()) if one.code != "only_released")
        return (*about, *others, fact("removed_unused"), fact("nothing_released_meanwhile"))
    others = promises(whole, requests.released_before_the_end(run.steps))
    return (*about, *others, fact("removed_unused"), fact("requests_independent"))
