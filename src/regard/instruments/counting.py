"""Counting co-occurrences in several processes; as a program, one of those processes.

A worker gets pieces of the corpus on standard input, a line of JSON each, and answers with its
counts when the input ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import cycle

from regard.errors import RegardError
from regard.instruments.cooccurrence import Counts
from regard.instruments.pairs import Pair, Word, pieces, sides

PIECE = 2_000  # sentence pairs sent at a time, so that all workers have work soon


def counted_by(jobs: int, pairs: Iterable[Pair]) -> Counts:
    """The counts of all pairs, counted by so many processes that take turns."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker()) for _ in range(jobs)]
        try:
            for worker, piece in zip(cycle(workers), pieces(pairs, PIECE), strict=False):
                assert worker.stdin
                worker.stdin.write(
                    json.dumps([_plain(pair) for pair in zip(*sides(piece), strict=True)]) + "\n"
                )
            return _merged(workers)
        except BrokenPipeError:
            raise RegardError(
                "A process that counted co-occurrences died. Count with fewer jobs; jobs=1 counts"
                " in this process."
            ) from None
        finally:
            for worker in workers:
                worker.kill()


def _merged(workers: list[subprocess.Popen[str]]) -> Counts:
    for worker in workers:
        assert worker.stdin
        worker.stdin.close()
    total = Counts()
    for worker in workers:
        assert worker.stdout
        answer = worker.stdout.readline()
        if not answer:
            raise BrokenPipeError
        total.merge(Counts.from_json(answer))
    return total


def _worker() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "regard.instruments.counting"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _plain(pair: Pair) -> list[list[Word]]:
    return [[w if isinstance(w, str) else int(w) for w in side] for side in pair]


def _received() -> Iterator[Pair]:
    for line in sys.stdin:
        yield from (tuple(pair) for pair in json.loads(line))


if __name__ == "__main__":
    print(Counts().update(_received()).to_json(), flush=True)
