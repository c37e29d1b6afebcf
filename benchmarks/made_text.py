"""Files of made sentence pairs, as many as one likes: about 150 bytes a pair, no two alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np

BLOCK = 20_000  # pairs that are drawn; others differ from them in two words
WORDS = 30_000
LONGEST = 40


def write_pairs(folder: Path, pairs: int, seed: int = 0) -> tuple[Path, Path]:
    """Sources and targets in two files, words as frequent as Zipf's law says.

    Lengths are spread as those of captions and go together.
    """
    rng = np.random.default_rng(seed)
    names = [f"{'aeiou'[n % 5]}{n:x}{'bdfglmnrst'[n % 10]}" for n in range(WORDS)]
    blocks = [_draw(rng, names, side) for side in ("s", "t")]
    paths = folder / "made.source", folder / "made.target"
    for path, block, side in zip(paths, blocks, ("s", "t"), strict=True):
        with path.open("w", encoding="ascii") as file:
            for start in range(0, pairs, BLOCK):
                number = start // BLOCK
                end = f" {names[number % WORDS]}{side} {names[number * 7 % 9973]}{side}\n"
                file.write(end.join(block[: pairs - start]) + end)
    return paths


def _draw(rng: np.random.Generator, names: list[str], side: str) -> list[str]:
    odds = 1 / np.arange(1, WORDS + 1)
    base = np.random.default_rng(1).normal(2.3, 0.3, BLOCK)  # the same for both sides
    lengths = np.exp(base + rng.normal(0, 0.1, BLOCK)).round().astype(int).clip(2, LONGEST - 2)
    words = rng.choice(WORDS, int(lengths.sum()), p=odds / odds.sum())
    rows = np.split(words, np.cumsum(lengths)[:-1])
    return [" ".join(f"{names[word]}{side}" for word in row) for row in rows]
