"""Heads: all of them small, one in full, and how far one is from itself elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import Look, spell
from regard.explorer.speaking import Alive
from regard.explorer.views import Arrays, Views
from regard.recordings.storage import Array

THUMB = 40  # cells of a thumbnail's longer side


def show_thumbnails(
    views: Views, question: ask.Question, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """Every head of every attention, small: the largest weight in each tile, 0 to 255."""
    found = views.look(question, alive)
    arrays = {}
    for name in found.sites:
        small = pool(found.arrays[f"{name}.weights"], THUMB)
        arrays[name] = np.round(np.clip(small, 0, 1) * 255).astype(np.uint8)
    return {}, arrays


def show_head(
    views: Views, question: ask.HeadQuestion, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """One head in full: weights and scores, (target, source) each."""
    found = views.look(question, alive)
    check_head(found, question)
    arrays = {
        what: np.ascontiguousarray(found.arrays[name][question.head], dtype=np.float32)
        for what in ("weights", "scores")
        if (name := f"{question.site}.{what}") in found.arrays
    }
    return {}, arrays


def show_difference(
    views: Views, question: ask.HeadQuestion, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """One head's weights under the changes minus those without them, (target, source).

    Outputs of another length have other rows: then there is nothing to subtract.
    """
    now = show_head(views, question, alive)[1]
    before = show_head(views, question.model_copy(update={"changes": ()}), alive)[1]["weights"]
    if now["weights"].shape != before.shape:
        return {"same": False}, now
    moved = now["weights"] - before
    return {"same": True}, {**now, "before": before, "difference": moved}


def measure_apart(views: Views, question: ask.ApartQuestion, alive: Alive) -> dict[str, Any]:
    """How many words two answers share, and how much weight moved: half the sum of |α − α'|."""
    looks = [views.look(one, alive) for one in (question.first, question.second)]
    words = [
        spell(views.things[one.thing].vocabularies[1].words, found.said)
        for one, found in zip((question.first, question.second), looks, strict=True)
    ]
    found: dict[str, Any] = {
        "same": sum(a == b for a, b in zip(*words, strict=False)), "words": max(map(len, words)),
    }  # fmt: skip
    if question.first.site in looks[0].sites and question.second.site in looks[1].sites:
        first, second = (
            show_head(views, one, alive)[1]["weights"] for one in (question.first, question.second)
        )
        if first.shape == second.shape:
            found["moved"] = float(np.abs(first - second).sum() / 2 / len(first))
    return found


def pool(weights: Array, most: int) -> Array:
    """The largest weight in each tile of heads (head, target, source), so that lines stay seen."""
    for axis in (1, 2):
        size = weights.shape[axis]
        if size > most:
            edges = np.linspace(0, size, most, endpoint=False).astype(int)
            weights = np.maximum.reduceat(weights, edges, axis=axis)
    return weights


def check_head(found: Look, question: ask.HeadQuestion) -> None:
    """Refuse a head that is not there."""
    if question.site not in found.sites:
        known = ", ".join(found.sites) or "none"
        raise RegardError(f"There is no attention '{question.site}'. Known: {known}.")
    heads = found.sites[question.site].heads
    if question.head >= heads:
        raise RegardError(f"'{question.site}' has the heads 0 to {heads - 1}.")
