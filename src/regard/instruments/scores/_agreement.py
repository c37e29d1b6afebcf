"""Do two scores of the same positions agree on the best one (snell2021, section 3.1)?"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from regard.display import Table
from regard.errors import RegardError
from regard.instruments.scores._kendall import kendall
from regard.instruments.scores._scores import Scores
from regard.recordings.storage import Array

TOP = 0.05


class Agreement(float):
    """A(u, v): a number, with its yardsticks. The mean over rows of eq. 10.

    `shuffled` is Â, the same with v shuffled within each row; `kendall` the mean of Kendall's
    τ-b over the rows that have one; `rows` counts the rows; `top` is the share of positions.
    Yardsticks are computed when they are asked for.
    """

    top: float
    rows: int

    def __new__(cls, u: Array, v: Array, mask: Array, top: float = TOP, seed: int = 0) -> Agreement:
        """u, v, mask (row, source), each row with a position or more."""
        made = super().__new__(
            cls, float(agree_by_row(u, v, mask, top).mean()) if len(u) else np.nan
        )
        made._parts, made._seed = (u, v, mask), seed
        made.top, made.rows = top, len(u)
        return made

    _parts: tuple[Array, Array, Array]
    _seed: int

    def __repr__(self) -> str:
        return f"<Agreement {float(self):.3g}: {self.rows} rows, top {self.top:.0%} of positions>"

    def _repr_html_(self) -> str:
        found = {"A": float(self), "Â (shuffled)": self.shuffled, "Kendall's τ": self.kendall}
        return Table.of(f"Agreement over {self.rows} rows", found).html()

    @cached_property
    def shuffled(self) -> float:
        """Â: what positions in random order give; about `top`, more where rows are short."""
        u, v, mask = self._parts
        found = agree_by_row(u, _shuffle(v, mask, self._seed), mask, self.top)
        return float(found.mean()) if len(found) else float("nan")

    @cached_property
    def kendall(self) -> float:
        """The mean of Kendall's τ-b; NaN where every row is all ties."""
        found = kendall(*self._parts)
        finite = found[np.isfinite(found)]
        return float(finite.mean()) if len(finite) else float("nan")


def agreement(u: Any, v: Any, top: float = TOP, mask: Any = None, seed: int = 0) -> Agreement:
    """How often the best position of `u` is among the best 5 % of `v` (snell2021, eq. 10).

    For a row of L positions A(u, v) = 1 when fewer than ⌈top · L⌉ positions have v > v[argmax u],
    the first argmax where several tie; the result is the mean over rows, with Â and Kendall's τ as
    attributes. `u` and `v` are vectors (source,), arrays (…, source) with a `mask` if need be,
    lists of vectors of different lengths, or `Scores`. It is not symmetric.

    >>> a = regard.agreement([0.1, 0.7, 0.2], [0.3, 0.6, 0.1])
    >>> a == 1, a.kendall
    (True, 0.3333333333333333)
    """
    if not 0 < top <= 1:
        raise RegardError(f"top={top:g} does not fit: it is a share of the positions, 0 to 1.")
    ours, theirs = Scores.of(u, mask), Scores.of(v, mask)
    _check_same(ours, theirs)
    rows, known = ours.rows()
    if not len(rows):
        raise RegardError("There is no row with a position, so there is nothing to agree on.")
    return Agreement(rows, theirs.rows()[0], known, top, seed)


def agree_by_row(u: Array, v: Array, mask: Array, top: float) -> Array:
    """Eq. 10 for every row. (row, source) -> (row,) bool"""
    best = np.where(mask, u, -np.inf).argmax(axis=1)
    # A row of −∞ alone has its first argmax at a masked position: take the first real one.
    best = np.where(np.take_along_axis(mask, best[:, None], 1)[:, 0], best, mask.argmax(axis=1))
    level = np.take_along_axis(v, best[:, None], axis=1)
    above = ((v > level) & mask).sum(axis=1)
    # 0.07 · 100 is 7.000000000000001 in floating point: a ceiling must not see that.
    allowed = np.ceil(np.round(top * mask.sum(axis=1), 9))
    return np.asarray(above < allowed)


def contextualised(value: float, agreements: Any, performances: Any) -> tuple[float, bool]:
    """ξ: how good a model is when its attention first agrees more than `value` (eq. 11).

    `agreements` are A(α, α̂(τ)) and `performances` p̂(τ), at the same checkpoints in order:
    (checkpoint,) of one comparison run, or (run, checkpoint) of several, of which the means over
    runs are taken before anything is compared. -> ξ and True; where no checkpoint passes, the
    last performance ξ* and False (the paper's asterisk).

    >>> regard.contextualised(0.3, [0.1, 0.2, 0.4, 0.5], [10, 30, 60, 66])
    (60.0, True)
    """
    try:
        found, shown = (np.atleast_2d(np.asarray(x, float)) for x in (agreements, performances))
    except (TypeError, ValueError) as error:
        raise RegardError(
            f"Agreements and performances are numbers, as many for each run ({error})."
        ) from None
    if found.shape != shown.shape or found.ndim != 2 or not found.size:
        raise RegardError(
            "Agreements and performances are of the same runs and checkpoints, at least one of"
            f" each; got shapes {np.shape(agreements)} and {np.shape(performances)}."
        )
    passed = np.flatnonzero(found.mean(axis=0) > value)
    place = int(passed[0]) if len(passed) else -1
    return float(shown.mean(axis=0)[place]), bool(len(passed))


def _check_same(u: Scores, v: Scores) -> None:
    if u.values.shape != v.values.shape:
        raise RegardError(
            f"Scores of other positions cannot agree: shapes {u.values.shape} and"
            f" {v.values.shape} (sample, target, source) differ."
        )
    differ = np.flatnonzero((u.mask != v.mask).any(axis=(1, 2)))
    if len(differ):
        raise RegardError(
            f"Sample {differ[0]} has other positions in u than in v, so there is nothing to"
            " compare. Give both the same mask, or cut them with `Scores.matching`."
        )


def _shuffle(v: Array, mask: Array, seed: int) -> Array:
    """Each row's values in random order among its own positions."""
    keys = np.random.default_rng(seed).random(v.shape)
    places = np.argsort(~mask, axis=1, kind="stable")  # real positions first, in order
    drawn = np.argsort(np.where(mask, keys, 2.0), axis=1)  # real positions first, at random
    moved = np.empty_like(v)
    np.put_along_axis(moved, places, np.take_along_axis(v, drawn, axis=1), axis=1)
    return moved
