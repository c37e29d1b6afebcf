"""How often each word occurs in a corpus of any size: what does not fit in memory goes to files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from regard.tasks.batch import Ints

MOST = 2**20  # different words in memory


class WordCounts:
    """Counts that add up, exact whatever the corpus."""

    def __init__(self, folder: Path, name: str):
        self.folder, self.name = folder, name
        self.counts: Counter[str] = Counter()
        self.files: list[Path] = []

    def add(self, words: Sequence[str], times: Ints) -> None:
        """Count each of the words so many times more. times (word,)"""
        for word, more in zip(words, times.tolist(), strict=True):
            if more:
                self.counts[word] += more
        if len(self.counts) > MOST:
            self._put_down()

    def _put_down(self) -> None:
        path = self.folder / f"counts-{self.name}-{len(self.files)}"
        with path.open("w", encoding="ascii") as file:
            file.writelines(json.dumps(item) + "\n" for item in sorted(self.counts.items()))
        self.files.append(path)
        self.counts.clear()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Every word once, with its count."""
        if not self.files:
            yield from self.counts.items()
            return
        with ExitStack() as stack:
            opened = (stack.enter_context(path.open(encoding="ascii")) for path in self.files)
            streams = [map(_read, file) for file in opened]
            every = merge(*streams, sorted(self.counts.items()), key=itemgetter(0))
            for word, items in groupby(every, key=itemgetter(0)):
                yield word, sum(count for _, count in items)


def _read(line: str) -> tuple[str, int]:
    word, count = json.loads(line)
    return word, count
