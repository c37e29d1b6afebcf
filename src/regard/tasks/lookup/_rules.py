"""Which compositions of lookup tables are trained on, and which are held out (baan2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import TypeVar

import numpy as np
from pydantic import Field

from regard.tasks.aligned_rows import Row
from regard.tasks.task import TaskConfig

Composition = tuple[str, ...]
T = TypeVar("T")

MOST_ROWS = 1_000_000

# The published longer sets are samples, not all that their rule allows: 136 of 216 and 271 of 384.
SEEN, INCREMENTAL = 136 / 216, 271 / 384
TABLES, COMPOSITIONS, INPUTS, VALIDATION, LONGER_SEEN, LONGER_INCREMENTAL, LONGER_NEW = range(7)


class Sizes(TaskConfig):
    """How many tables, strings and held-out items there are."""

    tables: int = Field(8, ge=2, description="lookup tables")
    bits: int = Field(3, ge=1, le=16, description="length of a string; there are 2^bits of them")
    held_out_tables: int = Field(2, ge=1, description="tables that training sees alone only")
    held_out_compositions: int = Field(
        8, ge=1, description="pairs of the other tables that training never sees"
    )
    held_out_inputs: int = Field(
        2, ge=1, description="strings that training never sees with a pair it does see"
    )
    held_out: int = Field(
        16, ge=1, description="validation rows, out of those with held-out inputs; the rest is HI"
    )
    tables_seed: int = Field(0, ge=0, description="of the tables and of all that is held out")

    @property
    def inputs(self) -> int:
        """Strings."""
        return int(2**self.bits)

    @property
    def trained_tables(self) -> int:
        """Tables that training composes."""
        return self.tables - self.held_out_tables

    def faults(self) -> list[str]:
        """A sentence about each size that leaves nothing of something, or makes far too much."""
        limits = {
            "held_out_tables": (self.tables, "tables"),
            "held_out_compositions": (self.trained_tables**2, "pairs of the other tables"),
            "held_out_inputs": (self.inputs, "strings"),
        }
        found = [
            f"task.{key}={getattr(self, key)} of {count} {what} leaves none to train on. Lower it."
            for key, (count, what) in limits.items()
            if getattr(self, key) >= count
        ]
        spared = self.held_out_inputs * (self.trained_tables**2 - self.held_out_compositions)
        if not found and self.held_out >= spared:
            found.append(
                f"task.held_out={self.held_out} of {spared} rows with held-out inputs leaves none"
                " to test on. Lower it."
            )
        if self.inputs * self.tables**3 > MOST_ROWS:
            found.append(
                f"task.tables={self.tables} with task.bits={self.bits} make more than"
                f" {MOST_ROWS:,} rows. Lower one of them."
            )
        return found


class Tables:
    """Random tables over bit strings, and the rows of every split.

    Each choice has a generator of its own, so that changing one size leaves the others' draws.
    """

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self.strings = ["".join(digits) for digits in product("01", repeat=sizes.bits)]
        self.names = [f"t{number + 1}" for number in range(sizes.tables)]
        self.trained = self.names[: sizes.trained_tables]
        self.held_out = self.names[sizes.trained_tables :]
        shuffles = self._rng(TABLES)
        self.tables: dict[str, dict[str, str]] = {
            name: dict(zip(self.strings, shuffles.permutation(self.strings).tolist(), strict=True))
            for name in self.names
        }

    def make_splits(self) -> dict[str, list[Row]]:
        """The rows of training and of every held-out set, in a fixed order."""
        atomic = self.make_rows(product(self.names, repeat=1))
        pairs = list(product(self.trained, repeat=2))
        seen, unseen = self._split_off(pairs, self.sizes.held_out_compositions, COMPOSITIONS)
        train, spared = self._divide_inputs(seen)
        inputs, validation = self._split_off(spared, self.sizes.held_out, VALIDATION)
        mixed = chain(product(self.trained, self.held_out), product(self.held_out, self.trained))
        held_out = {
            "HI": inputs,
            "HC": self.make_rows(unseen),
            "HT": self.make_rows(mixed),
            "NC": self.make_rows(product(self.held_out, repeat=2)),
        }
        return {
            "train": atomic + train,
            "validation": validation,
            "test": list(chain.from_iterable(held_out.values())),
            **held_out,
            **self._make_longer(),
            "all": atomic + self.make_rows(product(self.names, repeat=2)),
        }

    def make_rows(self, compositions: Iterable[Composition]) -> list[Row]:
        """Each composition with every input."""
        return [self.make_row(given, tables) for tables in compositions for given in self.strings]

    def make_row(self, given: str, tables: Composition) -> Row:
        """The input, then what each table makes of the result so far; the attention is diagonal."""
        results = [given]
        for name in tables:
            results.append(self.tables[name][results[-1]])
        return Row((given, *tables), tuple(results), tuple(range(len(results))))

    def _divide_inputs(self, pairs: Sequence[Composition]) -> tuple[list[Row], list[Row]]:
        """Rows of trained compositions: with the inputs trained on, and with the spared ones."""
        rng = self._rng(INPUTS)
        train: list[Row] = []
        spared: list[Row] = []
        for pair in pairs:
            chosen = choose(rng, self.sizes.inputs, self.sizes.held_out_inputs)
            for number, given in enumerate(self.strings):
                (spared if number in chosen else train).append(self.make_row(given, pair))
        return train, spared

    def _make_longer(self) -> dict[str, list[Row]]:
        """Three tables, each composition with half of the inputs, drawn for it.

        seen: trained tables only, whether or not training has their pairs. incremental: any two
        tables and then a trained one, so it shares compositions with seen. new: held-out tables
        only. All of new is taken; of the others a sample, in the published proportion.
        """
        seen = list(product(self.trained, repeat=3))
        incremental = list(product(self.names, self.names, self.trained))
        new = list(product(self.held_out, repeat=3))
        return {
            "longer_seen": self._sample(seen, SEEN, LONGER_SEEN),
            "longer_incremental": self._sample(incremental, INCREMENTAL, LONGER_INCREMENTAL),
            "longer_new": self._sample(new, 1.0, LONGER_NEW),
        }

    def _sample(self, every: Sequence[Composition], share: float, purpose: int) -> list[Row]:
        rng, half = self._rng(purpose), self.sizes.inputs // 2
        return [
            self.make_row(self.strings[given], every[number])
            for number in choose(rng, len(every), max(1, round(share * len(every))))
            for given in choose(rng, self.sizes.inputs, half)
        ]

    def _split_off(self, items: Sequence[T], size: int, purpose: int) -> tuple[list[T], list[T]]:
        """All but `size` items, and those."""
        chosen = set(choose(self._rng(purpose), len(items), size))
        return (
            [item for number, item in enumerate(items) if number not in chosen],
            [item for number, item in enumerate(items) if number in chosen],
        )

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.sizes.tables_seed, purpose])


def choose(rng: np.random.Generator, count: int, size: int) -> list[int]:
    """`size` of the numbers below `count`, in rising order."""
    chosen: list[int] = np.sort(rng.permutation(count)[:size]).tolist()
    return chosen
