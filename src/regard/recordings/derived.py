"""What follows from given arrays: scores, weights, and zeros where there is no word."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regard.errors import RegardError
from regard.models.layers.score_functions import ACTIVATIONS
from regard.recordings.storage import Array


def compute_scores(score: str, queries: Array, keys: Array, vector: Array | None) -> Array:
    """queries · keys, or vector · activation(queries + keys).

    queries (sample, head, target, features), keys (sample, head, source, features), vector (head,
    features) -> (sample, head, target, source)
    """
    if score == "dot":
        products: Array = queries @ np.swapaxes(keys, -1, -2)
        return products
    if score in ACTIVATIONS and vector is not None:
        v = vector[:, None, None]
        # Sample by sample: all of them at once would take a features axis beside the other four.
        pairs = zip(queries, keys, strict=True)
        sums = (q[:, :, None, :] + k[:, None, :, :] for q, k in pairs)
        return np.stack([(ACTIVATIONS[score](s) * v).sum(axis=-1) for s in sums])
    raise RegardError(
        f"Scores do not follow from queries and keys with scorer='{score}'. Give 'scores', or"
        f" scorer='dot', or one of {', '.join(ACTIVATIONS)} with its 'vector'."
    )


def compute_weights(scores: Array, mask: Array) -> Array:
    """Softmax over the source, zero where the mask (sample, source) is false."""
    shifted = np.where(mask[:, None, None, :], scores, -np.inf)
    top = shifted.max(axis=-1, keepdims=True, initial=np.finfo(np.float32).min)
    raised = np.exp(shifted - top)
    weights: Array = raised / np.maximum(raised.sum(axis=-1, keepdims=True), 1e-30)
    return weights


def clear_padding(
    name: str, array: Array, axes: tuple[str, ...], masks: Mapping[str, Array | None]
) -> Array:
    """The array with zeros (of an alignment: -1) wherever there is no word on one of its axes."""
    if axes[0] != "sample" or array.dtype == np.bool_:
        return array
    for place, axis in enumerate(axes):
        mask = masks.get(axis)
        if mask is not None and not mask.all():
            shape = [len(mask), *(1 for _ in axes[1:])]
            shape[place] = mask.shape[1]
            array = np.where(mask.reshape(shape), array, array.dtype.type(nothing_of(name)))
    return array


def nothing_of(name: str) -> int:
    """What stands in an array where there is no word."""
    return -1 if name == "alignment" else 0
