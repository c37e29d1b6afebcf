"""The decomposition and its nine terms as one writes them down from the paper's equations.

In numpy, with all states in memory: the yardstick for the speed of the instruments.
Every sequence has the full length, so that there is nothing to mask.
"""

from __future__ import annotations

import numpy as np

from regard.recordings.storage import Array

PIECE = 1000  # sequences whose nine terms are in memory at a time: all would take 30 GB


def averages(states: Array, words: Array) -> tuple[Array, Array]:
    """μ_t = ⟨h_t⟩ and χ_x = ⟨h − μ⟩ where the word is x (aitken2021, eqs. 1-2).

    states (sample, time, hidden), words (sample, time) -> (time, hidden), (word, hidden)
    """
    mu = states.mean(axis=0)
    rest = states - mu
    chi = np.zeros((words.max() + 1, states.shape[2]), dtype=states.dtype)
    for word in np.unique(words):
        chi[word] = rest[words == word].mean(axis=0)
    return mu, chi


def nine_shares(
    decoder: Array, decoder_words: Array, encoder: Array, encoder_words: Array, top: int = 5
) -> Array:
    """The mean share of each of the nine terms at the top positions (aitken2021, eq. 3).

    decoder (sample, target, hidden), encoder (sample, source, hidden) -> (9,)
    """
    ours, theirs = averages(decoder, decoder_words), averages(encoder, encoder_words)
    total = np.zeros(9)
    for start in range(0, len(decoder), PIECE):
        here = slice(start, start + PIECE)
        asking = parts(decoder[here], decoder_words[here], *ours)
        answering = parts(encoder[here], encoder_words[here], *theirs)
        scores = decoder[here] @ encoder[here].transpose(0, 2, 1)  # (sample, target, source)
        best = np.argsort(scores, axis=2)[:, :, -top:]
        terms = np.stack([at(a @ b.swapaxes(-1, -2), best) for a in asking for b in answering])
        size = np.abs(terms)  # (9, sample, target, top)
        total += (size / size.sum(axis=0)).sum(axis=(1, 2, 3))
    mean: Array = total / (decoder.shape[0] * decoder.shape[1] * top)
    return mean


def parts(states: Array, words: Array, mu: Array, chi: Array) -> tuple[Array, Array, Array]:
    """μ (time, hidden), χ and Δ (sample, time, hidden)"""
    inputs = chi[words]
    return mu, inputs, states - mu - inputs


def at(term: Array, best: Array) -> Array:
    """A term where the scores are highest. (…, target, source) -> (sample, target, top)"""
    whole = np.broadcast_to(term, (len(best), *term.shape[-2:]))
    found: Array = np.take_along_axis(whole, best, axis=2)
    return found
