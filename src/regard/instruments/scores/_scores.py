"""Scores of source positions, for every target position of every sample, whoever gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.recording import Recording, as_array
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Scores:
    """A number for each source position, per target position: α, β, Δ or an alignment.

    `mask` is True where there is a position. A row is one target position of one sample; rows
    without any position count nowhere.
    """

    values: Array  # (sample, target, source), float
    mask: Array  # (sample, target, source), bool

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.shape != self.mask.shape:
            raise RegardError(
                f"Scores have the axes sample, target, source, and a mask like them; got"
                f" {self.values.shape} and {self.mask.shape}."
            )
        bad = np.isnan(self.values) & self.mask
        if bad.any():
            sample, target, source = (int(place[0]) for place in np.nonzero(bad))
            raise RegardError(
                f"The score of sample {sample}, target {target}, source {source} is not a number,"
                " so nothing can be ranked. Mask such positions, or mend what computed them."
            )

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, values: Any, mask: Any = None) -> Scores:
        """From an array (…, source), with a mask that fits it; or from a ragged list.

        (source,) is one row, (sample, source) has one target position each, and axes before the
        last two are all samples. A list of vectors or matrices goes to `ragged`.
        """
        if isinstance(values, Scores):
            return values if mask is None else cls.of(values.values, mask)
        if isinstance(values, (list, tuple)) and _uneven(values):
            if mask is not None:
                raise RegardError("Rows of different lengths need no mask: their lengths say it.")
            return cls.ragged(values)
        array = _array(values)
        shape = (1, 1, *array.shape) if array.ndim == 1 else array.shape
        shape = (shape[0], 1, shape[1]) if array.ndim == 2 else shape
        known = np.ones(array.shape, np.bool_) if mask is None else _mask(mask, array.shape)
        if array.ndim > 3:
            shape = (int(np.prod(shape[:-2])), *shape[-2:])
        return cls(array.reshape(shape), known.reshape(shape))

    @classmethod
    def ragged(cls, rows: Sequence[Any]) -> Scores:
        """From one vector (source,) or one matrix (target, source) per sample, of any sizes."""
        matrices = [np.atleast_2d(_array(row)) for row in rows]
        if any(matrix.ndim != 2 for matrix in matrices):
            raise RegardError(
                "A list of scores holds vectors (source,) or matrices (target, source)."
            )
        target, source = (max((m.shape[axis] for m in matrices), default=0) for axis in (0, 1))
        values = np.zeros((len(matrices), target, source))
        mask = np.zeros(values.shape, np.bool_)
        for sample, matrix in enumerate(matrices):
            place = sample, slice(matrix.shape[0]), slice(matrix.shape[1])
            values[place], mask[place] = matrix, True
        return cls(values, mask)

    @classmethod
    def of_attention(
        cls,
        recording: Recording,
        site: str | None = None,
        head: int | None = None,
        layer: int | None = None,
    ) -> Scores:
        """The attention weights α of a recording: one head's, or the mean over heads."""
        name = recording.site(site, layer)
        info = recording.metadata.sites[name]
        if not info.crosses:
            raise RegardError(
                f"Site '{name}' looks from {info.query_side} to {info.key_side}; scores are of"
                " source positions per target position. Name a site from decoder to encoder."
            )
        if head is not None and not 0 <= head < info.heads:
            raise RegardError(
                f"head={head} does not fit: '{name}' has heads 0 to {info.heads - 1}."
            )
        values = recording[f"{name}.weights"].astype(np.float64)
        chosen: Array = values.mean(axis=1) if head is None else values[:, head]
        return cls(chosen, pairs_of(recording))

    @classmethod
    def of_array(cls, recording: Recording, name: str) -> Scores:
        """Scores that were recorded under a name: `lexical`, `proxy`, `saliency`."""
        return cls(recording[name], pairs_of(recording))

    @property
    def lengths(self) -> Array:
        """How many positions each row has. (sample, target)"""
        return np.asarray(self.mask.sum(axis=2))

    def matching(self, mask: Array) -> Scores:
        """The same scores where `mask` is True, too. mask (sample, target, source)"""
        return Scores(self.values, self.mask & mask)

    def rows(self) -> tuple[Array, Array]:
        """The rows that have a position: scores and mask. -> (row, source) each"""
        kept = self.lengths > 0
        return self.values[kept], self.mask[kept]


def _uneven(values: Sequence[Any]) -> bool:
    """Whether the members differ in shape: rows of different lengths, not one array."""
    deep = all(isinstance(value, (list, tuple)) or np.ndim(value) for value in values)
    return deep and len({_array(value).shape for value in values}) > 1


def _array(values: Any) -> Array:
    try:
        array = np.asarray(as_array(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RegardError(f"These are no scores ({error}). Give numbers, (…, source).") from None
    if array.ndim == 0:
        raise RegardError("A single number is no score of positions. Give a vector (source,).")
    return array


def _mask(mask: Any, shape: tuple[int, ...]) -> Array:
    """A mask of just this shape, or one that broadcasts to it."""
    try:
        return np.array(np.broadcast_to(np.asarray(as_array(mask), dtype=np.bool_), shape))
    except ValueError:
        raise RegardError(
            f"A mask of shape {np.shape(mask)} does not fit scores of shape {shape}."
        ) from None


def pairs_of(recording: Recording) -> Array:
    """Where both a target and a source word are. (sample, target, source)"""
    return np.asarray(recording["decoder.mask"][:, :, None] & recording["encoder.mask"][:, None, :])
