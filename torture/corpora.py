"""Corpora that are broken: bytes at random places, other encodings, torn gzip, columns missing."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from regard.runs import assemble
from torture.tally import Tally

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


def small_corpus() -> bytes:
    """Sentence pairs, one a line."""
    pairs = ((a, b, c) for a in WORDS for b in WORDS for c in WORDS[:2])
    return "".join(f"{a} {b} {c}\t{b} {a}\n" for a, b, c in pairs).encode()


def read_corpora(root: Path, count: int, rng: random.Random) -> Tally:
    """Every broken file is read as it is, or refused with its lines."""
    tally = Tally("corrupt corpora")
    for number in range(count):
        packed = rng.random() < 0.3
        text = small_corpus()
        broken = damage(gzip.compress(text, mtime=0) if packed else damage(text, rng), rng)
        path = root / f"corpus-{number % 7}.tsv"
        path.write_bytes(broken)
        bad = rng.choice(("stop", "skip"))
        task = rng.choice(("parallel", "parallel", "classification"))
        key = "data" if task == "classification" else "source"

        def read(task: str = task, key: str = key, bad: str = bad, path: Path = path) -> str:
            settings = {key: str(path), "bad_lines": bad, "held_out": 5, "hidden": 4}
            config = assemble(
                task, "chapter36" if key == "source" else "snell-classifier", 0, settings
            )
            config.make_task().train_batch(0, 4, 0)
            return "read"

        tally.attempt(f"{task} {number}", read)
    return tally


def damage(content: bytes, rng: random.Random) -> bytes:
    """Some bytes replaced, put in or taken out."""
    data = bytearray(content)
    for _ in range(rng.choice((0, 1, 3, 20))):
        place, kind = rng.randrange(max(1, len(data))), rng.random()
        if kind < 0.4 and data:
            data[place % len(data)] = rng.randrange(256)
        elif kind < 0.7:
            put = rng.choice(
                (b"\xff", b"\0", b"\t", b"\n\n", b"\r", b"a" * 20_000, b"\xef\xbb\xbf")
            )
            data[place:place] = put
        else:
            del data[place : place + rng.choice((1, 10, 1000))]
    return bytes(data)
