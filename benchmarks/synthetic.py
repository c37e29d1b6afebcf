"""A recording of any length that is on no disk: its rows are made when they are read.

So an instrument is measured and not the disk, and a recording may be larger than the memory.
"""

from __future__ import annotations

import time

import numpy as np

from regard.recordings import Recording, Site
from regard.recordings.recording import Metadata
from regard.recordings.storage import Array, Shape

LETTERS = 3
POOLS = {"encoder": 1009, "decoder": 1013}  # primes, so that rows pair anew for a million rows


class Synthetic:
    """A `Storage`: row n is row n of a fixed pool that starts over at its end.

    The states are averages per step, averages per word, and noise, of like size, so that all nine
    terms count. `seconds` adds up what making the rows took, which is no instrument's work.
    """

    def __init__(self, sequences: int, length: int = 20, hidden: int = 128, seed: int = 0):
        self.sequences, self.seconds = sequences, 0.0
        rng = np.random.default_rng(seed)
        self.pools: dict[str, Array] = {}
        for side, rows in POOLS.items():
            words = rng.integers(3, 3 + LETTERS, size=(rows, length))
            steps, inputs = (
                rng.normal(size=(length, hidden)),
                rng.normal(size=(3 + LETTERS, hidden)),
            )
            noise = rng.normal(size=(rows, length, hidden))
            self.pools[f"{side}.states"] = (steps + inputs[words] + noise).astype(np.float32)
            self.pools[f"{side}.words"] = words
            self.pools[f"{side}.mask"] = np.ones((rows, length), dtype=np.bool_)
        for what, side in (("queries", "decoder"), ("keys", "encoder")):  # the states themselves
            self.pools[f"attention.{what}"] = self.pools[f"{side}.states"][:, None]  # one head

    def names(self) -> list[str]:
        """The arrays that are there."""
        return list(self.pools)

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        return (self.sequences, *self.pools[name].shape[1:])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some rows, or all of them, made anew."""
        begin = time.process_time()
        stop = self.sequences if stop is None else min(stop, self.sequences)
        pool = self.pools[name]
        rows = pool.take(np.arange(start, stop), axis=0, mode="wrap")
        self.seconds += time.process_time() - begin
        return rows


def synthetic(sequences: int, length: int = 20, hidden: int = 128) -> tuple[Recording, Synthetic]:
    """A recording of a decoder that attends by plain products, and where its rows come from."""
    storage = Synthetic(sequences, length, hidden)
    letters = ("<PAD>", "<SOS>", "<EOS>", *"ABC"[:LETTERS])
    sites = {"attention": Site(plain=True)}
    return Recording(storage, Metadata(letters, letters, sites)), storage
