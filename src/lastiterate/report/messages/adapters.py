"""The words of other libraries."""

from __future__ import annotations

from typing import Any

from lastiterate.report.messages import Message


def _opacus_batches(run: str, loader: str, poisson: tuple[bool, bool], field: str = "") -> str:
    """`poisson`: whether the batches of the run are, and those of the loader."""
    advice = {
        (False, True): "; use poisson_sampling=False, or li.Poisson in the run",
        (True, False): "; use poisson_sampling=True and the loader that make_private returns",
    }.get(poisson, "")
    return (
        f"the run and the loader must have the same batches. Got {run} in the run and {loader} from the loader{advice}."
    )


def _opacus_sampler_distributed(repeated: int, field: str = "") -> str:
    why = (
        f"it repeats {repeated} records to fill its last batches, so one record may be used twice per epoch"
        if repeated
        else "its order comes from a public seed"
    )
    return f"the sampler must not be a DistributedSampler: {why}. Train in one process."


def _opacus_lr(field: str, size: float, scale: float, got: str, step: int) -> str:
    divided = "" if scale == 1 else ", divided as Opacus divides"
    return f"{field} must be {size / scale:.9g}, the step_size of the run{divided}, at step {step}. Got {got}."


def _opacus_divisor(divisor: float | None, needed: float, rate: float, step_size: float, field: str = "") -> str:
    """`divisor`: None where sums are not divided."""
    divides = (
        'loss_reduction="sum" divides by nothing'
        if divisor is None
        else f"Opacus divides gradient sums by expected_batch_size = {divisor:g}"
    )
    return (
        f"{divides}, but the run divides by {needed:g}. For lr = {rate:g} use step_size = {step_size!r} in the run, as "
        "li.adapters.opacus.run_of does."
    )


def _event_wrong(event: Any, error: Exception, field: str = "") -> str:
    return f"{type(event).__name__} is not supported: {str(error).rstrip('.')}."


_LIBRARIES: dict[str, Message] = {
    "library_missing": "{module} needs {library}. Install it with: pip install 'lastiterate[{extra}]'.",
}

# What a run or a script of Opacus must not say.
_OPACUS_SETUP: dict[str, Message] = {
    "opacus_noise_kind": (
        "{field} must be li.OnGradientSum(multiplier=, clip=), which is where Opacus adds it. Got {got}."
    ),
    "opacus_batches_kind": (
        "{field} must be li.Poisson, li.Shuffled, li.Cyclic or li.FullBatch, which Opacus can draw. Got {got}."
    ),
    "opacus_projection": (
        "{field} must not be set in the run: Opacus' optimisers neither project nor apply a proximal map."
    ),
    "opacus_arithmetic": "{field} must not be set in the run: this library cannot check how Opacus rounds.",
    "opacus_pull": "{field} must not have pull=, which Opacus does not implement. Remove pull.",
    "opacus_clip_per_class": (
        "{field} must not need one clip per class: Opacus clips all classes together, which does not preserve convexity. "
        "Use max_grad_norm > {bound:.4g}, which clips nothing, or li.losses.softmax."
    ),
    "opacus_setup_kind": "{field} must be a {allowed}. Got a {got}; pass the engine and what make_private returned.",
    "opacus_other_loader": "{field} must be the one that this engine's make_private returned.",
    "opacus_training_begun": "run_of must be called before the first step: later weights depend on the data.",
    "opacus_scheduler": (
        "{field} must be given, because a scheduler changes the learning rate of this optimiser. Use for example "
        "step_size=li.cosine(0.1), or a list with one number per step."
    ),
    "opacus_epochs_or_steps": "run_of needs either epochs or steps. Pass exactly one of them.",
    "opacus_batches": _opacus_batches,
    "opacus_rand_on_empty": (
        "{field} must be False: a random record in an empty batch doubles the difference one record can make."
    ),
    "opacus_sampler_kind": (
        "the loader must be DataLoader(shuffle=True or False), or the one for Poisson sampling that Opacus makes. Got the "
        "sampler {got}."
    ),
    "opacus_sampler_distributed": _opacus_sampler_distributed,
    "opacus_sampler_passes": (
        "the sampler must use each of the {records} records once per epoch. Got {got} with replacement, or over another "
        "number of records. Use DataLoader(shuffle=True)."
    ),
    "opacus_clipping_per_layer": (
        '{field} must be "flat", one clip for the whole gradient of a record. Got clipping per layer.'
    ),
    "opacus_clipping_adaptive": (
        '{field} must be "flat": an adaptive clip depends on the data. Fix max_grad_norm before training.'
    ),
    "opacus_ghost_clip_scheduled": (
        "{field} must be constant with ghost clipping: a schedule would change the noise but not the clip."
    ),
    "opacus_optimizer_kind": (
        "the optimiser must be DPOptimizer, or the one for ghost clipping, in a single process. Got {got}."
    ),
    "opacus_optimizer": "the optimiser must be the run's, {allowed}. Got {got}; use {written} in the run.",
}

# Steps of Opacus beside those of the run.
_OPACUS_STEPS: dict[str, Message] = {
    "opacus_clip": "{field} must be the clip of the run, {needed:g}, at step {step}. Got {got}.",
    "opacus_multiplier": "{field} must be that of the run, {needed:g}, at step {step}. Got {got}.",
    "opacus_weight_decay": "{field} must be {needed:g}, as in the run, at step {step}. Got {got}.",
    "opacus_batch_size": "{field} must be {needed} records, as in the run, at step {step}. Got {got}.",
    "opacus_lr": _opacus_lr,
    "opacus_divisor": _opacus_divisor,
    "opacus_precision": ("weights must be in single or double precision. Got {got}, whose rounding is not negligible."),
    "opacus_start_norm": "{field} must be at least the norm of the weights before training, {needed:.6g}. Got {got}.",
    "opacus_sample_rate": (
        "{field} must be 1 / (steps per epoch), which is {needed:.9g} in the run. Got {got}. Check the batch size, the "
        "number of records, and how many batches are accumulated in one step."
    ),
    "opacus_two_optimizers": (
        "an accountant must count one training only. Got steps of two optimisers; use one engine for each."
    ),
    "opacus_ghost_unseen": (
        "ghost clipping must be set up by make_private, with this accountant in its engine: otherwise nothing shows that "
        "gradients were clipped."
    ),
    "opacus_module_clip": "the module must clip at max_grad_norm = {needed:g}, as the optimiser. Got {got}.",
    "opacus_other_gradients": (
        "with ghost clipping, the loss must come from the criterion that make_private returned: nothing else clips. Got "
        "gradients of another loss, or gradients that were changed."
    ),
    "opacus_batch_records": (
        "step {step} must use each of the {drawn} records that the loader drew for it once. Got {got} records. Train with "
        "the loader that make_private returns."
    ),
    "opacus_run_over": (
        "the training must stop after the run's {steps} steps. Got one more. Describe a longer run, and train again from "
        "the beginning."
    ),
}

# The accountant: what it is asked, what it is told to try, what it has saved.
_OPACUS_ACCOUNTANT: dict[str, Message] = {
    "opacus_no_step": "no step was executed yet, so there is nothing to account for.",
    "opacus_epsilon_arguments": "get_epsilon takes no argument except delta. Got {got}.",
    "opacus_history_executed": "{field} cannot be set once steps were executed. Use a new accountant.",
    "opacus_history_planned": "{field} was set to try a noise multiplier. Use a new accountant to count steps.",
    "opacus_history_kind": (
        "{field} must be [(noise_multiplier, sample_rate, steps)], to try a noise multiplier. Use step or load_state_dict "
        "for executed steps."
    ),
    "opacus_epochs": "{field} must give the {needed} steps of the run. Got {got} steps.",
    "opacus_multiplier_per_step": (
        "noise multipliers can be tried only if all steps have the same. Got a run with one per step."
    ),
    "opacus_state_late": (
        "{field} must be loaded before the first step. Got one after {steps} steps, which would not be counted any more. "
        "Use a new engine."
    ),
    "opacus_state_kind": "state_dict must be what state_dict() returned. Got a {got}.",
    "opacus_state_malformed": "state_dict must be what state_dict() returned. Got one with a malformed history.",
    "opacus_state_entry": "state_dict must come from this accountant. Got one without the entry {field}.",
    "opacus_state_mechanism": "state_dict must come from the accountant {allowed}. Got one from {got}.",
    "opacus_state_run": "state_dict must belong to the run of this accountant. Got another run.",
    "opacus_state_steps": "state_dict must have at most the {most} steps of the run. Got {got}.",
    "opacus_state_mid_epoch": (
        "state_dict must be saved at the end of an epoch of {per_epoch} steps, where the loader restarts. Got one saved "
        "{steps} steps into an epoch."
    ),
}

# What the accountant takes from Opacus and from the script.
_OPACUS_TRUSTED: dict[str, Message] = {
    "opacus_trusted_rate": "1 / (steps per epoch) of the run, for all batches of a step together",
    "opacus_trusted_optimizer": (
        "one DPOptimizer in one process, flat clipping; update, learning rate, weight decay and clip of the run"
    ),
    "opacus_trusted_weights": (
        "single or double precision; at the first step also their number and norm, where the account uses them"
    ),
    "opacus_trusted_criterion": (
        "with ghost clipping, all gradients come from the criterion that make_private returned, and nothing changes them"
    ),
    "opacus_trusted_loader": (
        "each step uses the next batch of the loader that make_private returned, and none is left out or used twice"
    ),
    "opacus_trusted_batch": "gradients of as many records as the loader drew for the step, however they are split",
    "opacus_trusted_noise": "the noise multiplier of the run, or the one that make_private_with_epsilon found",
    "opacus_trusted_state": "loaded before the first step, with the weights and the optimiser that belong to it",
    "opacus_trusted_seeds": "generators seeded by the operating system, before training, and not again",
    "opacus_trusted_collate": "what it makes of a record does not depend on the rest of the batch",
    "opacus_trusted_arithmetic": "what rounding adds to gradients, sums and noise is negligible",
}

# Guarantees as events of dp-accounting.
_EXPORTED: dict[str, Message] = {
    "exported_kind": "{field} must be a report of li.account or a notion, such as li.notions.GaussianDP(mu=1.0). Got {got}.",
    "exported_of_one_user": (
        "{field} must cover every record. Got a report for the records of one user; account without group."
    ),
    "exported_no_event": (
        "this guarantee cannot be expressed as an event of dp-accounting. Use privacy_loss_distribution(guarantee), or "
        "pass the report of the run instead."
    ),
    "dp_accountant_relation": (
        "accountant must have neighboring_relation={relation}, that of the guarantee. Got {got}."
    ),
    "dp_accountant_not_doubling": (
        "dp-accounting's RdpAccountant does not double the sensitivity of a Gaussian event under REPLACE_ONE, so its "
        "epsilon is too small. Use dp_accounting.pld.PLDAccountant or LastIterateAccountant."
    ),
    "dp_accountant_without_runs": (
        "accountant must be a LastIterateAccountant, because the best guarantee of this report is not an event of "
        "dp-accounting. Use one, which also composes dp-accounting's events, or compose "
        "privacy_loss_distribution(report). Got {got}."
    ),
    "dp_relation_kind": (
        "{field} must be a dp_accounting.NeighboringRelation, such as NeighboringRelation.REPLACE_ONE. Got {got}."
    ),
}

# Why an event of dp-accounting is not supported.
_EVENTS = {
    "dp_event_with_replacement": (
        "a record can occur in a batch several times; use PoissonSampledDpEvent or SampledWithoutReplacementDpEvent"
    ),
    "dp_event_shares_noise": "its steps share noise; use dp_accounting.rdp.RdpAccountant under REPLACE_SPECIAL",
    "dp_event_truncated": (
        "large batches are truncated; use dp_accounting.pld.PLDAccountant, or PoissonSampledDpEvent without truncation"
    ),
    "dp_event_of_no_mechanism": "it does not describe a mechanism; use another event",
    "dp_event_unknown": "its type is unknown; use another accountant, or describe the mechanism by another event",
    "dp_event_no_theorem": "no theorem applies to its run; li.account(run, delta) lists the reasons",
    "dp_event_relation": (
        "its run has adjacency={event.run.adjacency!r}, which is {own.name}, but the neighboring relation is "
        "{relation.name}; use adjacency={adjacency!r} in the run, or {own.name} here"
    ),
    "dp_event_not_one_gaussian": (
        "under REPLACE_ONE it must contain one GaussianDpEvent; use ADD_OR_REMOVE_ONE, REPLACE_SPECIAL or "
        "SampledWithoutReplacementDpEvent"
    ),
    "dp_event_fixed_size": (
        "adding a record changes the sampling probability of all others; use REPLACE_ONE or REPLACE_SPECIAL"
    ),
    "dp_event_sample_size": "its sample_size must be at most {records}, the source_dataset_size, and is {sample}",
    "dp_event_other_noise": "it must contain Gaussian or Laplace noise only, but it contains a {inside}",
    "dp_event_no_response": "a removed record gives no response; use REPLACE_ONE or REPLACE_SPECIAL",
    "dp_event_replaces_none": (
        "it describes a record that is present or absent; use ADD_OR_REMOVE_ONE or REPLACE_SPECIAL"
    ),
    "dp_event_weights": "its sampling_probs must sum to 1, but sum to {total:.12g}",
}

MESSAGES: dict[str, Message] = {
    **_LIBRARIES,
    **_OPACUS_SETUP,
    **_OPACUS_STEPS,
    **_OPACUS_ACCOUNTANT,
    **_OPACUS_TRUSTED,
    **_EXPORTED,
    **{code: f"{{event.__class__.__name__}} is not supported: {reason}." for code, reason in _EVENTS.items()},
    "dp_event_wrong": _event_wrong,
}
