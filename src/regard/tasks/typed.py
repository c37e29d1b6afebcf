"""Sentences that a person types, as a task's model reads them."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import RegardError
from regard.tasks.batch import Batch, collate, reverse_sources
from regard.tasks.task import Task
from regard.tasks.vocabulary import EOS, SOS, Vocabulary

UNKNOWN = "<UNK>"


def read_typed(task: Task, source: str, target: str | None = None) -> Batch:
    """One typed sentence, and its translation where given, as a batch of one row.

    Texts are split at spaces, or into the task's own pieces; words that are not known become
    `<UNK>` where the vocabulary has it, and are refused by name where not.
    """
    start, end = [SOS] * task.starts, [EOS] * task.source_vocabulary.ends
    words = number_typed(task, source, task.source_vocabulary)
    if not words:
        raise RegardError("There is no word in the source sentence. Type one or more.")
    said = [] if target is None else number_typed(task, target, task.target_vocabulary)
    stop = [EOS] * (task.ends and task.target_vocabulary.ends and target is not None)
    batch = collate([[*start, *words, *end]], [[*said, *stop]])
    if task.config.reverse_source:
        return reverse_sources(batch, task.starts, task.source_vocabulary.ends)
    return batch


def number_typed(task: Task, text: str, vocabulary: Vocabulary) -> list[int]:
    """The numbers of the words in a text, without special ones around them."""
    pieces = getattr(task, "pieces", None)
    if pieces is not None:
        found: Sequence[int] = pieces.encode([text])[0]
        return list(found)
    words = (text.lower() if getattr(task.config, "lowercase", False) else text).split()
    if UNKNOWN in vocabulary.numbers:
        words = [word if word in vocabulary.numbers else UNKNOWN for word in words]
    return vocabulary.encode(words)
