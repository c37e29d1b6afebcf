"""Scores of pieces of words as scores of words."""

from __future__ import annotations

from typing import Literal

import numpy as np

from regard.errors import RegardError, unknown
from regard.instruments.scores._scores import Scores
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

Pool = Literal["sum", "max"]
BEGINS, GOES_ON = "▁", "@@"  # SentencePiece marks the start of a word, BPE that it goes on


def pool_pieces(scores: Scores, sources: Array, targets: Array, pool: Pool = "sum") -> Scores:
    """Scores of words, given the number of the word that each piece belongs to, −1 for none.

    sources (sample, source), targets (sample, target). `sum` adds up the pieces of a source word
    and takes the mean over those of a target word, so that attention still adds up to 1; `max`
    takes the highest on both sides.
    """
    if pool not in ("sum", "max"):
        raise RegardError(unknown("way to pool", pool, ("sum", "max")))
    mask = scores.mask & (targets >= 0)[:, :, None] & (sources >= 0)[:, None, :]
    sample, target, source = np.nonzero(mask)
    where = sample, targets[sample, target], sources[sample, source]
    shape = len(scores), int(targets.max(initial=-1)) + 1, int(sources.max(initial=-1)) + 1
    known = np.zeros(shape, np.bool_)
    known[where] = True
    values = np.full(shape, -np.inf if pool == "max" else 0.0)
    given = scores.values[mask]
    if pool == "max":
        np.maximum.at(values, where, given)
        return Scores(np.where(known, values, 0.0), known)
    np.add.at(values, where, given)
    return Scores(values / np.maximum(_count_pieces(targets, shape[1]), 1)[:, :, None], known)


def _count_pieces(words: Array, count: int) -> Array:
    """How many pieces each word has. (sample, position) -> (sample, word)"""
    return np.asarray((words[:, :, None] == np.arange(count)).sum(axis=1))


def number_pieces(
    words: Array, mask: Array, names: tuple[str, ...], special: frozenset[str]
) -> Array:
    """The number of the word that each piece belongs to, from 0; −1 for special ones and padding.

    Pieces are told by `▁` at the start of a word, or `@@` at the end of a piece that goes on,
    whichever the vocabulary has; with neither, every piece is a word. (sample, position)
    """
    plain = np.array([name not in special for name in names], np.bool_)
    piece = mask & plain[words]
    if any(name.startswith(BEGINS) for name in names):
        starts = np.array([name.startswith(BEGINS) for name in names], np.bool_)[words]
    else:
        goes_on = np.array([name.endswith(GOES_ON) for name in names], np.bool_)[words] & piece
        starts = np.ones(words.shape, np.bool_)
        starts[:, 1:] = ~goes_on[:, :-1]
    first = piece & (np.cumsum(piece, axis=1) == 1)
    found: Array = np.cumsum((starts | first) & piece, axis=1) - 1
    return np.where(piece, found, -1)


def pool_recorded(recording: Recording, scores: Scores, pool: Pool = "sum") -> Scores:
    """A recording's scores of pieces as scores of words, special ones left out.

    The word of a target position is the one to be said there, `targets`.
    """
    if "targets" not in recording:
        raise RegardError("This recording has no targets, so its target words are not known.")
    numbers = []
    for side, name in (("encoder", "encoder.words"), ("decoder", "targets")):
        vocabulary = recording.vocabulary(side)
        given = recording[name], recording[f"{side}.mask"]
        numbers.append(number_pieces(*given, vocabulary.words, vocabulary.special))
    return pool_pieces(scores, numbers[0], numbers[1], pool)
