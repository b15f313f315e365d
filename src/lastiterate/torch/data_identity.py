"""What tells the records of a training from others, for the file that it is resumed from, and for nobody else.

By a key that lies in the same secret file: without the file nothing can be compared with it.
"""

from __future__ import annotations

import hmac
import random
from typing import Any

import torch
from torch.utils.data import TensorDataset

from lastiterate.training.fingerprint import array_fingerprint, fingerprint

_RECORDS = 64  # are compared where reading all would take as long as an epoch


def data_identity(dataset: Any, key: str) -> str:
    """Of all tensors of a TensorDataset; else of some records, chosen by the key, as far as they are twice the same.

    A data set may say itself what tells it from others, by a method `checkpoint_identity`.
    """
    told: Any
    if callable(describe := getattr(dataset, "checkpoint_identity", None)):
        told = fingerprint(describe())
    elif isinstance(dataset, TensorDataset):
        told = [_tensor_identity(one) for one in dataset.tensors]
    else:
        places = random.Random(key).sample(range(len(dataset)), min(len(dataset), _RECORDS))
        with torch.random.fork_rng(devices=[]):
            told = [_record_identity(dataset, place) for place in places]
    return hmac.new(bytes.fromhex(key), repr(told).encode(), "sha256").hexdigest()


def _tensor_identity(tensor: Any) -> list[Any]:
    held = tensor.detach().cpu().contiguous()
    whole = held.view(torch.uint8) if held.dim() else held.reshape(1).view(torch.uint8)
    return [str(tensor.dtype), list(tensor.shape), array_fingerprint(whole.numpy())]


def _record_identity(dataset: Any, place: int) -> str | None:
    """Nothing where chance changes a record whenever it is read."""
    first, again = fingerprint(dataset[place]), fingerprint(dataset[place])
    return first if first == again else None
