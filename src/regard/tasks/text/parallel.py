"""Translation, word by word, from any file of sentence pairs (aitken2021, section 3.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._cut import Cutter, Pair, Units
from regard.tasks.text._draft import Draft
from regard.tasks.text._sentence_pairs import (
    SHIPPED,
    PairsConfig,
    check_left,
    find_parts,
    stream_pairs,
)
from regard.tasks.text._text_task import TextTask, number_each
from regard.tasks.text._words import build_vocabulary, known_or_not, number_words, split_words
from regard.tasks.text_files import Faults, Meter
from regard.tasks.vocabulary import Vocabulary

Sentence = tuple[str, ...]


@TASKS.register("parallel")
class Parallel(TextTask):
    """Sentences of one language to those of another, from your files or a small shipped corpus.

    "validation" and "test" are `held_out` pairs each, taken out by a fixed shuffle. Every pair of
    sentences occurs once, so none of theirs is in training. Vocabularies are of the training pairs.
    `skipped` counts what was left out, by reason.
    """

    class Config(PairsConfig):
        """Where the sentences are, and which of them are taken."""

        source: str | None = Field(
            None,
            description="file of sentences, plain or gzipped; with no target, two columns parted"
            " by a tab; none: the shipped English-French corpus",
        )
        lowercase: bool = Field(True, description="turn all letters into small ones")
        vocabulary: int = Field(30_000, ge=1, description="words per side; others become <UNK>")
        longest: int = Field(15, ge=1, description="words; longer sentences are left out")

    config: Config

    def find_parts(self) -> list[str]:
        """Training alone."""
        return find_parts(self.config)

    def find_files(self, part: str) -> list[Path]:
        """Those that were named, or the shipped one."""
        return self.config.paths(part) or [SHIPPED]

    def stream(self, part: str, faults: Faults, meter: Meter) -> Iterator[Pair]:
        """The pairs of sentences."""
        return stream_pairs(self.config, part, faults, meter)

    def cutter(self) -> Cutter:
        """Into words, unless a sentence is too long."""
        return partial(cut_pair, lowercase=self.config.lowercase, longest=self.config.longest)

    def check_parts(self, counts: Mapping[str, int], skipped: Counter[str]) -> None:
        """Refuse files of which no pair is left."""
        check_left(counts["train"], self.config.source or SHIPPED.name, skipped)

    def learn(self, draft: Draft) -> dict[str, Any]:
        """The words of both sides."""
        found = [
            build_vocabulary(draft.count_words("train", side), self.config.vocabulary)
            for side in (0, 1)
        ]
        return {"source": found[0].words, "target": found[1].words}

    def recall(self, learned: dict[str, Any]) -> None:
        """Set the vocabularies."""
        self.source_vocabulary = Vocabulary(tuple(learned["source"]))
        self.target_vocabulary = Vocabulary(tuple(learned["target"]))

    def encode(self, words: Sequence[str], side: int) -> Side:
        """The number of each word."""
        vocabulary = (self.source_vocabulary, self.target_vocabulary)[side]
        return number_each(words, known_or_not(vocabulary))

    def batch(self, pairs: list[tuple[Sentence, Sentence]]) -> Batch:
        """Given sentences, in words, as a batch with `<EOS>` at the end of both sides."""
        return PackedBatch(
            Side.of(number_words((source for source, _ in pairs), self.source_vocabulary)),
            Side.of(number_words((target for _, target in pairs), self.target_vocabulary)),
        )


def cut_pair(pair: Pair, lowercase: bool, longest: int) -> Units | str:
    """Two sentences in words, or why they are left out."""
    source, target = (split_words(text, lowercase) for text in pair)
    if len(source) > longest or len(target) > longest:
        return f"sentences over {longest} words"
    return source, target
