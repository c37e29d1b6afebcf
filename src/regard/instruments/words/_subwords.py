"""Scores of pieces of words as scores of words."""

from __future__ import annotations

from typing import Literal

import numpy as np

from regard.errors import RegardError, unknown
from regard.instruments.scores._scores import Scores
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.subjects.lexicon import USUAL, find_marker
from regard.subjects.lexicon import number_pieces as number_marked

Pool = Literal["sum", "max"]


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
    words: Array, mask: Array, names: tuple[str, ...], special: frozenset[str], marker: str = ""
) -> Array:
    """The number of the word that each piece belongs to, from 0; −1 for special ones and padding.

    Pieces are told by a `marker`, or by the one that the vocabulary has (`▁`, `Ġ`, `##`, `@@`,
    `</w>`); with none, every piece is a word. (sample, position)
    """
    plain = np.array([name not in special and name not in USUAL for name in names], np.bool_)
    return number_marked(words, mask & plain[words], names, marker or find_marker(names))


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
        marker = recording.metadata.conventions.get(side, {}).get("pieces", "")
        numbers.append(number_pieces(*given, vocabulary.words, vocabulary.special, marker))
    return pool_pieces(scores, numbers[0], numbers[1], pool)
