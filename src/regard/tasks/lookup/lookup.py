"""Lookup tables: bit strings through one table, two, or three (Liška et al. 2018, baan2019)."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.aligned_rows import STOP, Row, find_files, make_batch, read_rows
from regard.tasks.corpus import CorpusTask
from regard.tasks.lookup._rules import Sizes, Tables
from regard.tasks.task import TASKS
from regard.tasks.vocabulary import Vocabulary

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


@TASKS.register("lookup")
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

        def files(self) -> tuple[Path, ...]:
            """The files in the folder, where one is named."""
            if self.data is None:
                return ()
            return tuple(find_files(Path(self.data), [*FILES.values(), ALL]).values())

    config: Config
    ends: ClassVar[bool] = False
    default_split: ClassVar[str] = ALL
    splits: ClassVar[tuple[str, ...]] = ("validation", "test", *TESTS, *LONGER, ALL)

    def __init__(self, config: Config):
        super().__init__(config)
        rows = make_rows(config) if config.data is None else read_published(config)
        every = list(chain.from_iterable(rows.values()))
        strings = {word for row in every for word in row.target}
        names = {word for row in every for word in row.source} - strings
        self.source_vocabulary = Vocabulary.of([*sort_words(strings), *sort_words(names)], end=STOP)
        self.target_vocabulary = Vocabulary.of(sort_words(strings))
        self.rows = {
            name: make_batch(part, self.source_vocabulary, self.target_vocabulary, self.ends)
            for name, part in rows.items()
        }


def sort_words(words: set[str]) -> list[str]:
    """By length and then by alphabet: `t2` before `t10`."""
    return sorted(words, key=lambda word: (len(word), word))


def make_rows(config: Lookup.Config) -> dict[str, list[Row]]:
    """The rows of every set, made as the sizes say."""
    if faults := config.faults():
        raise RegardError(*faults)
    return Tables(config).make_splits()


def read_published(config: Lookup.Config) -> dict[str, list[Row]]:
    """The rows of every set, read from the folder; sizes that would be ignored are refused."""
    assert config.data is not None
    default, folder = Lookup.Config(), Path(config.data)
    ignored = [
        f"task.{key}={getattr(config, key)} has no effect on the files in task.data. Leave it out."
        for key in Sizes.__annotations__
        if getattr(config, key) != getattr(default, key)
    ]
    if ignored:
        raise RegardError(*ignored)
    found = read_rows(folder, list(FILES.values()), optional=[ALL], ends=False)
    rows = {name: found[file] for name, file in FILES.items()}
    test = list(chain.from_iterable(rows[name] for name in TESTS))
    every = [*rows["train"], *rows["validation"], *test]
    differing = set(found.get(ALL, every)) ^ set(every)
    if differing:
        raise RegardError(
            f"{find_files(folder, [ALL])[ALL]} differs in {len(differing)} rows from what training,"
            " validation and test hold together. Fetch the files again, or remove it."
        )
    return {**rows, "test": test, ALL: found.get(ALL, every)}
