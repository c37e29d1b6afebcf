"""Text classification from any file of labelled texts (snell2021, sections 2.4 and A.8)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch
from regard.tasks.corpus import CorpusTask, hold_out, partition
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._labelled_text import Labelled, LayoutConfig, read_labelled
from regard.tasks.text._words import UNKNOWN, build_vocabulary, number_words, split_words
from regard.tasks.text_files import Faults
from regard.tasks.vocabulary import SPECIAL, Vocabulary

PARTS = {"train": "data", "validation": "validation", "test": "test"}  # and their settings
MOST_LABELS = 100
INTEGER = re.compile(r"[0-9]{2,}")

Text = tuple[str, tuple[str, ...]]  # label, words


@TASKS.register("classification")
class Classification(CorpusTask):
    """Texts to their labels, from your files: one word to say, and no end token on either side.

    Held-out parts are files of their own, or `held_out` texts each that a fixed shuffle takes out
    of training; then every text counts once. Labels are in the order of the alphabet, so of two
    the second is the positive one. `skipped` counts what was left out, by reason.
    """

    class Config(LayoutConfig):
        """Where the texts are, how they are laid out, and what is a word."""

        data: str | None = Field(
            None, description="file of labelled texts, plain or gzipped; or several, with commas"
        )
        validation: str | None = Field(None, description="file of texts to validate on, likewise")
        test: str | None = Field(None, description="file of texts to test on, likewise")
        most_validation: int = Field(
            4000, ge=1, description="texts taken from the validation file, by a fixed shuffle"
        )
        keep: str | None = Field(None, description="only texts of these labels, such as 1,3")
        labels: str | None = Field(
            None,
            description="new names for labels, such as 1:bad,2:bad,5:good; without colons, the"
            " label of each file",
        )
        tokens: Literal["words", "spaces"] = Field(
            "words", description="words: punctuation is split off; spaces: parted by spaces only"
        )
        lowercase: bool = Field(True, description="turn all letters into small ones")
        minimum: int = Field(3, ge=1, description="words that are rarer in training become <UNK>")
        integers: Literal["keep", "unknown"] = Field(
            "keep", description="unknown: integers of two digits or more become <UNK>"
        )
        underscores: Literal["keep", "split"] = Field(
            "keep", description="split: words are parted at _"
        )
        longest: int | None = Field(None, ge=1, description="words in a text; none: any number")
        too_long: Literal["leave-out", "cut"] = Field(
            "leave-out", description="what is done with longer texts"
        )
        bad_lines: Literal["stop", "skip"] = Field(
            "stop", description="stop: tell the faults and stop; skip: leave such lines out"
        )

        @model_validator(mode="after")
        def _check_files(self) -> Classification.Config:
            if self.data is None:
                raise ValueError("data is not set: name a file of labelled texts with task.data")
            for part, key in PARTS.items():
                count = len(self.paths(part))
                if self.names and count not in (0, len(self.names)):
                    raise ValueError(
                        f"labels names {len(self.names)} labels, one for each file, but {key} has"
                        f" {count} files; to rename labels, write old:new"
                    )
            return self

        def paths(self, part: str) -> list[Path]:
            """The files of one part: `train`, `validation` or `test`."""
            return [Path(name) for name in split_list(getattr(self, PARTS[part]))]

        def files(self) -> tuple[Path, ...]:
            """All files that were named."""
            return tuple(path for part in PARTS for path in self.paths(part))

        @property
        def names(self) -> list[str] | None:
            """The label of each file, where a file has one."""
            found = split_list(self.labels)
            return None if not found or all(":" in name for name in found) else found

        @property
        def new_names(self) -> dict[str, str]:
            """New names by old ones."""
            pairs = (name.rsplit(":", 1) for name in split_list(self.labels) if ":" in name)
            return {old.strip(): new.strip() for old, new in pairs}

    config: Config
    ends = False
    skipped: dict[str, int]

    def __init__(self, config: Config):
        super().__init__(config)
        found, skipped = read_parts(config)
        texts = {part: choose(rows, config, skipped) for part, rows in found.items()}
        parts = split(texts, config, skipped)
        self.skipped = dict(+skipped)
        self.target_vocabulary = collect_labels(parts, config)
        self.source_vocabulary = build_vocabulary(
            (text for _, text in parts["train"]), minimum=config.minimum, end=None
        )
        self.rows = {name: self.batch(part) for name, part in parts.items()}

    def batch(self, texts: list[Text]) -> Batch:
        """Given texts, in words, and their labels as a batch."""
        return PackedBatch(
            Side.of(number_words((text for _, text in texts), self.source_vocabulary)),
            Side.of(self.target_vocabulary.encode([label]) for label, _ in texts),
        )


def split_list(setting: str | None) -> list[str]:
    """The parts of a setting between its commas."""
    return [part.strip() for part in (setting or "").split(",") if part.strip()]


def read_parts(
    config: Classification.Config,
) -> tuple[dict[str, list[Labelled]], Counter[str]]:
    """The texts of each part that has files, and how many lines were left out, by reason."""
    faults, found = Faults(), {}
    for part, key in PARTS.items():
        if paths := config.paths(part):
            names: Sequence[str | None] = config.names or [None] * len(paths)
            found[part] = [
                row
                for path, name in zip(paths, names, strict=True)
                for row in read_labelled(path, config, faults, f"task.{key}", name)
            ]
    if config.bad_lines == "stop":
        faults.stop()
    return found, faults.counts


def choose(
    rows: list[Labelled], config: Classification.Config, skipped: Counter[str]
) -> list[Text]:
    """The texts of the labels that are kept, in words, none too long; counts what was skipped."""
    known = {label for label, _ in rows}
    kept = set(split_list(config.keep)) or known
    if absent := {*kept, *config.new_names} - known:
        raise RegardError(*(unknown("label", label, known) for label in sorted(absent)))
    skipped["texts of other labels"] += sum(label not in kept for label, _ in rows)
    found = []
    for label, text in rows:
        if label not in kept:
            continue
        text_words = tokenise(text, config)
        if config.longest and len(text_words) > config.longest and config.too_long == "leave-out":
            skipped[f"texts over {config.longest} words"] += 1
        elif not text_words:
            skipped["texts without words"] += 1
        else:
            found.append((config.new_names.get(label, label), text_words[: config.longest]))
    return found


def tokenise(text: str, config: Classification.Config) -> tuple[str, ...]:
    """A text in words, by the rules of the configuration (A.8, "Classification Tokenization")."""
    if config.underscores == "split":
        text = text.replace("_", " ")
    if config.tokens == "spaces":
        found = tuple((text.lower() if config.lowercase else text).split())
    else:
        found = split_words(text, config.lowercase, letters="_")
    reserved = {*SPECIAL, UNKNOWN}
    hidden = config.integers == "unknown"
    return tuple(
        UNKNOWN if word in reserved or (hidden and INTEGER.fullmatch(word)) else word
        for word in found
    )


def split(
    texts: dict[str, list[Text]], config: Classification.Config, skipped: Counter[str]
) -> dict[str, list[Text]]:
    """The texts to train on and of each split; those without a file come out of training."""
    empty = [
        f"{getattr(config, PARTS[part])}: there is no text to use in it (task.{PARTS[part]})."
        for part, rows in texts.items()
        if not rows
    ]
    if empty:
        raise RegardError(*empty)
    every, most = texts.get("validation", []), config.most_validation
    if len(every) > most:
        few, _ = partition(len(every), [most], "task.most_validation")
        texts = {**texts, "validation": [every[place] for place in few]}
    return hold_out(texts, config.held_out, skipped, "texts")


def collect_labels(parts: dict[str, list[Text]], config: Classification.Config) -> Vocabulary:
    """The labels of training in the order of the alphabet; held-out parts have no others."""
    found = sorted({label for label, _ in parts["train"]})
    if len(found) < 2:
        raise RegardError(
            f"{config.data}: there is nothing to tell apart, as the labels to train on are"
            f" {found}. Check task.label_column and task.keep, or name more files."
        )
    if len(found) > MOST_LABELS:
        raise RegardError(
            f"{config.data}: there are {len(found)} labels, such as {found[0][:40]!r}; these look"
            " like texts. Set task.label_column and task.text_column, for example 2 and 1."
        )
    strange = {
        f"The texts of task.{name} have the label {label[:40]!r}, which training has not ({found})."
        for name in Classification.splits
        for label, _ in parts[name]
        if label not in found
    }
    if strange:
        raise RegardError(*sorted(strange))
    return Vocabulary.of(found, end=None)
