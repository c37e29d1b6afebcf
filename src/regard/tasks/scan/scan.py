"""SCAN: commands to sequences of actions, with its four classic splits (Lake & Baroni 2018)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.aligned_rows import Row, find_files, make_batch, read_rows
from regard.tasks.corpus import CorpusTask, hold_out
from regard.tasks.scan._grammar import ACTION_WORDS, COMMAND_WORDS, commands, origins
from regard.tasks.scan._splits import SPLITS
from regard.tasks.task import TASKS, TaskConfig
from regard.tasks.vocabulary import Vocabulary

FILES = {
    "simple": "simple_split",
    "length": "length_split",
    "jump": "addprim_jump_split",
    "turn-left": "addprim_turn_left_split",
}
SIDES = ("train", "validation", "test")


@TASKS.register("scan")
class Scan(CorpusTask):
    """`jump left twice` to `I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP`: 20,910 commands.

    "test" is the whole test side of the chosen split. "validation" is `held_out` distinct commands
    taken out of the training side by a fixed shuffle; the oversampled primitive stays in training.
    Each action is aligned with the word that makes it, `<EOS>` with `<EOS>`.
    """

    class Config(TaskConfig):
        """Which commands are for training, and which for the test."""

        split: Literal["simple", "length", "jump", "turn-left"] = Field(
            "simple",
            description="simple: 80/20 at random; length: train on up to 22 actions;"
            " jump, turn-left: train on this primitive alone, test its compositions",
        )
        data: str | None = Field(
            None,
            description="folder of published .tsv files with alignments to take the split from",
        )

        def files(self) -> tuple[Path, ...]:
            """The files of the split, where a folder is named."""
            if self.data is None:
                return ()
            return tuple(find_files(Path(self.data), self.names).values())

        @property
        def names(self) -> list[str]:
            """What the files of training, validation and test are called."""
            return [f"{FILES[self.split]}_{side}" for side in SIDES]

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        self.source_vocabulary = Vocabulary.of(COMMAND_WORDS)
        self.target_vocabulary = Vocabulary.of(ACTION_WORDS)
        rows = make_rows(config) if config.data is None else read_published(config)
        self.rows = {
            name: make_batch(part, self.source_vocabulary, self.target_vocabulary, self.ends)
            for name, part in take_validation(rows, config.held_out).items()
        }


def make_rows(config: Scan.Config) -> dict[str, list[Row]]:
    """The rows of training and test, by the rule of the split."""
    does, comes_from = commands(), origins()
    train, test, extra = (
        [Row(c, does[c], (*comes_from[c], len(c))) for c in side] for side in SPLITS[config.split]()
    )
    return {"train": train + extra, "test": test}


def read_published(config: Scan.Config) -> dict[str, list[Row]]:
    """The rows of the split's files; there may be one for validation."""
    train, validation, test = names = config.names
    found = read_rows(Path(config.data or ""), [train, test], optional=[validation], ends=True)
    for name, path in zip(names, config.files(), strict=True):
        _check_words(found.get(name, []), path)
    return {side: found[name] for side, name in zip(SIDES, names, strict=True) if name in found}


def take_validation(rows: dict[str, list[Row]], size: int) -> dict[str, list[Row]]:
    """Where validation has no rows, `size` of training's; what training repeats stays in it."""
    times = Counter({} if "validation" in rows else rows["train"])
    once = [row for row in rows["train"] if times[row] < 2]
    parts = hold_out({**rows, "train": once}, size, Counter())
    parts["train"] += [row for row in rows["train"] if times[row] > 1]
    return parts


def _check_words(rows: list[Row], path: Path) -> None:
    """Refuse words that SCAN does not have."""
    for number, row in enumerate(rows, start=1):
        strange = {*row.source}.difference(COMMAND_WORDS) | {*row.target}.difference(ACTION_WORDS)
        if strange:
            raise RegardError(
                f"{path}, line {number}: '{min(strange)}' is not a word of SCAN on this side."
            )
