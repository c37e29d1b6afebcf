"""Translation, word by word, from any file of sentence pairs (aitken2021, section 3.4)."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from regard.errors import RegardError
from regard.tasks.batch import Batch, collate
from regard.tasks.corpus import CorpusTask, parted
from regard.tasks.parallel_text import Faults, Pair, columns, lines, read_pairs
from regard.tasks.parallel_words import frequent, numbered, words
from regard.tasks.task import TaskConfig, tasks

SHIPPED = "english-french.tsv"
REPEATED = "repeated pairs"
SETTINGS = "task.source and task.target"
MEND = "Mend the lines, or set task.bad_lines=skip to leave them out."

Sentence = tuple[str, ...]


@tasks.register("parallel")
class Parallel(CorpusTask):
    """Sentences of one language to those of another, from your files or a small shipped corpus.

    "validation" and "test" are `held_out` pairs each, taken out by a fixed shuffle. Every pair of
    sentences occurs once, so none of theirs is in training. Vocabularies are of the training pairs.
    `skipped` counts what was left out, by reason.
    """

    class Config(TaskConfig):
        """Where the sentences are, and which of them are taken."""

        source: str | None = Field(
            None,
            description="file of sentences, plain or gzipped; with no target, two columns parted"
            " by a tab; none: the shipped English-French corpus",
        )
        target: str | None = Field(None, description="file of their translations, line by line")
        lowercase: bool = Field(True, description="turn all letters into small ones")
        vocabulary: int = Field(30_000, ge=1, description="words per side; others become <UNK>")
        longest: int = Field(15, ge=1, description="words; longer sentences are left out")
        bad_lines: Literal["stop", "skip"] = Field(
            "stop", description="stop: tell the faults and stop; skip: leave such lines out"
        )

        @model_validator(mode="after")
        def _complete(self) -> Parallel.Config:
            if self.target is not None and self.source is None:
                raise ValueError("target is set without source: name the file of its partners too")
            return self

    config: Config
    skipped: dict[str, int]

    def __init__(self, config: Config):
        super().__init__(config)
        pairs, faults = read(config)
        kept, left_out = chosen(pairs, config)
        self.skipped = dict(faults.counts + left_out)
        if not kept:
            raise RegardError(_nothing(config, self.skipped))
        sizes = [config.held_out] * 2
        validation, test, train = (
            [kept[i] for i in part] for part in parted(len(kept), sizes, "task.held_out")
        )
        self.source_vocabulary = frequent((pair[0] for pair in train), config.vocabulary)
        self.target_vocabulary = frequent((pair[1] for pair in train), config.vocabulary)
        named = {"train": train, "validation": validation, "test": test}
        self.rows = {name: self.batch(part) for name, part in named.items()}

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """The files that were named; the shipped corpus belongs to the program."""
        assert isinstance(config, cls.Config)
        return tuple(Path(name) for name in (config.source, config.target) if name is not None)

    def batch(self, pairs: list[tuple[Sentence, Sentence]]) -> Batch:
        """Given sentences, in words, as a batch with `<EOS>` at the end of both sides."""
        return collate(
            [numbered(source, self.source_vocabulary) for source, _ in pairs],
            [numbered(target, self.target_vocabulary) for _, target in pairs],
        )


def read(config: Parallel.Config) -> tuple[list[Pair], Faults]:
    """The pairs of sentences in the files, and what is wrong with the others."""
    faults, paths = Faults(MEND), Parallel.files(config)
    if paths:
        pairs = read_pairs(paths, faults, SETTINGS)
    else:
        content = files("regard.tasks").joinpath("data", SHIPPED).read_bytes()
        pairs = columns(lines(content, SHIPPED, faults), SHIPPED, faults)
    if config.bad_lines == "stop":
        faults.stop()
    return pairs, faults


def chosen(
    pairs: list[Pair], config: Parallel.Config
) -> tuple[list[tuple[Sentence, Sentence]], Counter[str]]:
    """The pairs in words, without long ones and repeated ones, and how many these were."""
    split = [(words(s, config.lowercase), words(t, config.lowercase)) for s, t in pairs]
    short = [pair for pair in split if max(map(len, pair)) <= config.longest]
    once = list(dict.fromkeys(short))
    left_out = Counter(
        {
            f"sentences over {config.longest} words": len(split) - len(short),
            REPEATED: len(short) - len(once),
        }
    )
    return once, left_out


def _nothing(config: Parallel.Config, skipped: dict[str, int]) -> str:
    """What to say where no pair is left."""
    why = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
    return (
        f"No pair of sentences is left of {config.source or SHIPPED}"
        f" ({why or 'the file is empty'})."
        " Name another file with task.source, or raise task.longest."
    )
