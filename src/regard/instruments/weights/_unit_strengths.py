"""How strongly the units of a recurrent cell are connected: numbers from its weights alone."""

from __future__ import annotations

from typing import Literal

import numpy as np

from regard.recordings.storage import Array

Way = Literal["in", "out", "both"]
Norm = Literal["mean", "l2"]


def unit_strengths(
    weight_ih: Array, weight_hh: Array, by: Way = "both", norm: Norm = "mean"
) -> Array:
    """The mean size |w| (or with `l2` the root mean square) of each unit's weights. (unit,)

    weight_ih (blocks·unit, inputs) and weight_hh (blocks·unit, unit) are stacked block by block.
    Incoming weights (`in`) are a unit's rows of both matrices in all blocks, outgoing ones (`out`)
    its column of weight_hh; `both` is the mean of the two, so that neither counts for more.
    """
    units = weight_hh.shape[1]
    incoming = np.concatenate([weight_ih, weight_hh], axis=1).astype(np.float64)
    rows = incoming.reshape(-1, units, incoming.shape[1])  # (block, unit, inputs + unit)
    sides = {"in": _size(rows, (0, 2), norm), "out": _size(weight_hh.astype(float), (0,), norm)}
    return sides[by] if by != "both" else (sides["in"] + sides["out"]) / 2


def strongest(strengths: Array, top: float) -> Array:
    """The numbers of the `top` share of units, at least one, the strongest first."""
    count = max(1, round(top * len(strengths)))
    return np.argsort(-strengths, kind="stable")[:count]


def _size(weights: Array, axes: tuple[int, ...], norm: Norm) -> Array:
    if norm == "l2":
        return np.asarray(np.sqrt(np.square(weights).mean(axis=axes)))
    return np.asarray(np.abs(weights).mean(axis=axes))
