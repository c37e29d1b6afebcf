"""Translation in pieces of words that both languages share (snell2021, sections 2.1 and A.8)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from regard.tasks.batch import Batch
from regard.tasks.corpus import CorpusTask, hold_out
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._pieces import Pieces, find_pieces
from regard.tasks.text._sentence_pairs import Pair, PairsConfig, check_left, read_parts
from regard.tasks.vocabulary import EOS, SOS

if TYPE_CHECKING:
    from torch import Tensor

AT_ONCE = 10_000  # sentences
JOINT = re.compile(r"@@( |$)")


@TASKS.register("translation")
class Translation(CorpusTask):
    """Sentences of one language to those of another, from your files, in pieces of words.

    The pieces are found in the training text of both sides together, and both sides have one
    vocabulary. Sources are `<SOS> … <EOS>`, targets end in `<EOS>`. Held-out parts are files of
    their own, or `held_out` pairs each that a fixed shuffle takes out of training; then every
    pair counts once. `skipped` counts what was left out, by reason.
    """

    class Config(PairsConfig):
        """Where the sentences are, and how they become pieces."""

        parts: ClassVar = {"train": "", "validation": "validation_", "test": "test_"}

        validation_source: str | None = Field(None, description="sentences to validate on")
        validation_target: str | None = Field(None, description="their translations")
        test_source: str | None = Field(None, description="sentences to test on")
        test_target: str | None = Field(None, description="their translations")
        backwards: bool = Field(False, description="translate the target into the source")
        pieces: int | None = Field(
            None,
            ge=5,
            description="size of the vocabulary, special words counted; none: 8000, or as many as"
            " a small text has",
        )
        longest: int | None = Field(
            None, ge=1, description="pieces; longer sentences are not trained on; none: any number"
        )
        lowercase: bool = Field(False, description="turn all letters into small ones")
        bpe: Literal["keep", "undo"] = Field(
            "keep", description="undo: join again what byte-pair encoding has parted by `@@ `"
        )

        @model_validator(mode="after")
        def _check_source(self) -> Translation.Config:
            if self.source is None:
                raise ValueError("source is not set: name a file of sentences with task.source")
            return self

    config: Config
    starts = True
    skipped: dict[str, int]
    pieces: Pieces

    def __init__(self, config: Config):
        super().__init__(config)
        found, skipped = read_parts(config)
        for part, pairs in found.items():
            check_left(pairs, config.paths(part)[0], skipped)
            found[part] = [self._clean(pair) for pair in pairs]
        parts = hold_out(found, config.held_out, skipped, "pairs")
        self.pieces = find_pieces([text for pair in parts["train"] for text in pair], config.pieces)
        self.source_vocabulary = self.target_vocabulary = self.pieces.vocabulary
        self.rows = {name: self.batch(pairs) for name, pairs in parts.items()}
        self.rows["train"] = self._drop_long(self.rows["train"], skipped)
        self.skipped = dict(+skipped)
        self._references = {name: [target for _, target in parts[name]] for name in self.splits}

    def batch(self, pairs: list[Pair]) -> Batch:
        """Given sentences as a batch."""
        sources = self._number(source for source, _ in pairs)
        targets = self._number(target for _, target in pairs)
        return PackedBatch(
            Side.of([SOS, *numbers, EOS] for numbers in sources),
            Side.of([*numbers, EOS] for numbers in targets),
        )

    def _number(self, sentences: Iterable[str]) -> Iterator[list[int]]:
        """The pieces of each sentence; some sentences at a time, as lists of numbers are large."""
        stream = iter(sentences)
        while piece := list(islice(stream, AT_ONCE)):
            yield from self.pieces.encode(piece)

    def texts(self, numbers: Tensor) -> list[str]:
        """Rows of target words as plain text. (batch, any width) -> one text per row"""
        return self.pieces.decode(numbers.tolist())

    def references(self, name: str) -> list[str]:
        """The translations of a split as they stand in the file, row by row."""
        self._check_split(name)
        return list(self._references[name])

    def _clean(self, pair: Pair) -> Pair:
        """Two sentences as the pieces are to be found in them, in the order asked for."""
        source, target = (text.strip() for text in pair)
        if self.config.bpe == "undo":
            source, target = JOINT.sub("", source), JOINT.sub("", target)
        if self.config.lowercase:
            source, target = source.lower(), target.lower()
        return (target, source) if self.config.backwards else (source, target)

    def _drop_long(self, batch: Batch, skipped: Counter[str]) -> Batch:
        """The rows whose sides both have at most `longest` pieces."""
        longest = self.config.longest
        if longest is None:
            return batch
        mask = (batch.source_lengths - 2 <= longest) & (batch.target_lengths - 1 <= longest)
        skipped[f"sentences over {longest} pieces"] = int((~mask).sum())
        check_left(batch[mask], self.config.paths("train")[0], skipped)
        return batch[mask]
