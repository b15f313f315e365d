"""The words of trainings of networks."""

from __future__ import annotations

from lastiterate.report.messages import Message

_MOST_NAMED = 3
_ORDERS = {"random": "in random order", "fixed": "in a fixed order", "no passes": "drawn anew, not in passes"}
_CHOSEN = {"end": "when it stops", "files": "which files it writes"}


def _named(names: list[str]) -> str:
    shown = ", ".join(map(str, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def _removed(names: list[str]) -> str:
    return f"dataset.remove_columns({names[:_MOST_NAMED]!r})"


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{one:g}" for one in numbers)


def _columns_unknown(field: str, columns: list[str], arguments: list[str]) -> str:
    return (
        f"the model must accept every column of the data set. Got {_named(columns)}, but its arguments are "
        f"{_named(arguments)}. Remove columns: {_removed(columns)}."
    )


def _columns_of_lists(field: str, columns: list[str]) -> str:
    return (
        f"records must be tensors. Got lists of numbers in {_named(columns)} of the data set. Use "
        'dataset.with_format("torch"), or a collate_fn that returns tensors.'
    )


def _columns_without_tensors(field: str, columns: list[str]) -> str:
    return (
        f"records must be tensors. Got none in {_named(columns)} of the data set. Tokenise it, or remove it: "
        f"{_removed(columns)}."
    )


def _batch_without_labels(columns: list[str]) -> str:
    return (
        f'a batch that is a dict must have the key "labels". Got {", ".join(columns)}. Rename the column: '
        'dataset.rename_column("…", "labels").'
    )


def _layers_unknown(layers: list[str]) -> str:
    return f"no gradients of single layers are known for {', '.join(layers)}."


def _weight_decay_differs(field: str, weight_decay: float, decays: list[float]) -> str:
    return (
        f"the optimiser must have the run's weight_decay, {weight_decay:g}. Got {_listed(decays)}. Change one of them."
    )


def _learning_rate_differs(field: str, step: int, step_size: float, rates: list[float]) -> str:
    return (
        f"the learning rate at step {step} must be the run's step_size, {step_size:g}. Got {_listed(rates)}. Describe the "
        "scheduler in the run: li.cosine, li.linear, li.multistep, or a list of step sizes."
    )


def _trainer_batches_differ(field: str, batches: str, size: int, accumulated: int, devices: int, order: str) -> str:
    parts = ((accumulated, "accumulated"), (devices, "devices"))
    used = " × ".join([str(size), *(f"{count} {what}" for count, what in parts if count > 1)])
    return (
        f"the run has {batches}, but a step of the trainer uses {used} records {_ORDERS[order]}. Change the run, or draw "
        "batches with lastiterate.torch.loader(dataset, run)."
    )


def _chosen_by_records(field: str, by: str, metric: str, chosen: str) -> str:
    return (
        f"{by} depends on {metric}, which may be computed from records, so {_CHOSEN[chosen]} would reveal something about "
        f"them. Let it use a metric on public data, named in public=[...], or remove {by}."
    )


_MODELS: dict[str, Message] = {
    "model_mixes_records": "the model must treat each record separately, but its losses or gradients on a batch differ from "
    "those of single records. Look for layers that mix records or draw random numbers.",
    "layer_mixes_records": "the model must treat each record separately. Got {got}, which mixes records; use GroupNorm or "
    "LayerNorm, or call eval() on it if its statistics come from public data.",
    "layer_keeps_statistics": "the model must not keep statistics of the records. Got {got}; set "
    "track_running_stats=False.",
    "no_trained_parameters": "the model must have parameters that require gradients. Got none.",
    "parameter_lazy": "parameters must have a shape. Got {got}, a lazy parameter without one; set the sizes of the layer.",
    "parameters_changed": "the parameters have changed since the last step. Only step() may change them.",
    "model_sharded": "every process must hold the whole model, because each record's gradient is clipped as one vector. Got "
    "a model sharded over processes (FSDP or DTensor); pass the module itself, or wrap it in DistributedDataParallel.",
    "model_not_copyable": "model must be copyable by copy.deepcopy: {reason}",
    "buffer_changed": "the model must not change its buffers in training, because they would be released without noise. Got "
    "a changed {got}. Call eval() on that layer, or use a layer without such state.",
    "domain_dimension_differs": "the run's domain must have one dimension per trained parameter, {parameters}. Got "
    "{dimension}.",
}

_GRADIENTS: dict[str, Message] = {
    "loss_of_whole_batch": "loss must return one number per record. Got one number for the whole batch.",
    "losses_not_one_per_record": "loss must return one number for each of {records} records. Got {losses}.",
    "losses_not_comparable": "nothing can be compared.",
    "loss_of_linear_model": "li.losses.{loss} is a linear model, for which only li.train enforces feature_norm. Use "
    "li.train, or describe this model with li.losses.network(clip=...) or li.losses.general(...).",
    "record_gradients_not_finite": "gradients must be finite. Got NaN or infinity; use a smaller step_size, or check the "
    "data for such values.",
    "gradients_not_by_record": "per-record gradients of the model cannot be computed: {reason}",
    "network_not_clipped": "gradients of a network must be clipped. Use li.losses.network(clip=...), or noise by "
    "li.OnGradientSum.",
    "precision_too_low": "a loss with a known smoothness needs gradients in double precision. Got a model in {got}; use "
    "model.double() and data in double precision, or remove the smoothness.",
    "noise_lost": "noise of {noise:.3g} is lost beside a value of length {length:.3g}: double precision has too few digits "
    "for both. Use more noise, or a smaller step_size.",
    "layer_used_twice": "a layer is used more than once for each record.",
    "layer_input_changed": "what went into a layer is changed in place afterwards.",
    "layer_not_of_one_tensor": "a layer does not take one tensor and return one.",
    "layer_records_not_first": "a layer does not see the records along its first axis.",
    "layers_share_parameters": "layers share parameters.",
    "layers_unknown": _layers_unknown,
    "convolution_without_batch": "a convolution does not take a batch of records.",
}

_RECORDS: dict[str, Message] = {
    "columns_unknown": _columns_unknown,
    "columns_of_lists": _columns_of_lists,
    "columns_without_tensors": _columns_without_tensors,
    "batch_without_labels": _batch_without_labels,
    "batch_not_a_pair": 'a batch must be a pair of inputs and targets, or a dict with "labels". Got {got}.',
    "batch_uneven": "all tensors of a batch must have one entry per record along their first axis. Got {got}.",
    "records_not_finite": "records must be finite. Got NaN or infinity in a record of this batch; remove or replace such "
    "values before training.",
    "records_missing": "the loader must return all records that were drawn. Got {count} of {drawn}; check that the data set "
    "has not changed and that its collate function keeps all records.",
    "collate_mixes_records": "the collate function must treat each record separately, but the loss of a record depends on "
    "the rest of its batch. Pad all records to the same length, or let the model and the loss ignore the padding.",
    "dataset_without_index": "dataset must have a length and an index, so that batches can be drawn from it. Got {got}.",
    "dataset_is_tuple": "dataset must be a PyTorch data set. Got a tuple; use torch.utils.data.TensorDataset(*tensors).",
    "dataset_length_differs": "dataset must have as many records as the run, {records}. Got {length}.",
}

_LOADERS: dict[str, Message] = {
    "loader_unknown": "the loader must draw batches in order, shuffled, or by li.torch.loader. Got {got}.",
    "loader_of_another_run": "the loader must draw {batches} for {steps} steps, as the run does. Got {drawn} for "
    "{drawn_steps} steps. Make the loader from this run.",
    "loader_begins_late": "the loader must start at the first step of the run. Got one that starts after step {begin}.",
    "loader_batches_differ": "the loader must draw {batches}, as the run does. Got {drawn}. Change the run, or use "
    "li.torch.loader(dataset, run); a large batch can be accumulated in parts.",
    "loader_iterated_again": "the loader must be iterated once: it returns all batches of the run, from the first step to "
    "the last. Use one loop without an outer loop over epochs, and a new loader for another training.",
    "loader_option_of_run": "{field} is set by the run's batches. Remove it.",
    "batch_not_next": "each step must use the next batch of the loader. Got another one: a pass was stopped early, or a "
    "batch was skipped, used twice or taken from elsewhere. Take one step per batch, to the end of each pass.",
    "batch_unused": "each batch of the loader must be used by exactly one step. Got a batch that no step has used.",
    "batch_not_drawn": "each batch of the loader must be used by exactly one step. Got no batch for this step.",
}

_OPTIMISERS: dict[str, Message] = {
    "optimizer_not_given": "a run with the optimiser {name} needs optimizer=, such as "
    "torch.optim.{name}(model.parameters(), lr).",
    "optimizer_differs": "the optimiser must be the run's, {optimizer}. Got {got}. Describe it in the run: "
    'li.SGD(momentum=...), li.Adam(...), or optimizer="its name", for which every step is composed.',
    "optimizer_of_other_parameters": "the optimiser must hold exactly the parameters of the model that require gradients. "
    "Freeze the others with requires_grad_(False), or pass all of them to the optimiser.",
    "optimizer_not_new": "the optimiser must be new. Got one that has already taken steps, which the run does not include.",
    "weight_decay_differs": _weight_decay_differs,
    "learning_rate_differs": _learning_rate_differs,
}

_TRAININGS: dict[str, Message] = {
    "torch_library_missing": "{module} needs {library}. Install it with: pip install {install}.",
    "fit_again": "fit must be called once. This model is already trained, and another fit would start from parameters that "
    "depend on the records. Describe a longer run, and start again with a new model.",
    "epsilon_without_delta": "epsilon and delta must be given together, or neither.",
    "checkpoint_needs_new_loader": "checkpoint= needs a new li.torch.loader(dataset, run) and no seed.",
    "steps_not_taken": "finish needs all {steps} steps of the run. Got {taken}. Take all steps or, if you decided to stop "
    "here without looking at the data, call finish(stopped=True).",
    "no_step_taken": "no step was taken, so there is nothing to release.",
    "step_failed": "a step has failed, so this training no longer matches the run. Start again with the initial parameters, "
    "a new optimiser and a new loader.",
    "training_finished": "this training is finished, and its model may have been released. To show one on the way, use "
    "release().",
    "all_steps_taken": "all {steps} steps of the run were taken. Describe a run with more steps.",
}

_PROCESSES: dict[str, Message] = {
    "process_lost": "another process of this training ended or cannot be reached: {reason}. Restart all processes; with "
    "checkpoint=, training continues from the file.",
    "rank_stopped": "rank {rank} of {processes} stopped: {reason}",
    "ranks_differ": "all processes must train with the same {name}. Rank {rank} of {processes} differs from rank 0.",
    "processes_not_initialised": "torch.distributed must be initialised. Call torch.distributed.init_process_group first.",
    "loop_in_several_processes": "clip_and_noise must run in one process. Got {processes} processes of torch.distributed, "
    "each of which would train its own model; use li.torch.PrivateTrainer, which trains one model in all of them.",
}

_TRAINERS: dict[str, Message] = {
    "trainer_steps_differ": "the trainer must take the run's {steps} steps. Got {planned:g}. Set max_steps={steps}, or "
    "change the run.",
    "trainer_goes_on": "the trainer must stop after {steps} steps, but is about to take another. Remove min_steps and "
    "min_epochs, and use a new RecordReleases for a new training.",
    "trainer_batches_differ": _trainer_batches_differ,
    "sampler_batches_differ": "the run has {batches}, the loader {drawn}. Use the same run for both.",
    "loader_rate_differs": "the loader draws every record with probability {rate:.9g}, but the run has {batches}. Use "
    "li.Poisson(records, rate) in the run.",
    "poisson_batches_accumulated": "{accumulated} Poisson batches together are not a Poisson batch. Do not accumulate; draw "
    "larger batches.",
    "records_used_twice": "{devices} devices would use some of {records} records twice. Use a number of records that is "
    "divisible by the number of devices.",
    "dropped_records_differ": "the loader drops {dropped} records in each epoch, but the run drops {planned}. Use "
    'drop_last=True with last="drop", or neither.',
    "schedule_looks_at_results": "{schedule} adapts the learning rate to results, but a run needs step sizes fixed in "
    "advance. Use a schedule that depends on the step only, and describe it in the run.",
    "records_sorted_by_length": "train_sampling_strategy={strategy!r} sorts records by length, but batches must not depend "
    "on the records. Remove it.",
    "batch_size_searched": "auto_find_batch_size changes the batches of the run. Set it to False.",
    "callback_looks_at_records": "{got} chooses settings by looking at the records. Remove it, and set them yourself.",
    "empty_batch_skipped": "an empty batch must take a step, but the trainer skips the step if the batch is None. Let "
    "collate_fn return empty tensors.",
    "checkpoint_without_step": "a checkpoint must hold the number of steps after which it was saved. Got weights only. "
    "Evaluate the current parameters, or save the whole state.",
    "secret_checkpoints_published": "push_to_hub publishes checkpoints, but inside= declares them secret. Set "
    "push_to_hub=False, or remove them from inside=.",
}

_RELEASES: dict[str, Message] = {
    "steps_not_recorded": "the first {steps} steps were not recorded. Pass their record as releases=, or start again at "
    "step 0.",
    "no_step_recorded": "no step was recorded: there is nothing to account for.",
    "recording_used": "this RecordReleases already holds a training of {steps} steps. Use a new one for each training.",
    "release_not_in_budget": "releasing {what} after {step} steps is not in the budget. List the step in "
    "StopAtBudget(releases=[...]), or name it in inside=.",
    "chosen_by_records": _chosen_by_records,
    "leak_recorded": "{what} is treated as computed from records without noise: the report will say DO NOT RELEASE. Name it "
    "in public= if it depends on parameters and public data only, or in inside= if nobody sees it.",
    "rng_state_saved": "rng_state.pth in {file} (without it: save_only_model=True)",
    "steps_taken_again": "what came of steps that were taken again",
}

# What a loop of the user's own has to be, as its documents list it.
_LOOP: dict[str, Message] = {
    "loop_end": "no step after `finish`, and none beyond the run",
    "loop_learning_rate": "the step size of the run at this step",
    "loop_order": "from the library's generator, or from PyTorch's, seeded by the operating system and not again",
    "loop_loader": "each step uses the next batch of the loader, and none is left out or used twice",
    "loop_parameters": "changed by `step()` alone",
    "loop_batch": "as many records as were drawn for the step",
    "loop_model": "computes for each record a loss that does not depend on the others",
    "loop_collate_fn": "what it makes of a record does not depend on the rest of the batch",
}

MESSAGES: dict[str, Message] = {
    **_MODELS,
    **_GRADIENTS,
    **_RECORDS,
    **_LOADERS,
    **_OPTIMISERS,
    **_TRAININGS,
    **_PROCESSES,
    **_TRAINERS,
    **_RELEASES,
    **_LOOP,
}
