"""What follows from given arrays: scores, weights, and zeros where there is no word."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from regard.errors import RegardError
from regard.recordings.storage import Array

# What an additive scorer does to the sum of a query and a key, before its vector weighs it.
BENDS: dict[str, Callable[[Array], Array]] = {
    "additive": np.tanh,
    "additive-relu": lambda x: np.maximum(x, 0),
}


def scores_of(scorer: str, queries: Array, keys: Array, vector: Array | None) -> Array:
    """queries · keys, or vector · bend(queries + keys), bend = tanh or max(0, ·).

    queries (sample, …, target, features), keys (sample, …, source, features), vector (head,
    features) -> (sample, …, target, source)
    """
    if scorer == "dot":
        products: Array = queries @ np.swapaxes(keys, -1, -2)
        return products
    if scorer in BENDS and vector is not None:
        bend = BENDS[scorer]
        v = vector[0] if queries.ndim == 3 else vector[:, None, None]
        # Sample by sample: all of them at once would take a features axis beside the other four.
        pairs = zip(queries, keys, strict=True)
        sums = (q[..., :, None, :] + k[..., None, :, :] for q, k in pairs)
        return np.stack([(bend(s) * v).sum(axis=-1) for s in sums])
    raise RegardError(
        f"Scores do not follow from queries and keys with scorer='{scorer}'. Give 'scores', or"
        f" scorer='dot', or one of {', '.join(BENDS)} with its 'vector'."
    )


def weights_of(scores: Array, mask: Array) -> Array:
    """Softmax over the source, zero where the mask (sample, source) is false."""
    allowed = mask.reshape(len(mask), *[1] * (scores.ndim - 2), mask.shape[1])
    shifted = np.where(allowed, scores, -np.inf)
    top = shifted.max(axis=-1, keepdims=True, initial=np.finfo(np.float32).min)
    raised = np.exp(shifted - top)
    weights: Array = raised / np.maximum(raised.sum(axis=-1, keepdims=True), 1e-30)
    return weights


def zeroed(
    name: str, array: Array, axes: tuple[str, ...], masks: Mapping[str, Array | None]
) -> Array:
    """The array with zeros (of an alignment: -1) wherever there is no word on one of its axes."""
    if axes[0] != "sample" or array.dtype == np.bool_:
        return array
    for place, axis in enumerate(axes):
        there = masks.get(axis)
        if there is not None and not there.all():
            shape = [len(there), *(1 for _ in axes[1:])]
            shape[place] = there.shape[1]
            nothing = array.dtype.type(-1 if name == "alignment" else 0)
            array = np.where(there.reshape(shape), array, nothing)
    return array
