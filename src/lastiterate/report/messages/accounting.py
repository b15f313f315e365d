"""The words of accounts, calibration, budgets, selections, forgetting, certificates and the planner."""

from __future__ import annotations

import math
from typing import Any

from lastiterate.digits import above, below
from lastiterate.errors import one_line, shown
from lastiterate.report.messages import Message

NOT_OURS = "a theorem of yours, which is not part of the library"


def _own_theorem_for_others(field: str, what: str, theorem: str) -> str:
    made = {"file": "a file that others sign", "label": "a label"}[what]
    return (
        f"{made} can be made with theorems of the library only. This report is by {theorem!r:.60}, {NOT_OURS}. Use "
        "li.account without it; or print the report, and give its certificate to those who have the theorem."
    )


def _sandwich(lower: float, upper: float, instance: str, ratio: float) -> str:
    known = f", ratio {ratio:.4g}" if math.isfinite(ratio) else ""
    return f"[{below(lower, 6)}, {above(upper, 6)}]{known}; lower bound from {instance}"


def _epsilons_of_records(delta: float, least: float, most: float, median: float, batches: int) -> str:
    of = f"{batches} batches" if batches > 1 else "the same for all records"
    return f"epsilon of a record at delta = {delta:g}: {least:.6g} to {most:.6g}, median {median:.6g}, {of}"


def _no_steps_meet(steps: int, epsilon: float) -> str:
    return f"not even {steps} step{'s' if steps > 1 else ''} meet epsilon = {epsilon:g}. Calibrate the noise instead."


def _curve_of_releases(more: int) -> str:
    return f"the last iterate and {more} more released" if more else "only the last iterate released"


_ACCOUNTS: dict[str, Message] = {
    "curve_of_releases": _curve_of_releases,
    "no_theorem_applies": "no theorem applies to this run. The most frequent reason, for {count} of {tried} theorems: each "
    "{reason}.",
    "theorem_false": "{theorem} is false for this run: it says epsilon = {epsilon:.6g}, and an allowed loss has "
    "epsilon >= {least:.6g} ({instance}). Check its bound and its assumptions.",
    "theorem_says_nan": "{theorem} says epsilon = nan for this run. Leave it out of theorems.",
    "own_theorem_for_others": _own_theorem_for_others,
    "record_named_twice": "group must name each record once.",
    "group_of_users": "group names all records of one person, but the run says that a user has up to {user_records} "
    "records. Leave out one of the two.",
    "group_of_group": "group needs a report for single records. This one is for users with up to {user_records} records. "
    "Give the run another user_records.",
    "one_person_composed": "a report for the records of one person cannot be composed with reports for everybody. Leave "
    "out group.",
    "adjacency_not_implied": "a guarantee under {proved!r} implies none under {wanted!r}. Give the run "
    "adjacency={wanted!r}.",
    "single_records_accounted": "user_records must be 1, because account_each is about single records. Got {got}. For the "
    "records of one person use li.account(replace(run, user_records=1), delta, group=[...]).",
    "epsilons_of_records": _epsilons_of_records,
    # Alternatives: what is changed.
    "with_batches": "with {batches}",
    "with_plain_steps": "with plain steps instead of {optimizer}",
    "with_step_size": "with step_size {step_size} and the same noise multiplier",
    "with_clipping": "with gradients clipped at {clip:.4g}",
    "with_weight_decay": "with weight_decay (or l2) {decay:.4g}",
    "with_projection": "with a projection on li.Ball(radius={radius:.4g}) after each step",
}

_CALIBRATION: dict[str, Message] = {
    "theorems_with_trials": "theorems cannot be given together with trials. Leave out one of them.",
    "spent_beforehand": "prior_mu = {mu:g} alone has epsilon = {spent:.4g} at delta = {delta:g}, so nothing of "
    "epsilon = {epsilon:g} is left for training. Release less before training, or allow a larger epsilon.",
    "no_run_meets": "no run was found that accounts to epsilon = {epsilon:g}: the nearest has {nearest:.6g}.",
    "no_noise_meets": "no noise up to e^{widest:.0f} times the present one meets epsilon = {epsilon:g}.",
    "most_steps_below_epoch": "most_steps must be at least one epoch of {per_epoch} steps. Got {got}.",
    "no_steps_meet": _no_steps_meet,
    "no_batch_size": "{batches} of {records} records have no batch size to change. Use li.Shuffled or li.Poisson.",
    "no_batch_size_meets": "no batch size from {least} to {most} meets epsilon = {epsilon:g}. Calibrate the noise instead.",
    "every_step_size_meets": "every step size meets epsilon = {epsilon:g}: the noise grows with the step. Calibrate the "
    "noise.",
    "no_step_size_meets": "no step size meets epsilon = {epsilon:g}. Calibrate the noise instead.",
    "no_trial_meets": "no epsilon of one trial was found with which the best of {mean:g} trials on average meets "
    "epsilon = {epsilon:g} at delta = {delta:g}. Allow a larger epsilon, or fewer trials.",
}

_CHECKED = {"replayed": "proof replayed step by step", "recomputed": "recomputed from the run"}
_MOST_TOLD = 3  # differences
_LONGEST = 60  # characters of a value


def _claim(epsilon: float, delta: float, unit: Any) -> str:
    return f"accepted: epsilon = {above(epsilon, 9)} at delta = {delta:g}, {unit}"


def _after(releases: tuple[int, ...], none: str) -> str:
    return f" and those after {', '.join(map(str, releases))} steps" if releases else none


def _accepted(
    epsilon: float,
    delta: float,
    unit: Any,
    steps: int,
    releases: tuple[int, ...],
    released: str,
    grade: str,
    own_theorem: str,
) -> str:
    what = f"{released}, of {steps}," if released else f"the last of {steps} iterates"
    own = f", assuming the theorem {own_theorem}, which is not part of the library" if own_theorem else ""
    return f"{_claim(epsilon, delta, unit)}, {what}{_after(releases, ' alone')} released; {_CHECKED[grade]}{own}"


def _accepted_page(verdict: str, version: str, compared: bool) -> str:
    if compared:
        return f"{verdict}; the page says the same"
    return (
        f"{verdict}; the page was written by lastiterate {version}: its numbers agree, its words were not compared, so rely "
        "on this line"
    )


def _accepted_budget(epsilon: float, delta: float, unit: Any, entries: tuple[str, ...]) -> str:
    proved = sum(grade != "stated" for grade in entries)
    return (
        f"{_claim(epsilon, delta, unit)}, of {len(entries)} releases together, {proved} of them proved and "
        f"{len(entries) - proved} stated; recomputed"
    )


def _accepted_forgetting(
    epsilon: float, delta: float, unit: Any, steps: int, further: int, releases: tuple[int, ...], grade: str
) -> str:
    return (
        f"{_claim(epsilon, delta, unit)}, by {further} further steps after {steps - further}, the last "
        f"iterate{_after(releases, '')} released; {_CHECKED[grade]}"
    )


def _accepted_selection(epsilon: float, delta: float, unit: Any, trials: str, settings: tuple[str, ...]) -> str:
    counted = "1 setting" if len(settings) == 1 else f"{len(settings)} settings"
    return (
        f"{_claim(epsilon, delta, unit)}, only the best of a random number of trials released ({trials}); {counted} "
        f"{' and '.join(dict.fromkeys(settings))}, the selection recomputed"
    )


def _unreadable(kind: str, because: Any) -> str:
    return f"it is not a {kind}: {one_line(str(because))}"


def _theorem_unknown(theorem: Any) -> str:
    return (
        f"its theorem {shown(theorem):.60} is not part of the library. If you have that theorem and trust it, use "
        "li.verify(certificate, theorems=[*li.theorems.CATALOGUE, MINE])"
    )


def _differences(differences: tuple[Any, ...], first: str, second: str) -> str:
    """Describe the first few differences: “steps is 400 in the certificate and 500 in run.toml”."""
    said = [f"{path} is {_entry(one)} in {first} and {_entry(two)} in {second}" for path, one, two in differences]
    return "; ".join(said[:_MOST_TOLD]) + ("; and more" if len(said) > _MOST_TOLD else "")


def _entry(value: Any) -> str:
    nested = isinstance(value, list | dict)  # perhaps too deep for `str`
    text = f"{value:.12g}" if isinstance(value, float) else shown(value) if nested else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _another_run(differences: tuple[Any, ...] = (), called: str = "") -> str:
    which = f": {_differences(differences, 'the certificate', called)}" if differences else ""
    return f"it is about another run{which}"


def _report_differs(differences: tuple[Any, ...]) -> str:
    return f"its report is not that of its certificate: {_differences(differences, 'its report', 'its certificate')}"


def _proof_differs(entry: str, differences: tuple[Any, ...]) -> str:
    return f"its {entry} are not those of its run: {_differences(differences, 'the proof', 'the run')}"


def _grade_unknown(grades: tuple[str, ...]) -> str:
    return f"its grade must be one of {', '.join(grades)}"


_VERDICTS: dict[str, Message] = {
    "accepted": _accepted,
    "accepted_page": _accepted_page,
    "accepted_budget": _accepted_budget,
    "accepted_forgetting": _accepted_forgetting,
    "accepted_selection": _accepted_selection,
    # What cannot be read.
    "unreadable": _unreadable,
    "entry_missing": "it is not a {kind}: {entry} is missing",
    "too_deep": "it is not a {kind}: it is too large or too deep",
    "certificate_format": "it is not a {format}. Make the certificate again with this version",
    "grade_unknown": _grade_unknown,
    "group_size": "{field} must be {user_records} records, as the run says. Got {got}.",
    # A certificate of a run.
    "another_run": _another_run,
    "other_neighbours": "its run has other neighbouring data sets: {unit}",
    "other_assumptions": "its assumptions are not those of its {of}: no. {number} must be {needed!r}",
    "theorem_unknown": _theorem_unknown,
    "nothing_to_replay": "{theorem} has no schedules that could be replayed",
    "nothing_prepaid": "nothing can be prepaid, because {because}",
    "prepayment_differs": "its facts about prepayment are not those of its theorem",
    "proof_differs": _proof_differs,
    "mu_not_replayed": "a claim of mu has to be replayed",
    "claims_too_much": "it claims epsilon = {claimed:.12g}, but proves {proved:.12g}",
    # A report beside a certificate, and a page.
    "report_epsilon_differs": "its report has epsilon = {reported}, its certificate has {certified}",
    "report_differs": _report_differs,
    "page_not_of_run": "its certificate is not that of a run",
    "page_entry_differs": "the page says {entry} = {said}, its certificate proves {proved}",
    "page_line_differs": "line {number} of the page says “{said}”, its certificate makes “{proved}”",
    "page_lower_bound_differs": "the page says that epsilon is at least {said:.6g}, its run gives {found:.6g}",
    "page_chances_too_small": "the page gives an attacker smaller chances than its certificate proves",
    "page_curve_ends_elsewhere": "the curve of the page ends at epsilon = {ends}, its certificate proves {proved:.6g}",
    # A forgetting.
    "theorem_not_for_claim": "{theorem!s:.60} does not prove such a claim, or not by this grade",
    "steps_not_per_request": "it has not one number of steps for each request",
    "other_unit": "it must say: {unit}",
    "releases_after_end": "its releases are not all before its last step",
    "flag_not_true": "{field} must be true, or be left out.",
    "not_per_request": "{field} must be a list with an entry for each request.",
    # A selection.
    "settings_not_listed": "settings must be a list of certificates, one for each setting",
    "several_settings": "it is about {settings} settings, not about one run",
    "setting_rejected": "setting {number}: {because}",
    "setting_other_neighbours": "setting {number} protects other neighbours: {unit}",
    "setting_format": "it is not a {format}",
    "one_person_only": "its guarantee is for one person only",
    # A budget.
    "budget_not_run": "it is about a budget, and not about one run",
    "entries_not_of_digest": "its entries are not those that its digest was made of",
    "claim_not_of_terms": "its claim has another delta or other neighbours than its terms",
    "entry_rejected": "entry {number}: {because}",
    "entry_other_neighbours": "it has other neighbouring data sets: {adjacency!r}",
    "entry_other_epsilon": "its own epsilon is not {epsilon:.12g}",
    "entry_not_covered": "mu = {mu:.12g} and a slack of {slack:.3g} do not cover it",
    "entry_not_of_run": "its certificate has other neighbouring data sets, or is not about a run",
    "entry_curve_unproved": "its certificate does not prove its privacy curve",
    "entries_make_more": "it claims epsilon = {claimed:.12g}, but its entries make {epsilon:.12g}",
    "adaptive_claims_less": "of an adaptive budget its own epsilon = {epsilon:g} may be claimed, and no less",
    "reserve_exceeded": "its entries take more than its reserve",
    "entries_exceed_budget": "its entries make mu = {mu:.12g}, which is more than the budget",
}

_SELECTIONS: dict[str, Message] = {
    "reports_not_alike": "reports must have one delta and protect the same records to share a certificate. Account for "
    "every run at one delta.",
    "selection_not_finite": "certificate needs a finite epsilon at delta = {delta:g}. Use more noise in each trial.",
    "trials_without_reports": "certificate needs the reports of the trials. Give li.select reports of li.account; only "
    "li.notions.GaussianDP may be listed beside them.",
}


def _budget_other_users(field: str, budget: int, given: int, report: bool) -> str:
    single = report and given == 1
    advice = f"report.group({budget})" if single else f"replace(run, user_records={budget})"
    again = ", accounted for again" if report and not single else ""
    what = "report" if report else "run"
    return f"{field} must be {budget}, as in the budget. Got a {what} with {given}. Spend {advice}{again}."


def _budget_other_adjacency(field: str, budget: Any, given: Any, run: bool) -> str:
    what, advice = "guarantee", f"Account for it under {budget!r}"
    if run:
        give = "Spend what report.under(li.REPLACE_ONE) returns, or give" if budget.replaces else "Give"
        what, advice = "run", f"{give} the run adjacency={budget!r}"
    return f"this budget is about {budget!r}. Got a {what} about {given!r}. {advice}."


def _budget_terms_differ(field: str, file: Any, term: str, found: Any, wanted: Any) -> str:
    other = f"{term} = {shown(found)}, not {shown(wanted)}"
    return f"{file} is a budget with {other}. Open it with li.Budget.open, or take another file."


_LEFT = "What is left covers one Gaussian release of mu = {left:.4g}."
_BUDGETS: dict[str, Message] = {
    "budget_spent": "the budget is epsilon = {epsilon:g} at delta = {delta:g}; {spent:.4g} is spent, and this release would "
    f"make it {{would:.4g}}. {_LEFT}",
    "reserve_spent": "the budget cannot cover this release: its own delta is above {room:.2g} at every epsilon, which is "
    "all that is left of the delta reserved for such releases (reserve = {reserve:g}). Lower the release's own delta, or "
    f"make a budget with a larger reserve. {_LEFT}",
    "budget_no_finite_epsilon": "this guarantee has no finite epsilon at delta = {delta:g}, so no budget with that delta "
    "covers it.",
    # What is to be released.
    "not_a_release": "release must be a report (li.account), a run or a guarantee such as "
    "li.notions.GaussianDP(mu=1.0). Got {got}.",
    "releases_without_run": "releases can be given with a run only. Give them to li.account.",
    "budget_other_users": _budget_other_users,
    "budget_other_adjacency": _budget_other_adjacency,
    "budget_one_person": "a budget protects everybody. Got a report for one person ({unit}). Leave out group.",
    "budget_caveat": "a budget cannot cover a report with a caveat. This report has: {caveat}. Train again without it.",
    "budget_own_theorem": "a budget records theorems of the library only. This report is by {theorem!r:.60}, "
    f"{NOT_OURS}. Account for the run without it, or spend report.notion, which is recorded as stated and not proved.",
    # Its file.
    "budget_missing": "{file} is not there. Make it with li.Budget(epsilon, delta, file=...).",
    "budget_terms_differ": _budget_terms_differ,
    "budget_format": "it is not a {format}: it was written by another version of this library.",
    "budget_read_only": "{file} was opened read-only. Open it without read_only to spend.",
    "budget_in_use": "{file} was in use by others for longer than timeout = {timeout:g} seconds. Try again.",
    "budget_not_readable": "{file} cannot be used as a budget: {error}.",
    "budget_not_written": "{file} cannot be written: {error}.",
    "budget_of_another_process": "a budget in memory belongs to the process that made it. Give it a file to share it.",
    "budget_copied": "a budget in memory cannot be copied: both copies would be spent. Give it a file.",
    "budget_damaged": "{file} is damaged, and nothing can be spent: {error}",
    "budget_without_terms": "it has no terms.",
    "entries_not_numbered": "its entries are not numbered one after the other.",
    "entry_changed": "entry {number}, or an earlier one, was changed after it was written.",
    "entries_missing": "it does not hold the {count} entries that were written.",
    # What it prints.
    "budget_left": "Left: one Gaussian release of mu = {mu:.4g}, which alone has epsilon = {epsilon:.4g}",
    "budget_adaptive": "Each release may depend on earlier ones. The guarantee for all of them together is the budget.",
    "budget_decided_beforehand": "All releases were decided before the first was made. The guarantee for all of them "
    "together is what is spent.",
}


def _counts(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts[:6])) + (", …" if len(counts) > 6 else "")


def _forgotten_after(steps: int, records: int, epsilon: float, delta: float, target: float) -> str:
    forgotten = "1 record" if records == 1 else f"{records} records"
    return (
        f"{steps} further steps forget {forgotten}: epsilon = {above(epsilon)} at delta = {delta:g} (target {target:g})"
    )


def _forgotten_one_by_one(further: tuple[int, ...]) -> str:
    return f"{len(further)} requests, one after the other, with {_counts(further)} steps"


def _records_not_as_planned(field: str, planned: tuple[int, ...], given: tuple[int, ...]) -> str:
    return f"{field} must be one list for each request, of at most {_counts(planned)} records. Got {_counts(given)}."


def _released_not_forgotten(field: str, target: float, epsilon: float, delta: float) -> str:
    return (
        f"No number of further steps reaches epsilon = {target:g}, because released iterates cannot be taken back: epsilon "
        f"stays {above(epsilon)} at delta = {delta:g}. Use more noise, or release less."
    )


def _steps_not_enough(field: str, steps: int, epsilon: float, delta: float, apart: bool) -> str:
    advice = "smaller steps or an l2 term: steps may move iterates apart" if apart else "a larger most_steps"
    return (
        f"Even {steps} further steps leave epsilon = {above(epsilon)} at delta = {delta:g}. Use more noise or {advice}."
    )


def _forgetting_unproved(field: str, reasons: tuple[str, ...]) -> str:
    return f"Nothing can be proved about forgetting in this run: {'; '.join(reasons)}."


def _epochs_not_whole(field: str, batches: str, per_epoch: int, steps: tuple[int, ...]) -> str:
    return (
        f"{field} must be whole epochs of {per_epoch} steps, before and after each request, to forget several records of "
        f"{batches}. Got {', '.join(map(str, steps[:6]))} steps."
    )


def _adaptive_epochs_not_whole(field: str, per_epoch: int, steps: tuple[int, ...]) -> str:
    return (
        f"{field} must be whole epochs of {per_epoch} steps before each adaptive request, because the rest of an order may "
        f"be known. Got {', '.join(map(str, steps[:6]))} steps."
    )


_FORGETTING: dict[str, Message] = {
    "forgotten_after": _forgotten_after,
    "forgotten_one_by_one": _forgotten_one_by_one,
    "scratch_no_longer": "Training from scratch without these records takes {steps} steps, which is no more than this.",
    "no_removals": "{field} must be a number of records, or one for each request. Got {got}.",
    "records_not_listed": "{field} must be a list of indices for each request, such as [3, 17]. Got {got}.",
    "records_not_as_planned": _records_not_as_planned,
    "released_not_forgotten": _released_not_forgotten,
    "steps_not_enough": _steps_not_enough,
    "forgetting_unproved": _forgetting_unproved,
    "forgetting_not_plain": "Forgetting needs plain gradient steps whose last iterate is released: momentum and averages "
    "keep traces of a removed record. Got {got}. Train with optimizer=li.SGD() and released=li.LAST.",
    "single_records_forgotten": "{field} must be 1, because forgetting counts single records. Got {got}. Use replace(run, "
    "user_records=1) and let removals count all records of the user.",
    "too_many_steps_together": "{field} must be at most {most:.3g}, training and further steps together. Got {steps:.3g}.",
    "epochs_not_whole": _epochs_not_whole,
    # Requests of people who have seen earlier models.
    "adaptive_with_releases": "releases and release_each must be left out if adaptive is True: all earlier models are then "
    "taken as known.",
    "adaptive_otherwise_proved": "adaptive requests must be proved by {theorem}.",
    "adaptive_unbounded": "domain must be bounded for adaptive requests, because nothing else limits how far apart two "
    "models are. Got an unbounded one. Train with domain=li.Ball(radius=...).",
    "adaptive_one_order": "batches must not keep one secret order for adaptive requests, because published models may "
    "reveal it. Got shuffled batches with each_epoch=False. Use each_epoch=True, or li.Cyclic.",
    "adaptive_epochs_not_whole": _adaptive_epochs_not_whole,
    "adaptive_beforehand": "{field} must be 0 for adaptive requests. Got {got}. Leave adaptive out: then releases before "
    "training are covered.",
}

_PLANNER: dict[str, Message] = {
    "web_not_installed": "lastiterate serve needs Starlette and uvicorn. Install them with: pip install 'lastiterate[web]'.",
    "port_not_usable": "port {port} cannot be used: {error}. Use another one, or --port 0 for any free port.",
    "host_refused": "Open this page at the address that `lastiterate serve` printed; other host names are refused.",
    "origin_refused": "Requests from other web pages are refused.",
    "token_missing": "Open the whole address that `lastiterate serve` printed, including its token.",
    "request_too_large": "A request must have at most {most} bytes. Use a named schedule instead of one number per step.",
    "request_not_json": "A request must be JSON.",
    "value_missing": "{field} is missing. Enter a value.",
    "file_without_text": "a file must have a name and a text.",
    "too_many_waiting": "Too many computations are waiting. Close other windows of this page, or wait.",
    "others_did_not_end": "Other computations did not end within a minute. Cancel them, and try again.",
    "planner_stopped": "The planner was stopped in its terminal.",
    "computation_ended": "The computation ended without a result. Try again with fewer steps.",
    "memory_exhausted": "Not enough memory. Use fewer steps or records.",
    "planner_failed": "Something went wrong inside lastiterate. The terminal shows the error.",
}

MESSAGES: dict[str, Message] = _ACCOUNTS | _CALIBRATION | _VERDICTS | _SELECTIONS | _BUDGETS | _FORGETTING | _PLANNER
