"""Lookup tables: bit strings through one table, two, or three (Liška et al. 2018, baan2019)."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.aligned_rows import STOP, Row, batch_of, paths_in, read
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
}
ALL = "all"  # a split, and a file that need not be there
TESTS = ("HI", "HC", "HT", "NC")
LONGER = ("longer_seen", "longer_incremental", "longer_new")


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
    looked_at: ClassVar[str] = ALL
    splits: ClassVar[tuple[str, ...]] = ("validation", "test", *TESTS, *LONGER, ALL)

    def __init__(self, config: Config):
        super().__init__(config)
        rows = made(config) if config.data is None else published(config)
        every = list(chain.from_iterable(rows.values()))
        strings = {word for row in every for word in row.target}
        names = {word for row in every for word in row.source} - strings
        self.source_vocabulary = Vocabulary.of([*in_order(strings), *in_order(names)], end=STOP)
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
        return tuple(paths_in(Path(config.data), [*FILES.values(), ALL]).values())


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
    default, folder = Lookup.Config(), Path(config.data)
    faults = [
        f"task.{key}={getattr(config, key)} has no effect on the files in task.data. Leave it out."
        for key in Sizes.__annotations__
        if getattr(config, key) != getattr(default, key)
    ]
    if faults:
        raise RegardError(*faults)
    found = read(folder, list(FILES.values()), optional=[ALL], ends=False)
    rows = {name: found[file] for name, file in FILES.items()}
    test = list(chain.from_iterable(rows[name] for name in TESTS))
    every = [*rows["train"], *rows["validation"], *test]
    differing = set(found.get(ALL, every)) ^ set(every)
    if differing:
        raise RegardError(
            f"{paths_in(folder, [ALL])[ALL]} differs in {len(differing)} rows from what training,"
            " validation and test hold together. Fetch the files again, or remove it."
        )
    return {**rows, "test": test, ALL: found.get(ALL, every)}
