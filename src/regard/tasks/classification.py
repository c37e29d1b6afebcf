"""Text classification from any file of labelled texts (snell2021, sections 2.4 and A.8)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch, collate
from regard.tasks.corpus import CorpusTask, parted
from regard.tasks.labelled_text import Format, Labelled, Layout, read_labelled
from regard.tasks.parallel_text import Faults
from regard.tasks.parallel_words import UNKNOWN, frequent, numbered, words
from regard.tasks.task import TaskConfig, tasks
from regard.tasks.vocabulary import SPECIAL, Vocabulary

PARTS = ("data", "validation", "test")
MEND = "Mend the lines, or set task.bad_lines=skip to leave them out."
MOST_LABELS = 100
REPEATED = "repeated texts"
NO_WORDS = "texts without words"
INTEGER = re.compile(r"[0-9]{2,}")

Text = tuple[str, tuple[str, ...]]  # label, words


@tasks.register("classification")
class Classification(CorpusTask):
    """Texts to their labels, from your files: one word to say, and no end token on either side.

    Held-out parts are files of their own, or `held_out` texts each that a fixed shuffle takes out
    of training; then every text counts once. Labels are in the order of the alphabet, so of two
    the second is the positive one. `skipped` counts what was left out, by reason.
    """

    class Config(TaskConfig):
        """Where the texts are, how they are laid out, and what is a word."""

        data: str | None = Field(
            None, description="file of labelled texts, plain or gzipped; or several, with commas"
        )
        validation: str | None = Field(None, description="file of texts to validate on, likewise")
        test: str | None = Field(None, description="file of texts to test on, likewise")
        most_validation: int = Field(
            4000, ge=1, description="texts taken from the validation file, by a fixed shuffle"
        )
        format: Format = Field(
            "auto",
            description="auto: by the name of the file, else by its first line; lines: texts",
        )
        label_column: str | None = Field(
            None, description="where the label is: 1, or a name; none: 1, in jsonl `label`"
        )
        text_column: str | None = Field(
            None,
            description="where the text is: 2, `4,5` or `2-` joined, or a name; none: 2, in jsonl"
            " `text`",
        )
        quoted: bool = Field(
            False, description="fields of a tab-separated file may stand in quotes"
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
        def _complete(self) -> Classification.Config:
            if self.data is None:
                raise ValueError("data is not set: name a file of labelled texts with task.data")
            names = self.names
            wrong = [
                part for part in PARTS if names and len(self.paths(part)) not in (0, len(names))
            ]
            if names and wrong:
                raise ValueError(
                    f"labels names {len(names)} labels, one for each file, but {wrong[0]} has"
                    f" {len(self.paths(wrong[0]))} files; to rename labels, write old:new"
                )
            return self

        def paths(self, part: str) -> list[Path]:
            """The files of one part: `data`, `validation` or `test`."""
            return [Path(name) for name in listed(getattr(self, part))]

        @property
        def names(self) -> list[str] | None:
            """The label of each file, where a file has one."""
            found = listed(self.labels)
            return None if not found or all(":" in name for name in found) else found

        @property
        def renamed(self) -> dict[str, str]:
            """New names by old ones."""
            pairs = (name.rsplit(":", 1) for name in listed(self.labels) if ":" in name)
            return {old.strip(): new.strip() for old, new in pairs}

    config: Config
    ends = False
    skipped: dict[str, int]

    def __init__(self, config: Config):
        super().__init__(config)
        found, faults = read(config)
        skipped = Counter(faults.counts)
        texts = {part: chosen(rows, config, skipped) for part, rows in found.items()}
        parts = split(texts, config, skipped)
        self.skipped = {reason: count for reason, count in skipped.items() if count}
        self.target_vocabulary = labels_of(parts, config)
        self.source_vocabulary = frequent(
            (text for _, text in parts["train"]), minimum=config.minimum, end=None
        )
        self.rows = {name: self.batch(part) for name, part in parts.items()}

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """All files that were named."""
        assert isinstance(config, cls.Config)
        return tuple(path for part in PARTS for path in config.paths(part))

    def batch(self, texts: list[Text]) -> Batch:
        """Given texts, in words, and their labels as a batch."""
        return collate(
            [numbered(text, self.source_vocabulary) for _, text in texts],
            [self.target_vocabulary.encode([label]) for label, _ in texts],
        )


def listed(setting: str | None) -> list[str]:
    """The parts of a setting between its commas."""
    return [part.strip() for part in (setting or "").split(",") if part.strip()]


def read(config: Classification.Config) -> tuple[dict[str, list[Labelled]], Faults]:
    """The texts of each part that has files, and what is wrong with the others."""
    faults, found = Faults(MEND), {}
    layout = Layout(config.format, config.label_column, config.text_column, config.quoted)
    for part in PARTS:
        paths = config.paths(part)
        names: Sequence[str | None] = config.names or [None] * len(paths)
        if paths:
            found[part] = [
                row
                for path, name in zip(paths, names, strict=True)
                for row in read_labelled(path, layout, faults, f"task.{part}", name)
            ]
    if config.bad_lines == "stop":
        faults.stop()
    return found, faults


def chosen(
    rows: list[Labelled], config: Classification.Config, skipped: Counter[str]
) -> list[Text]:
    """The texts of the labels that are kept, in words, none too long; counts what was skipped."""
    there = {label for label, _ in rows}
    kept = set(listed(config.keep)) or there
    absent = [label for label in (*kept, *config.renamed) if label not in there]
    if absent:
        raise RegardError(*(unknown("label", label, there) for label in sorted(set(absent))))
    skipped["texts of other labels"] += sum(label not in kept for label, _ in rows)
    found = []
    for label, text in rows:
        if label not in kept:
            continue
        split = tokens(text, config)
        if config.longest and len(split) > config.longest and config.too_long == "leave-out":
            skipped[f"texts over {config.longest} words"] += 1
        elif not split:
            skipped[NO_WORDS] += 1
        else:
            found.append((config.renamed.get(label, label), split[: config.longest]))
    return found


def tokens(text: str, config: Classification.Config) -> tuple[str, ...]:
    """A text in words, by the rules of the configuration (A.8, "Classification Tokenization")."""
    if config.underscores == "split":
        text = text.replace("_", " ")
    if config.tokens == "spaces":
        found = tuple((text.lower() if config.lowercase else text).split())
    else:
        found = words(text, config.lowercase, letters="_")
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
        f"{getattr(config, part)}: there is no text to use in it (task.{part})."
        for part, rows in texts.items()
        if not rows
    ]
    if empty:
        raise RegardError(*empty)
    train, parts = texts["data"], {}
    missing = [part for part in Classification.splits if part not in texts]
    if "validation" in texts:
        every, most = texts["validation"], config.most_validation
        fewer = len(every) > most
        places = (
            parted(len(every), [most], "task.most_validation")[0] if fewer else range(len(every))
        )
        parts["validation"] = [every[i] for i in places]
    if missing:
        once = list(dict.fromkeys(train))
        skipped[REPEATED] += len(train) - len(once)
        sizes = [config.held_out] * len(missing)
        *out, train = (
            [once[i] for i in part] for part in parted(len(once), sizes, "task.held_out")
        )
        parts |= dict(zip(missing, out, strict=True))
    elif config.held_out != TaskConfig().held_out:
        raise RegardError(
            f"task.held_out={config.held_out} has no effect, as there are files to validate and"
            " test on. Leave it out."
        )
    if "test" in texts:
        parts["test"] = texts["test"]
    return {"train": train, **{name: parts[name] for name in Classification.splits}}


def labels_of(parts: dict[str, list[Text]], config: Classification.Config) -> Vocabulary:
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
