"""Pairs of sentences as numbers: any words, any iterable, read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from regard.errors import RegardError
from regard.instruments.sources import Settings, Takes, open_run
from regard.recordings.storage import Array
from regard.runs import Run
from regard.tasks import EOS, PAD, SOS, Batch, CorpusTask, Task, Vocabulary

Word = str | int
Pair = tuple[Sequence[Word], Sequence[Word]]
Pairs = Iterable[Pair] | Task | Run

DRAWN = 10_000  # examples of a task that draws them anew
PIECE = 10_000  # sentence pairs read at a time
SPELLED = 64  # rows of a corpus that are padded together, one of which may be very long


class SentencePairs(Takes):
    """Pairs of sentences: as they are given, or those that a task or a run is trained on."""

    options = {"n": int}
    noun = "corpora"
    wants = "Give pairs of (source words, target words), a task, a run or its folder."

    def is_single(self, things: Any) -> bool:
        """Runs and tasks may be several; pairs are one corpus."""
        several = isinstance(things, (list, tuple)) and things
        return not several or not all(isinstance(t, (Run, Task, Path)) for t in things)

    def open(self, thing: Any, settings: Settings, options: Settings) -> Iterator[Pair]:
        """The pairs, read once."""
        if isinstance(thing, Path) or (isinstance(thing, str) and Path(thing).is_dir()):
            thing = open_run(thing)
        if not isinstance(thing, (Run, Task, str, bytes)) and not isinstance(thing, Iterable):
            raise self.refuse(thing)
        pairs: Any = thing
        return training_pairs(pairs, options.get("n"))


def training_pairs(source: Pairs, n: int | None = None) -> Iterator[Pair]:
    """Pairs of sentences (source words, target words), from a task or a run, or as they are given.

    Of a task with a fixed set of examples they are its training rows, of another the `n` examples
    that a training would begin with (10,000 by default), of a run those with the run's seed. Words
    are strings, without `<PAD>`, `<SOS>` and the end token.
    """
    if isinstance(source, Run):
        return _of_task(source.task(), n, source.config.seed)
    if isinstance(source, Task):
        return _of_task(source, n, 0)
    if isinstance(source, (str, bytes)):
        raise RegardError("A text is no pair of sentences. Give (source words, target words).")
    return islice(source, n)


def _of_task(task: Task, n: int | None, seed: int) -> Iterator[Pair]:
    if isinstance(task, CorpusTask):
        batches = task.rows["train"].pieces(SPELLED)
        yield from islice(chain.from_iterable(_words(task, batch) for batch in batches), n)
        return
    wanted = DRAWN if n is None else n
    for number, start in enumerate(range(0, wanted, PIECE)):
        yield from _words(task, task.train_batch(number, min(PIECE, wanted - start), seed))


def _words(task: Task, batch: Batch) -> Iterator[Pair]:
    yield from zip(
        _spell(batch.source, batch.source_lengths, task.source_vocabulary),
        _spell(batch.target, batch.target_lengths, task.target_vocabulary),
        strict=True,
    )


def _spell(rows: Tensor, lengths: Tensor, vocabulary: Vocabulary) -> Iterator[list[Word]]:
    special = {PAD, SOS, EOS} if vocabulary.ends else {PAD, SOS}  # else 2 is a word like any other
    for row, length in zip(rows.tolist(), lengths.tolist(), strict=True):
        yield [vocabulary.words[word] for word in row[:length] if word not in special]


def pieces(pairs: Iterable[Pair], size: int = PIECE) -> Iterator[list[Pair]]:
    """The pairs in order, some at a time."""
    stream = iter(pairs)
    while piece := list(islice(stream, size)):
        yield piece


class Numbers(dict[Word, int]):
    """A number for each word, given when the word is first seen."""

    def __init__(self, words: Iterable[Word] = ()) -> None:
        super().__init__(zip(dict.fromkeys(words), count(), strict=False))

    def __missing__(self, word: Word) -> int:
        number = self[word] = len(self)
        return number

    @property
    def words(self) -> tuple[Word, ...]:
        """The words, by number."""
        return tuple(self)


@dataclass(frozen=True)
class Sentences:
    """One side of some pairs: all words in a row, and how long each sentence is."""

    words: Array  # (word,), their numbers
    lengths: Array  # (sentence,)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[Word]], number: Callable[[Word], int]) -> Sentences:
        """By the number of each word, such as `numbers.__getitem__`."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        stream = map(number, chain.from_iterable(sentences))
        return cls(np.fromiter(stream, np.int32, int(lengths.sum())), lengths)

    def keep(self, which: Array) -> Sentences:
        """Only the sentences where `which` is True. (sentence,)"""
        return Sentences(self.words[np.repeat(which, self.lengths)], self.lengths[which])

    @property
    def starts(self) -> Array:
        """Where each sentence begins. (sentence,)"""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    @property
    def sentence(self) -> Array:
        """The sentence that each word is in. (word,)"""
        return np.asarray(np.repeat(np.arange(len(self.lengths)), self.lengths))


def sides(piece: Sequence[Pair]) -> tuple[list[Sequence[Word]], list[Sequence[Word]]]:
    """Source sentences and target sentences; a text instead of its words is refused."""
    try:
        sources, targets = [source for source, _ in piece], [target for _, target in piece]
    except (TypeError, ValueError):
        bad = next(p for p in piece if not isinstance(p, (tuple, list)) or len(p) != 2)
        raise RegardError(
            f"{str(bad)[:60]!r} is no pair of sentences: (source words, target words)."
            " Give tuples of two lists of words."
        ) from None
    for side in (sources, targets):
        if str in set(map(type, side)):
            number = next(k for k, sentence in enumerate(side) if isinstance(sentence, str))
            raise RegardError(
                f"{side[number][:60]!r} is a text where its words are needed."
                " Split it: text.split()."
            )
    return sources, targets


def cross(ours: Sentences, theirs: Sentences, starts: Array) -> tuple[Array, Array]:
    """Every word of `theirs` with every word of its sentence in `ours`.

    starts (word of theirs,): where its sentence begins in `ours`. -> the places of both, (pair,)
    """
    widths = ours.lengths[theirs.sentence]
    place = np.repeat(np.arange(len(theirs.words)), widths)
    first = np.cumsum(widths) - widths
    return np.arange(len(place)) + np.repeat(starts - first, widths), place
