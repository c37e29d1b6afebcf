"""How often a score of source positions finds the one that a target word comes from."""

from __future__ import annotations

import numpy as np

from regard.recordings.recording import Chunk, Recording
from regard.recordings.storage import Array

READ = ("encoder.words", "encoder.mask", "decoder.mask")


def share_lexical(recording: Recording, gold: Array | None = None) -> float:
    """Share of target words whose largest β is at a source word like the right one.

    The output network cannot tell one occurrence of a word from another, so any will do.
    """
    return _share_found(recording, "lexical", gold, alike=True)


def share_attended(recording: Recording, gold: Array | None = None) -> float:
    """Share of target words whose most attended source position is the right one."""
    return _share_found(recording, "attention.weights", gold, alike=False)


def _share_found(recording: Recording, name: str, gold: Array | None, alike: bool) -> float:
    """`gold` (sample, target), −1 where nothing is right, instead of the task's own alignment."""
    right = total = start = 0
    wanted = [name, *READ, *([] if gold is not None else ["alignment"])]
    for chunk in recording.chunks(wanted):
        scores = chunk[name][:, 0] if chunk[name].ndim == 4 else chunk[name]  # the only head
        size, steps = scores.shape[:2]
        place = chunk["alignment"] if gold is None else gold[start : start + size, :steps]
        start += size
        hits, words = count_found(scores, chunk, place, alike)
        right, total = right + hits, total + words
    return right / max(total, 1)


def count_found(scores: Array, chunk: Chunk, place: Array, alike: bool) -> tuple[int, int]:
    """Target words whose largest score is at the right position, and all that have one.

    scores (sample, target, source), place (sample, target). With `alike`, a position whose word is
    that of the right one will do.
    """
    best = np.where(chunk["encoder.mask"][:, None], scores, -np.inf).argmax(axis=2)
    mask = chunk["decoder.mask"] & (place >= 0)
    hit = best == place
    if alike:
        words = chunk["encoder.words"]
        found = np.take_along_axis(words, best, 1)
        hit = found == np.take_along_axis(words, np.maximum(place, 0), 1)
    return int(hit[mask].sum()), int(mask.sum())
