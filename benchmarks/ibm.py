"""IBM Model 1 against dictionaries of dictionaries, as one would write it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.benchmark import Measured, agree, take_turns
from regard.instruments.words._pairs import Pair, Word
from regard.instruments.words.ibm1 import ibm1

CLOSE = 1e-9  # how far the tables may lie apart
PART = 10_000  # pairs that the plain version is timed on; its time grows with the pairs

Plain = dict[Word, dict[Word, float]]


def plain_ibm1(pairs: Sequence[Pair], iterations: int = 5) -> Plain:
    """Trans(o|i) after so many steps from the uniform table, in loops."""
    table: Plain = {}
    for _ in range(iterations):
        counts: defaultdict[Word, defaultdict[Word, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for source, target in pairs:
            for o in target:
                chances = [table[i][o] for i in source] if table else [1.0] * len(source)
                total = sum(chances)
                for i, chance in zip(source, chances, strict=True):
                    counts[i][o] += chance / total
        table = {}
        for i, row in counts.items():
            total = sum(row.values())
            table[i] = {o: value / total for o, value in row.items()}
    return table


def zipfian(pairs: int, seed: int = 0, words: int = 8_000, mean: float = 12.0) -> list[Pair]:
    """Sentence pairs about as long as captions, with words as frequent as Zipf's law says.

    Half of the target words are translations of source words of theirs, the rest is drawn anew.
    """
    rng = np.random.default_rng(seed)
    odds = 1 / np.arange(1, words + 1)
    lengths = 2 + rng.poisson(mean - 2, (pairs, 2))
    source = rng.choice(words, int(lengths[:, 0].sum()), p=odds / odds.sum())
    target = rng.choice(words, int(lengths[:, 1].sum()), p=odds / odds.sum())
    starts = np.repeat(np.cumsum(lengths[:, 0]) - lengths[:, 0], lengths[:, 1])
    widths = np.repeat(lengths[:, 0], lengths[:, 1])
    picked = starts + (rng.random(len(target)) * widths).astype(int)
    target = np.where(rng.random(len(target)) < 0.5, source[picked], target)
    ends = np.cumsum(lengths, axis=0)
    both = [np.split(s, e[:-1]) for s, e in ((source, ends[:, 0]), (target, ends[:, 1]))]
    return [(s.tolist(), t.tolist()) for s, t in zip(*both, strict=True)]


def ibm_ratio(pairs: int = 100_000, iterations: int = 5, rounds: int = 3) -> Measured:
    """Processor seconds of the plain version over ours, medians of so many rounds in turns.

    Beyond 10,000 pairs the plain version is timed on the first 10,000 and its time multiplied: its
    loops take the same for every pair, so if anything this is kind to it, as dictionaries slow
    down as they grow. `plain_pairs` says on how many it ran. Tables must be equal on
    the first 1,000.
    """
    corpus = zipfian(pairs)
    part = corpus[: min(PART, pairs)]
    agree_on_tables(plain_ibm1(part[:1000], iterations), part[:1000], iterations)
    ours, plain = take_turns(
        lambda: ibm1(corpus, iterations), lambda: plain_ibm1(part, iterations), rounds=rounds
    )
    whole = [taken * len(corpus) / len(part) for taken in plain]
    return {
        "ratio": statistics.median(whole) / statistics.median(ours),
        "seconds": ours,
        "plain_seconds": whole,
        "pairs": len(corpus),
        "plain_pairs": len(part),
        "iterations": iterations,
    }


def agree_on_tables(plain: Plain, pairs: Sequence[Pair], iterations: int) -> None:
    """See `agree`: as many pairs of words, with the same chances."""
    ours = ibm1(pairs, iterations)
    cells = [(ours.translation(i, o), p) for i, row in plain.items() for o, p in row.items()]
    agree("IBM Model 1, pairs of words", ours.matrix.nnz, len(cells), 0)
    found, wanted = zip(*cells, strict=True)
    agree("IBM Model 1, chances", found, wanted, CLOSE)
