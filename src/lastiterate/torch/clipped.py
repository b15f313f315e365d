"""Clipped sums of gradients: each record's gradient as it was computed, cut to the clip, added up in double precision.

A `LayerPart` is what is known of the gradients of one layer, or of all of them: for each record a bound on the square of its
norm, and how to add the gradients, each times a factor, to a total. No gradient has to be formed for that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from lastiterate.errors import InvalidInput
from lastiterate.runs.noise import PLACES_AT_ONCE, WIDEST

_UNIT = 2.0**-52
_LOST = 2.0**-1022  # what a square that is too small to be held is less than
_ROWS_AT_ONCE = 32  # so few that their doubles stay in the cache
_RECORDS_AT_ONCE = 64  # the same where no gradient is formed


class NotFinite(InvalidInput):
    """Error for gradients of a record that are not finite."""


class LayerPart(ABC):
    """Gradients of some records in some parameters of a layer."""

    @property
    @abstractmethod
    def squares(self) -> Any:
        """A bound on the square of each record's norm, in double precision."""

    @property
    def terms(self) -> Any | None:
        """Sum of the lengths of each gradient's terms, where it is a sum of several that may cancel; otherwise None."""
        return None

    @abstractmethod
    def add(self, factors: Any) -> None:
        """Add the gradients, times these factors, to the totals."""


@dataclass(frozen=True, eq=False)
class Rows(LayerPart):
    """Gradients that were formed, one row for each record. A few at a time become doubles."""

    rows: Any
    total: Any

    @property
    def squares(self) -> Any:
        flat = self.rows.flatten(1)
        found = [torch.linalg.vector_norm(part.double(), dim=1) for part in flat.split(_ROWS_AT_ONCE)]
        return torch.cat(found).square() * (1 + flat.shape[1] * _UNIT)

    def add(self, factors: Any) -> None:
        """Add the rows times their factors to the total, all at once."""
        flat = self.rows.flatten(1)
        found = torch.zeros(flat.shape[1], dtype=torch.float64, device=flat.device)
        for some, part in zip(factors.split(_ROWS_AT_ONCE), flat.split(_ROWS_AT_ONCE), strict=True):
            found.addmv_(part.double().T, some)
        self.total.add_(found.view_as(self.total))


@dataclass(frozen=True, eq=False)
class Products(LayerPart):
    """Gradients of a linear layer used once per record: backprop ⊗ activation, and the backprop for its bias.

    A few records at a time become doubles.
    """

    backprops: Any
    activations: Any
    weight: Any | None
    bias: Any | None

    @property
    def squares(self) -> Any:
        lengths = _squares_in_doubles(self.activations) * (self.weight is not None) + (self.bias is not None)
        width = self.backprops.shape[1] + self.activations.shape[1] + 8
        return _squares_in_doubles(self.backprops) * lengths * (1 + width * _UNIT)

    def add(self, factors: Any) -> None:
        parts = (one.split(_RECORDS_AT_ONCE) for one in (factors, self.backprops, self.activations))
        for some, backprops, activations in zip(*parts, strict=True):
            scaled = backprops.double() * some[:, None]
            if self.weight is not None:
                self.weight.addmm_(scaled.T, activations.double())
            if self.bias is not None:
                self.bias.add_(scaled.sum(0))


@dataclass(frozen=True, eq=False)
class Sequences(LayerPart):
    """Sums over places of backprop ⊗ activation, whose norms come from products of places with places.

    What cancels in such a sum leaves its rounding; the bound has room for it.
    """

    backprops: Any
    activations: Any
    weight: Any
    bias: Any | None

    @property
    def squares(self) -> Any:
        found = (self._products * self._alike).sum((1, 2))
        if self.bias is not None:
            found = found + self.backprops.sum(1).square().sum(1)
        places = self.backprops.shape[1]
        doubt = (places * places + sum(self.backprops.shape[2:]) + self._width) * _UNIT
        return found.clamp(min=0) + 4 * doubt * self.terms.square()

    @property
    def terms(self) -> Any:
        lengths = self._lengths + (self.bias is not None)
        return (_squares(self.backprops).sqrt() * lengths).sum(1)

    @property
    def _lengths(self) -> Any:
        return _squares(self.activations).sqrt()

    @cached_property
    def _products(self) -> Any:
        return self.backprops @ self.backprops.transpose(1, 2)

    @cached_property
    def _alike(self) -> Any:
        return self.activations @ self.activations.transpose(1, 2)

    @property
    def _width(self) -> int:
        return int(self.activations.shape[-1])

    def add(self, factors: Any) -> None:
        scaled = (self.backprops * factors[:, None, None]).flatten(0, 1)
        activations = self.activations.flatten(0, 1)
        for part, seen in zip(scaled.split(PLACES_AT_ONCE), activations.split(PLACES_AT_ONCE), strict=True):
            self._add(part, seen)

    def _add(self, scaled: Any, activations: Any) -> None:
        self.weight.addmm_(scaled.T, activations)
        if self.bias is not None:
            self.bias.add_(scaled.sum(0))


@dataclass(frozen=True, eq=False)
class Looked(Sequences):
    """Gradients of a table of which each place reads one row; places that read the same row add up."""

    @cached_property
    def _alike(self) -> Any:
        return (self.activations[:, :, None] == self.activations[:, None, :]).double()

    @property
    def _lengths(self) -> Any:
        return torch.ones_like(self.activations, dtype=torch.float64)

    @property
    def _width(self) -> int:
        return 1

    def _add(self, scaled: Any, activations: Any) -> None:
        """Add places of the same row together first, so that the total sees one addition for each row."""
        if scaled.is_meta:
            self.weight.index_add_(0, activations, scaled)
            return
        rows, place = activations.unique(return_inverse=True)
        sums = torch.zeros(len(rows), scaled.shape[1], dtype=scaled.dtype, device=scaled.device)
        self.weight.index_add_(0, rows, sums.index_add_(0, place, scaled))


def _squares(vectors: Any) -> Any:
    """Squared lengths of the vectors, with room for numbers that are too small to have squares."""
    return vectors.square().sum(-1) + vectors.shape[-1] * _LOST


def _squares_in_doubles(vectors: Any) -> Any:
    return torch.cat([_squares(part.double()) for part in vectors.split(_RECORDS_AT_ONCE)])


def add_clipped(parts: list[LayerPart], most: float) -> None:
    """Add every record's gradient over all parts, clipped to the norm `most`, to the totals."""
    norms = torch.stack([part.squares for part in parts]).sum(0).sqrt() * (1 + (len(parts) + 8) * _UNIT)
    if not norms.is_meta and not bool(norms.isfinite().all()):
        raise NotFinite("record_gradients_not_finite")
    factors = torch.ones_like(norms)
    if math.isfinite(most):
        factors = most / norms.clamp(min=most)
        for terms in (part.terms for part in parts):
            if terms is not None:
                factors = torch.minimum(factors, most * WIDEST / terms.clamp(min=most))
    for part in parts:
        part.add(factors)
