"""Translation in pieces of words that both languages share (snell2021, sections 2.1 and A.8)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch, collate
from regard.tasks.corpus import CorpusTask, parted
from regard.tasks.parallel_text import Faults, Pair, read_pairs
from regard.tasks.pieces import Pieces, pieces_of
from regard.tasks.task import TaskConfig, tasks
from regard.tasks.vocabulary import EOS, SOS

PARTS = {"train": "", "validation": "validation_", "test": "test_"}  # and how their settings begin
MEND = "Mend the lines, or set task.bad_lines=skip to leave them out."
REPEATED = "repeated pairs"
JOINT = re.compile(r"@@( |$)")


@tasks.register("translation")
class Translation(CorpusTask):
    """Sentences of one language to those of another, from your files, in pieces of words.

    The pieces are found in the training text of both sides together, and both sides have one
    vocabulary. Sources are `<SOS> … <EOS>`, targets end in `<EOS>`. Held-out parts are files of
    their own, or `held_out` pairs each that a fixed shuffle takes out of training; then every
    pair counts once. `skipped` counts what was left out, by reason.
    """

    class Config(TaskConfig):
        """Where the sentences are, and how they become pieces."""

        source: str | None = Field(
            None,
            description="file of sentences, plain or gzipped; with no target, two columns parted"
            " by a tab",
        )
        target: str | None = Field(None, description="file of their translations, line by line")
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
        bad_lines: Literal["stop", "skip"] = Field(
            "stop", description="stop: tell the faults and stop; skip: leave such lines out"
        )

        @model_validator(mode="after")
        def _complete(self) -> Translation.Config:
            if self.source is None:
                raise ValueError("source is not set: name a file of sentences with task.source")
            for start in PARTS.values():
                source, target = getattr(self, f"{start}source"), getattr(self, f"{start}target")
                if target is not None and source is None:
                    raise ValueError(f"{start}target is set without {start}source: name both")
            return self

        def paths(self, part: str) -> list[Path]:
            """The files of one part: `train`, `validation` or `test`."""
            sides = (getattr(self, f"{PARTS[part]}{side}") for side in ("source", "target"))
            return [Path(name) for name in sides if name is not None]

    config: Config
    starts = True
    skipped: dict[str, int]
    pieces: Pieces

    def __init__(self, config: Config):
        super().__init__(config)
        found, faults = read(config)
        skipped = Counter(faults.counts)
        parts = split(found, config, skipped)
        self.pieces = pieces_of([text for pair in parts["train"] for text in pair], config.pieces)
        self.source_vocabulary = self.target_vocabulary = self.pieces.vocabulary
        self.rows = {name: self.batch(pairs) for name, pairs in parts.items()}
        self.rows["train"] = self._short(self.rows["train"], skipped)
        self.skipped = {reason: count for reason, count in skipped.items() if count}
        self._references = {name: [target for _, target in parts[name]] for name in self.splits}

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """All files that were named."""
        assert isinstance(config, cls.Config)
        return tuple(path for part in PARTS for path in config.paths(part))

    def batch(self, pairs: list[Pair]) -> Batch:
        """Given sentences as a batch."""
        sources, targets = (self.pieces.encode([pair[side] for pair in pairs]) for side in (0, 1))
        return collate(
            [[SOS, *numbers, EOS] for numbers in sources], [[*numbers, EOS] for numbers in targets]
        )

    def texts(self, numbers: Tensor) -> list[str]:
        """Rows of target words as plain text. (batch, any width) -> one text per row"""
        return self.pieces.decode(numbers.tolist())

    def references(self, name: str) -> list[str]:
        """The translations of a split as they stand in the file, row by row."""
        if name not in self.splits:
            raise RegardError(unknown("split", name, self.splits))
        return list(self._references[name])

    def _short(self, batch: Batch, skipped: Counter[str]) -> Batch:
        """The rows whose sides both have at most `longest` pieces."""
        longest = self.config.longest
        if longest is None:
            return batch
        fits = (batch.source_lengths - 2 <= longest) & (batch.target_lengths - 1 <= longest)
        skipped[f"sentences over {longest} pieces"] += int((~fits).sum())
        if not fits.any():
            raise RegardError(
                f"No pair of sentences is left of {self.config.source}: all have more than"
                f" {longest} pieces. Raise task.longest."
            )
        return batch[fits]


def read(config: Translation.Config) -> tuple[dict[str, list[Pair]], Faults]:
    """The pairs of each part that has files, and what is wrong with the others."""
    faults, found = Faults(MEND), {}
    for part, start in PARTS.items():
        if paths := config.paths(part):
            named_by = f"task.{start}source and task.{start}target"
            pairs = read_pairs(paths, faults, named_by)
            found[part] = [(plain(a, config), plain(b, config)) for a, b in pairs]
            if config.backwards:
                found[part] = [(b, a) for a, b in found[part]]
    if config.bad_lines == "stop":
        faults.stop()
    for part, pairs in found.items():
        if not pairs:
            raise RegardError(f"There is no pair of sentences in {config.paths(part)[0]}.")
    return found, faults


def plain(text: str, config: Translation.Config) -> str:
    """A sentence as the pieces are to be found in it."""
    text = text.strip()
    if config.bpe == "undo":
        text = JOINT.sub("", text)
    return text.lower() if config.lowercase else text


def split(
    found: dict[str, list[Pair]], config: Translation.Config, skipped: Counter[str]
) -> dict[str, list[Pair]]:
    """The pairs to train on and of each split; those without a file come out of training."""
    missing = [part for part in Translation.splits if part not in found]
    if not missing:
        if config.held_out != TaskConfig().held_out:
            raise RegardError(
                f"task.held_out={config.held_out} has no effect, as there are files to validate"
                " and test on. Leave it out."
            )
        return found
    once = list(dict.fromkeys(found["train"]))
    skipped[REPEATED] += len(found["train"]) - len(once)
    sizes = [config.held_out] * len(missing)
    *out, train = ([once[i] for i in part] for part in parted(len(once), sizes, "task.held_out"))
    return {**found, "train": train, **dict(zip(missing, out, strict=True))}
