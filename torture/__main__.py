"""`python -m torture`: all of it, and the table."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from torture.tally import SHOWN, Tally, add_up, table


def run_all(root: Path, kills: int, flips: int, inputs: int, seed: int) -> list[Tally]:
    """Every kind of torture, scaled by how often the three main ones are wanted."""
    from torture.corpora import read_corpora
    from torture.disks import fill_disk, forbid, reproduce_at_once, write_at_once
    from torture.flips import flip_bits
    from torture.hostile import read_hostile
    from torture.inputs import try_inputs
    from torture.kills import kill_recording, kill_training

    rng = random.Random(seed)
    few = max(2, kills // 200)
    parts: list[Callable[[Path], list[Tally]]] = [
        lambda to: [kill_training(to, kills, rng)],
        lambda to: [kill_recording(to, max(2, kills // 10), rng)],
        lambda to: flip_bits(to, flips, rng),
        lambda to: [read_hostile(to, max(10, flips // 20), rng)],
        lambda to: [read_corpora(to, max(10, inputs // 10), rng)],
        lambda to: try_inputs(to, inputs, seed),
        lambda to: [fill_disk(to, few, rng), forbid(to, few), write_at_once(to, few)],
        lambda to: [reproduce_at_once(to, max(1, few // 5))],
    ]
    rows: list[Tally] = []
    for number, part in enumerate(parts):
        folder = root / str(number)
        folder.mkdir()
        began = time.monotonic()
        found = part(folder)
        seconds = time.monotonic() - began
        print(table(found), f"{seconds:.0f} s", sep="\n", file=sys.stderr, flush=True)
        rows += found
    return rows


def run_rounds(options: argparse.Namespace) -> list[Tally]:
    """In rounds, each with a seed of its own; what is done is kept, and not done again."""
    kept: list[list[Tally]] = []
    if options.keep and options.keep.is_file():
        kept = [[Tally(**row) for row in rows] for rows in json.loads(options.keep.read_text())]
    kills, flips, inputs = (
        -(-count // options.rounds) for count in (options.kills, options.flips, options.inputs)
    )
    for number in range(len(kept), options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            kept.append(run_all(Path(folder), kills, flips, inputs, options.seed + number))
        if options.keep:
            rows = [[asdict(row) for row in rows] for rows in kept]
            options.keep.write_text(json.dumps(rows, indent=1))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return add_up(kept)


def main() -> None:
    """Try, count, print, and end with 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1, help="parts that it is done in")
    parser.add_argument("--keep", type=Path, help="a file of rounds that are done: it goes on")
    torch.set_num_threads(1)
    rows = run_rounds(parser.parse_args())
    print(table(rows))
    failures = [f"{row.name}: {failure}" for row in rows for failure in row.failures[:SHOWN]]
    print(*failures, sep="\n", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
