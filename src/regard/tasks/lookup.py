"""Lookup tables: bit strings through one table, two, or three (Liška et al. 2018, baan2019)."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.aligned_rows import STOP, Row, batch_of, places, read
from regard.tasks.corpus import CorpusTask
from regard.tasks.lookup_rules import Sizes, Tables
from regard.tasks.task import TaskConfig, tasks
from regard.tasks.vocabulary import Vocabulary

MOST_ROWS = 1_000_000
FILES = {
    "train": "train",
    "validation": "validation",
    "HI": "heldout_inputs",
    "HC": "heldout_compositions",
    "HT": "heldout_tables",
    "NC": "new_compositions",
    "longer_seen": "longer_compositions_seen",
    "longer_incremental": "longer_compositions_incremental",
    "longer_new": "longer_compositions_new",
    "all": "all",
}
TESTS = ("HI", "HC", "HT", "NC")


@tasks.register("lookup")
class Lookup(CorpusTask):
    """`010 t1 t6 .` to `010 101 000`: the input, then what each table makes of it, left to right.

    Training has every table alone, and most pairs of the first tables with most inputs. "HI" has
    held-out inputs, "HC" held-out pairs, "HT" pairs with one of the last tables, "NC" pairs of
    these; "test" is all four. The longer sets have three tables. "all" is every row of one or two
    tables, trained on or not. Targets have no end token.
    """

    class Config(Sizes):
        """How many there are of everything, or the folder that has it."""

        data: str | None = Field(
            None, description="folder of published .tsv files to take instead of making rows"
        )

    config: Config
    ends: ClassVar[bool] = False
    looked_at: ClassVar[str] = "all"
    splits: ClassVar[tuple[str, ...]] = (
        "validation",
        "test",
        *[n for n in FILES if n != "train" and n != "validation"],
    )

    def __init__(self, config: Config):
        super().__init__(config)
        rows = made(config) if config.data is None else published(config)
        words = {word for row in rows["all"] for word in row.source}
        strings = {word for row in rows["all"] for word in row.target}
        self.source_vocabulary = Vocabulary.of(
            [*in_order(strings), *in_order(words - strings)], end=STOP
        )
        self.target_vocabulary = Vocabulary.of(in_order(strings))
        self.rows = {
            name: batch_of(part, self.source_vocabulary, self.target_vocabulary, self.ends)
            for name, part in rows.items()
        }

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """The files in the folder, where one is named."""
        assert isinstance(config, cls.Config)
        if config.data is None:
            return ()
        return tuple(places(Path(config.data), FILES.values()).values())


def in_order(words: set[str]) -> list[str]:
    """By length and then by alphabet: `t2` before `t10`."""
    return sorted(words, key=lambda word: (len(word), word))


def made(config: Lookup.Config) -> dict[str, list[Row]]:
    """The rows of every set, made as the sizes say."""
    faults = config.faults()
    if config.rows > MOST_ROWS:
        faults.append(
            f"task.tables={config.tables} with task.bits={config.bits} make more than {MOST_ROWS:,}"
            " rows. Lower one of them."
        )
    if faults:
        raise RegardError(*faults)
    return Tables(config).splits()


def published(config: Lookup.Config) -> dict[str, list[Row]]:
    """The rows of every set, read from the folder; sizes that would be ignored are refused."""
    assert config.data is not None
    default = Sizes()
    ignored = [
        key for key in Sizes.model_fields if key not in TaskConfig.model_fields or key == "held_out"
    ]
    faults = [
        f"task.{key}={getattr(config, key)} has no effect on the files in task.data. Leave it out."
        for key in ignored
        if getattr(config, key) != getattr(default, key)
    ]
    if faults:
        raise RegardError(*faults)
    found = read(Path(config.data), list(FILES.values()), ends=False)
    rows = {name: found[file] for name, file in FILES.items()}
    return {**rows, "test": list(chain.from_iterable(rows[name] for name in TESTS))}
