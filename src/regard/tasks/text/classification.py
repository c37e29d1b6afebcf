"""Text classification from any file of labelled texts (snell2021, sections 2.4 and A.8)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch
from regard.tasks.packed import PackedBatch, Side
from regard.tasks.task import TASKS
from regard.tasks.text._cut import Cutter, Pair, Units
from regard.tasks.text._draft import Draft
from regard.tasks.text._labelled_text import LayoutConfig, stream_labelled
from regard.tasks.text._text_task import TextTask, number_each
from regard.tasks.text._words import (
    UNKNOWN,
    build_vocabulary,
    known_or_not,
    number_words,
    split_words,
)
from regard.tasks.text_files import Faults, Meter, require_files
from regard.tasks.vocabulary import SPECIAL, Vocabulary

PARTS = {"train": "data", "validation": "validation", "test": "test"}  # and their settings
FEW_LABELS = 8  # are named in a message
MOST_LABELS = 100
MOST_SEEN = 1000  # labels that are noted; a file with more is read in a wrong way
INTEGER = re.compile(r"[0-9]{2,}")

Text = tuple[str, tuple[str, ...]]  # label, words


@TASKS.register("classification")
class Classification(TextTask):
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
    noun = "texts"

    def find_parts(self) -> list[str]:
        """Those whose files were named."""
        found = [part for part in PARTS if self.config.paths(part)]
        for part in found:
            require_files(self.config.paths(part), f"task.{PARTS[part]}")
        self._seen: dict[str, set[str]] = {part: set() for part in found}
        return found

    def stream(self, part: str, faults: Faults, meter: Meter) -> Iterator[Pair]:
        """The labels and texts; labels are noted, to be held against those that are wanted."""
        paths, seen = self.config.paths(part), self._seen[part]
        names: Sequence[str | None] = self.config.names or [None] * len(paths)
        wanted = self._wanted()
        for path, name in zip(paths, names, strict=True):
            for label, text in stream_labelled(path, self.config, faults, name, meter):
                if len(seen) < MOST_SEEN or label in wanted:
                    seen.add(label)
                yield label, text

    def _wanted(self) -> set[str]:
        """The labels that settings name."""
        return {*split_list(self.config.keep), *self.config.new_names}

    def cutter(self) -> Cutter:
        """Into words, by the rules of the configuration."""
        return partial(cut_text, config=self.config)

    def check_parts(self, counts: Mapping[str, int], skipped: Counter[str]) -> None:
        """Refuse labels that are not there, and parts of which no text is left."""
        for part in counts:
            if absent := self._wanted() - (known := self._seen[part]):
                raise RegardError(*(unknown("label", label, known) for label in sorted(absent)))
        empty = [
            f"{getattr(self.config, PARTS[part])}: there is no text to use in it"
            f" (task.{PARTS[part]})."
            for part, count in counts.items()
            if not count
        ]
        if empty:
            raise RegardError(*empty)

    def limits(self) -> dict[str, tuple[int, str]]:
        """Of a file to validate on, not all has to be taken."""
        return {"validation": (self.config.most_validation, "task.most_validation")}

    def learn(self, draft: Draft) -> dict[str, Any]:
        """The words that are frequent enough, and the labels."""
        counts = draft.count_words("train", 0)
        words = build_vocabulary(counts, minimum=self.config.minimum, end=None)
        labels = {
            name: {label for label, _ in draft.count_words(name, 1)}
            for name in ("train", *self.splits)
        }
        return {"words": words.words, "labels": collect_labels(labels, self.config)}

    def recall(self, learned: dict[str, Any]) -> None:
        """Set the vocabularies."""
        self.source_vocabulary = Vocabulary(tuple(learned["words"]), ends=False)
        self.target_vocabulary = Vocabulary.of(learned["labels"], end=None)

    def encode(self, words: Sequence[str], side: int) -> Side:
        """The number of each word, or label."""
        if side == 1:
            return number_each(words, self.target_vocabulary.numbers.__getitem__)
        return number_each(words, known_or_not(self.source_vocabulary))

    def batch(self, texts: list[Text]) -> Batch:
        """Given texts, in words, and their labels as a batch."""
        return PackedBatch(
            Side.of(number_words((text for _, text in texts), self.source_vocabulary)),
            Side.of(self.target_vocabulary.encode([label]) for label, _ in texts),
        )


def split_list(setting: str | None) -> list[str]:
    """The parts of a setting between its commas."""
    return [part.strip() for part in (setting or "").split(",") if part.strip()]


def cut_text(row: Pair, config: Classification.Config) -> Units | str:
    """The words of a text and its label, or why it is left out."""
    label, text = row
    if config.keep and label not in split_list(config.keep):
        return "texts of other labels"
    words = tokenise(text, config)
    if config.longest and len(words) > config.longest and config.too_long == "leave-out":
        return f"texts over {config.longest} words"
    if not words:
        return "texts without words"
    return words[: config.longest], (config.new_names.get(label, label),)


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


def collect_labels(labels: Mapping[str, set[str]], config: Classification.Config) -> list[str]:
    """The labels of training in the order of the alphabet; held-out parts have no others."""
    found = sorted(labels["train"])
    if len(found) < 2:
        raise RegardError(
            f"{config.data}: there is nothing to tell apart, as the labels to train on are"
            f" {[label[:40] for label in found]}. Check task.label_column and task.keep, or name"
            " more files."
        )
    if len(found) > MOST_LABELS:
        raise RegardError(
            f"{config.data}: there are {len(found)} labels, such as {found[0][:40]!r}; these look"
            " like texts. Set task.label_column and task.text_column, for example 2 and 1."
        )
    strange = {name: sorted(labels[name] - labels["train"]) for name in Classification.splits}
    if any(strange.values()):
        raise RegardError(
            *(
                f"The texts of task.{name} have {_name_some(others)}, which training has not: it"
                f" has {_name_some(found)}. Check task.label_column, or hold out fewer texts."
                for name, others in strange.items()
                if others
            )
        )
    return found


def _name_some(labels: list[str]) -> str:
    """A few labels, shortened, and how many there are."""
    few = ", ".join(repr(label[:40]) for label in labels[:FEW_LABELS])
    if len(labels) == 1:
        return f"the label {few}"
    return f"{len(labels)} labels ({few}{', …' if len(labels) > FEW_LABELS else ''})"
