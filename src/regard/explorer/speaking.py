"""A typed sentence as one row, and the words that a model says to it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.thing import LiveThing
from regard.instruments.interventions._steering import Sentence
from regard.models.decoding import greedy
from regard.models.seq2seq import Seq2Seq
from regard.tasks.batch import Batch

Alive = Callable[[], None]  # raises where nobody waits for the answer any more


def read_batch(live: LiveThing, question: ask.Question) -> Batch:
    """The sentence as one row."""
    if question.feed == "target" and not (question.target or "").strip():
        raise RegardError("There is no target sentence to feed. Type one, or feed own words.")
    batch = live.read(question.source, question.target if question.feed == "target" else None)
    for side, words in (("source", batch.source), ("target", batch.target)):
        if words.shape[1] > ask.LONGEST:
            raise RegardError(f"The {side} has {words.shape[1]} words; {ask.LONGEST} is the most.")
    return batch


def choose_words(
    live: LiveThing,
    model: Seq2Seq,
    batch: Batch,
    question: ask.Question,
    sentence: Sentence,
    alive: Alive,
) -> tuple[Batch, bool]:
    """The batch with what the model says, forced words included, as its target; did it end?"""
    if question.feed == "target":
        return batch, True

    def feeding(fed: Tensor) -> None:
        alive()
        sentence.feed(fed)

    limit, ends = live.limit(batch.source.shape[1])
    limit = min(ask.LONGEST, max(limit, 1 + max(question.forced, default=0)))
    forced = torch.full((1, limit), -1)
    if live.forced_first is not None:
        forced[0, 0] = live.forced_first
    for step, word in question.forced.items():
        if step < limit:
            forced[0, step] = live.number(word)
    sentence.begin()
    memory = model.encode(batch.source, batch.source_lengths)
    words = greedy(model, memory, limit, live.end if ends else None, forced, feeding, live.start)
    length = torch.tensor([words.shape[1]])
    ended = not ends or int(words[0, -1]) == live.end
    fed = torch.cat([torch.full_like(words[:, :1], live.start), words[:, :-1]], dim=1)
    return Batch(batch.source, batch.source_lengths, words, length, fed=fed), ended
