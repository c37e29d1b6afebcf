"""`ibm1`: IBM Model 1, words that translate each other (Brown et al. 1993; snell2021, 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from regard.display import Figure, Line, Panel, Table
from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import to_floats
from regard.instruments.scores._scores import Scores
from regard.instruments.words._lexicon import Lexicon, LexiconResult, list_words
from regard.instruments.words._meetings import Meetings, normalise_rows
from regard.instruments.words._pairs import (
    Numbers,
    Pair,
    Pairs,
    SentencePairs,
    Sentences,
    pieces,
    sides,
    training_pairs,
)
from regard.recordings.storage import Array

NULL = "<NULL>"  # the source word of target words that come from nowhere
SHOWN = 10


@dataclass(frozen=True, eq=False)
class IBM1(Lexicon):
    """Trans(o|i), sparse, and how likely it makes the corpus.

    `likelihood` has the log-likelihood of the corpus after each step.
    """

    likelihood: tuple[float, ...] = ()
    null: bool = False
    described = ("likelihood", "null")

    # By their names in the paper: Trans(o|i) (eq. 17), the likeliest o of i, and β (eq. 18).
    translation, best, beta = Lexicon.value, Lexicon.highest, Lexicon.scores

    def alpha(self, pairs: Pairs) -> Scores:
        """α: β over its sum in the sentence, the alignment probability (eq. 19).

        With a NULL word, the sum counts it, so that a row may add up to less than 1. Where nothing
        in the sentence translates to the word, all positions are alike.
        """
        given = list(training_pairs(pairs))
        beta = self.beta(given)
        total = beta.values.sum(axis=2, keepdims=True)
        if self.null:
            total = total + self._nulls(given, beta)[:, :, None]
        even = beta.mask / np.maximum(beta.lengths, 1)[:, :, None]
        values = np.divide(beta.values, total, out=even, where=total > 0)
        return Scores(values, beta.mask)

    def align(self, pairs: Pairs) -> list[list[int]]:
        """The likeliest source position, from 0, of each target word of each pair.

        −1 where nothing in the sentence translates to the word, or the NULL word does better.
        """
        given = list(training_pairs(pairs))
        beta = self.beta(given)
        values = np.where(beta.mask, beta.values, -1.0)
        if not values.shape[2]:
            return [[-1] * len(target) for _, target in given]
        place, best = values.argmax(axis=2), values.max(axis=2)
        level = self._nulls(given, beta) if self.null else np.zeros(best.shape)
        place = np.where(best > level, place, -1)
        return [row[: len(t)].tolist() for row, (_, t) in zip(place, given, strict=True)]

    def _nulls(self, given: list[Pair], like: Scores) -> Array:
        """Trans(y_t|NULL) for each target word. (sample, target)"""
        found = np.zeros(like.values.shape[:2])
        from_null = self.scores([([NULL], target) for _, target in given])
        found[:, : from_null.values.shape[1]] = from_null.values[:, :, 0]
        return found

    def values(self) -> dict[str, float]:
        """Sizes, and the last likelihood."""
        return {**super().values(), "log-likelihood": self.likelihood[-1]}


class IBM1Result(LexiconResult[IBM1]):
    """Translation tables of one corpus or of several; the first is shown."""

    ranges = {"log-likelihood": None}

    def table(self) -> Table:
        """The likeliest translations of the words that have the surest."""
        first = self.first
        sure = first.matrix.max(axis=1).toarray().ravel()
        words = [first.sources[k] for k in np.argsort(-sure, kind="stable")[:SHOWN]]
        rows = tuple((str(w), list_words(first.best(w, 3))) for w in words)
        title = f"IBM Model 1, {len(first.likelihood)} steps, surest words"
        return Table(title, ("source word", "translations"), rows)

    def figure(self) -> Figure:
        """The table of frequent words, and the log-likelihood over steps."""
        likelihood = self.first.likelihood
        steps = to_floats(range(1, len(likelihood) + 1))
        line = Line("", steps, likelihood, points=True)
        panel = Panel("Likelihood of the corpus", "step", "log-likelihood (nats)", (line,))
        return Figure(
            "ibm1",
            "Translation probabilities of frequent words by IBM Model 1, and the likelihood over"
            " steps.",
            (self.first.heat("Trans(o|i)", "Trans(o|i)"), panel),
        )


@instrument(IBM1Result, SentencePairs())
def ibm1(
    pairs: Iterable[Pair], iterations: Annotated[int, Field(ge=0)] = 5, null: bool = False
) -> IBM1:
    """Trans(o|i) by expectation maximisation from a uniform table (snell2021, section 4.2).

    `pairs` is an iterable of (source words, target words), or a task or run, as for
    `cooccurrence`. `iterations=k` is k steps, each an expectation and a maximisation. The first,
    from the uniform table, gives the count table C, divided by its row sums (eqs. 16-17), so
    `iterations=1` is what the paper calls Trans, and `iterations=0`, "no step beyond C", gives the
    same. `null=True` adds to each source sentence a word `<NULL>` for what comes from nowhere.

    >>> pairs = [(["das", "Haus"], ["the", "house"]), (["das"], ["the"])]
    >>> regard.ibm1(pairs).best("Haus", 1)[0][0]
    'house'
    """
    names = Numbers([NULL] if null else []), Numbers()
    meetings = Meetings(number_words(pairs, names, null))
    translation, likelihoods = np.ones(len(meetings.columns)), []
    for _ in range(max(1, iterations)):
        counts, before = meetings.expect(translation).result()
        likelihoods.append(before)
        normalise_rows(counts, meetings.indptr)
        translation = counts
    likelihoods = [*likelihoods[1:], meetings.expect(translation).likelihood]
    shape = len(names[0]), len(names[1])
    ends = np.full(shape[0] + 1 - len(meetings.indptr), meetings.indptr[-1])  # words without pairs
    indptr = np.concatenate([meetings.indptr, ends])
    matrix = csr_array((translation, meetings.columns, indptr), shape=shape)
    return IBM1(matrix, names[0].words, names[1].words, tuple(likelihoods), null)


def number_words(
    pairs: Iterable[Pair], names: tuple[Numbers, Numbers], null: bool
) -> Iterator[tuple[Sentences, Sentences]]:
    """Both sides in numbers, piece by piece; pairs with an empty side teach nothing."""
    empty = True
    for piece in pieces(pairs):
        sources, targets = sides(piece)
        given = [[NULL, *s] if len(s) else s for s in sources] if null else sources
        ours = Sentences.of(given, names[0].__getitem__)
        theirs = Sentences.of(targets, names[1].__getitem__)
        both = (ours.lengths > 0) & (theirs.lengths > 0)
        if both.any():
            yield ours.keep(both), theirs.keep(both)
            empty = False
    if empty:
        raise RegardError(
            "There is no pair with words on both sides, so there is nothing to learn."
        )
