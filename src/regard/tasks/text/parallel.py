"""Translation, word by word, from any file of sentence pairs (aitken2021, section 3.4)."""

from __future__ import annotations

from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.corpus import CorpusTask, hold_out
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._sentence_pairs import SHIPPED, PairsConfig, check_left, read_parts
from regard.tasks.text._words import build_vocabulary, number_words, split_words

Sentence = tuple[str, ...]


@TASKS.register("parallel")
class Parallel(CorpusTask):
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
    skipped: dict[str, int]

    def __init__(self, config: Config):
        super().__init__(config)
        found, skipped = read_parts(config)
        low, longest = config.lowercase, config.longest
        pairs = [(split_words(a, low), split_words(b, low)) for a, b in found["train"]]
        short = [(a, b) for a, b in pairs if len(a) <= longest and len(b) <= longest]
        skipped[f"sentences over {longest} words"] = len(pairs) - len(short)
        check_left(short, config.source or SHIPPED.name, skipped)
        parts = hold_out({"train": short}, config.held_out, skipped, "pairs")
        self.source_vocabulary, self.target_vocabulary = (
            build_vocabulary((pair[side] for pair in parts["train"]), config.vocabulary)
            for side in (0, 1)
        )
        self.rows = {name: self.batch(part) for name, part in parts.items()}
        self.skipped = dict(+skipped)

    def batch(self, pairs: list[tuple[Sentence, Sentence]]) -> Batch:
        """Given sentences, in words, as a batch with `<EOS>` at the end of both sides."""
        return PackedBatch(
            Side.of(number_words((source for source, _ in pairs), self.source_vocabulary)),
            Side.of(number_words((target for _, target in pairs), self.target_vocabulary)),
        )
