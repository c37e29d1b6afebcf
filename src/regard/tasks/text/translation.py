"""Translation in pieces of words that both languages share (snell2021, sections 2.1 and A.8)."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from regard.tasks.batch import Batch
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._cut import Cutter, Pair, Units
from regard.tasks.text._draft import Draft
from regard.tasks.text._pieces import Pieces, find_pieces, load_pieces
from regard.tasks.text._sentence_pairs import PairsConfig, check_left, find_parts, stream_pairs
from regard.tasks.text._text_task import TextTask
from regard.tasks.text_files import Faults, Meter
from regard.tasks.vocabulary import EOS, SOS

if TYPE_CHECKING:
    from torch import Tensor

AT_ONCE = 10_000  # sentences
SAMPLE = 100_000  # pairs in which pieces are looked for, by a fixed draw where there are more
JOINT = re.compile(r"@@( |$)")


@TASKS.register("translation")
class Translation(TextTask):
    """Sentences of one language to those of another, from your files, in pieces of words.

    The pieces are found in the training text of both sides together (in a sample of a large one),
    and both sides have one vocabulary. Sources are `<SOS> … <EOS>`, targets end in `<EOS>`.
    Held-out parts are files of their own, or `held_out` pairs each that a fixed shuffle takes out
    of training; then every pair counts once. `skipped` counts what was left out, by reason.
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
    pieces: Pieces

    def find_parts(self) -> list[str]:
        """Those whose files were named."""
        return find_parts(self.config)

    def stream(self, part: str, faults: Faults, meter: Meter) -> Iterator[Pair]:
        """The pairs of sentences."""
        return stream_pairs(self.config, part, faults, meter)

    def cutter(self) -> Cutter:
        """At spaces: no piece of a word reaches over one."""
        keys = ("bpe", "lowercase", "backwards")
        return partial(cut_pair, **{key: getattr(self.config, key) for key in keys})

    def check_parts(self, counts: Mapping[str, int], skipped: Counter[str]) -> None:
        """Refuse files of which no pair is left."""
        for part, count in counts.items():
            check_left(count, self.config.paths(part)[0], skipped)

    def learn(self, draft: Draft) -> dict[str, Any]:
        """The pieces of words, found in some or all of the training pairs, and references."""
        sample = draft.texts("train", SAMPLE)
        found = find_pieces(
            [" ".join(side) for pair in sample for side in pair], self.config.pieces
        )
        references = {
            name: [" ".join(target) for _, target in draft.texts(name)] for name in self.splits
        }
        return {"model": b64encode(found.proto).decode(), "references": references}

    def recall(self, learned: dict[str, Any]) -> None:
        """Set the pieces, which are the words of both sides."""
        self.pieces = load_pieces(b64decode(learned["model"]))
        self.source_vocabulary = self.target_vocabulary = self.pieces.vocabulary
        self._references: dict[str, list[str]] = learned["references"]

    def encode(self, words: Sequence[str], side: int) -> Side:
        """The pieces of each word."""
        return Side.of(self._number(words))

    def drop(self, name: str, sides: tuple[Side, Side]) -> tuple[NDArray[np.bool_], str] | None:
        """Rows to train on with a side of more than `longest` pieces."""
        longest = self.config.longest
        if longest is None or name != "train":
            return None
        sources, targets = (side.lengths for side in sides)
        away = (sources - 2 > longest) | (targets - 1 > longest)
        return away, f"sentences over {longest} pieces"

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


def cut_pair(pair: Pair, bpe: str, lowercase: bool, backwards: bool) -> Units:
    """Two sentences, cut at spaces, as pieces are to be found in them, in the order asked for."""
    source, target = (text.strip() for text in pair)
    if bpe == "undo":
        source, target = JOINT.sub("", source), JOINT.sub("", target)
    if lowercase:
        source, target = source.lower(), target.lower()
    sides = source.split(" "), target.split(" ")
    return sides[::-1] if backwards else sides
