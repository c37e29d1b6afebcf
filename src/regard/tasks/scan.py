"""SCAN: commands to sequences of actions, with its four classic splits (Lake & Baroni 2018)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.aligned_rows import Row, batch_of, paths_in, read
from regard.tasks.corpus import CorpusTask, parted
from regard.tasks.scan_grammar import ACTION_WORDS, COMMAND_WORDS, commands, origins
from regard.tasks.scan_splits import SPLITS
from regard.tasks.task import TaskConfig, tasks
from regard.tasks.vocabulary import Vocabulary

FILES = {
    "simple": "simple_split",
    "length": "length_split",
    "jump": "addprim_jump_split",
    "turn-left": "addprim_turn_left_split",
}
SIDES = ("train", "validation", "test")


@tasks.register("scan")
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

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        self.source_vocabulary = Vocabulary.of(COMMAND_WORDS)
        self.target_vocabulary = Vocabulary.of(ACTION_WORDS)
        rows = made(config) if config.data is None else published(config)
        self.rows = {
            name: batch_of(part, self.source_vocabulary, self.target_vocabulary, self.ends)
            for name, part in rows.items()
        }

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """The files of the split, where a folder is named."""
        assert isinstance(config, cls.Config)
        if config.data is None:
            return ()
        names = [f"{FILES[config.split]}_{side}" for side in SIDES]
        return tuple(paths_in(Path(config.data), names).values())


def made(config: Scan.Config) -> dict[str, list[Row]]:
    """The rows of training, validation and test, by the rule of the split."""
    does, comes_from = commands(), origins()
    train, test, extra = (
        [Row(c, does[c], (*comes_from[c], len(c))) for c in side] for side in SPLITS[config.split]()
    )
    return {**with_validation(train, extra, config.held_out), "test": test}


def with_validation(train: list[Row], extra: list[Row], held_out: int) -> dict[str, list[Row]]:
    """Training without `held_out` of its rows, and these; extra rows stay in training."""
    chosen, rest = parted(len(train), [held_out], "task.held_out")
    return {"train": [train[i] for i in rest] + extra, "validation": [train[i] for i in chosen]}


def published(config: Scan.Config) -> dict[str, list[Row]]:
    """The rows of the split's files; without one for validation, it is taken out of training."""
    train, validation, test = (f"{FILES[config.split]}_{side}" for side in SIDES)
    found = read(Path(config.data or ""), [train, test], optional=[validation], ends=True)
    paths = dict(zip((train, validation, test), Scan.files(config), strict=True))
    for name, rows in found.items():
        _known(rows, paths[name])
    if validation not in found:
        times = Counter(found[train])
        once = [row for row in found[train] if times[row] == 1]
        often = [row for row in found[train] if times[row] > 1]
        return {**with_validation(once, often, config.held_out), "test": found[test]}
    if config.held_out != Scan.Config().held_out:
        raise RegardError(
            f"task.held_out={config.held_out} has no effect, as there is {paths[validation]}."
            " Leave it out."
        )
    return dict(zip(SIDES, (found[train], found[validation], found[test]), strict=True))


def _known(rows: list[Row], path: Path) -> None:
    """Refuse words that SCAN does not have."""
    for number, row in enumerate(rows, start=1):
        strange = {*row.source}.difference(COMMAND_WORDS) | {*row.target}.difference(ACTION_WORDS)
        if strange:
            raise RegardError(
                f"{path}, line {number}: '{min(strange)}' is not a word of SCAN on this side."
            )
