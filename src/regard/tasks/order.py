"""The order of any number of rows in an epoch, a function of the seed: nothing is kept per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.tasks.batch import Ints

ROUNDS = 6  # of the Feistel network
BLOCKS = 2**16  # up to so many rows, each is moved by itself
LARGEST = 64  # rows that stay together in a very large corpus, so that they are read together

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Permutation:
    """The numbers below `count` in another order, computed one by one.

    A Feistel network permutes the numbers of an even count of bits; a number that it leads out of
    range is sent through again until it is inside.
    """

    count: int
    keys: Words  # (round,)

    @classmethod
    def of(cls, count: int, *seeds: int) -> Permutation:
        """By any numbers that say which permutation it is."""
        keys = np.random.default_rng([*seeds, count]).integers(2**63, size=ROUNDS, dtype=np.uint64)
        return cls(count, keys)

    def __call__(self, places: Ints) -> Ints:
        """What stands at each of the places. (any,) -> (any,)"""
        found = self._mix(places.astype(np.uint64))
        while (outside := found >= self.count).any():
            found[outside] = self._mix(found[outside])
        return found.astype(np.int64)

    def _mix(self, numbers: Words) -> Words:
        half = np.uint64(max(1, ((self.count - 1).bit_length() + 1) // 2))
        low = np.uint64((1 << int(half)) - 1)
        left, right = numbers >> half, numbers & low
        for key in self.keys:
            left, right = right, left ^ (_scramble(right + key) & low)
        return (left << half) | right


def _scramble(numbers: Words) -> Words:
    """Each number's bits spread over all others (the finaliser of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def order_rows(places: Ints, seed: int, epoch: int, count: int) -> Ints:
    """Which of `count` rows stand at some places of an epoch. (any,) -> (any,)

    Blocks of neighbours are permuted, of one row each up to 131,071 rows and of 64 from four
    million on; rows that do not fill a block stand together somewhere between the others.
    """
    block = min(LARGEST, max(1, count // BLOCKS))
    whole, rest = divmod(count, block)
    at = int(np.random.default_rng([seed, epoch, count]).integers(whole + 1)) * block
    late = places >= at + rest
    moved = places - np.where(late, rest, 0)
    short = ~late & (places >= at)
    number, inside = np.divmod(np.where(short, 0, moved), block)
    found = Permutation.of(whole, seed, epoch)(number) * block + inside
    return np.where(short, whole * block + places - at, found)


def draw_rows(count: int, size: int, *seeds: int) -> Ints:
    """`size` different rows of `count`, in rising order; it takes memory for `size` numbers."""
    return np.sort(Permutation.of(count, *seeds)(np.arange(min(size, count))))
