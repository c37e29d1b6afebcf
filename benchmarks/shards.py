"""`python -m benchmarks shards`: a million samples through `decompose` and `breakdown`.

Made arrays are written shard by shard into a folder that is deleted afterwards; each measurement
is a process of its own, on partial results that nobody has kept.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured, agree, start_process
from benchmarks.synthetic import synthetic
from regard.recordings import gather_shards
from regard.recordings.writer import Sizes, write_recording

LENGTH, HIDDEN, SHARDS = 8, 32, 20
GROWTH = 1.1  # peak memory may be this many times that of a tenth of the samples
CURVE = 1.2  # and the time this many times ten times as long


@BENCHMARKS.register("shards")
def shards(samples: int = 1_000_000, rounds: int = 1) -> Benchmark:
    """Memory and time at a tenth and at all of the samples, by one worker and by two."""
    with tempfile.TemporaryDirectory(prefix="regard-shards-") as place:
        large, small = Path(place, "large"), Path(place, "small")
        size = write_shards(large, samples)
        take_shards(large, small, SHARDS // 10)
        tenth = measure_apart(small, 1)
        both = [[measure_apart(large, jobs) for jobs in (1, 2)] for _ in range(rounds)]
    for one, two in both:
        agree("The nine shares of one worker and of two", one["shares"], two["shares"], 0.0)
    one, two = min((o for o, _ in both), key=_wall), min((t for _, t in both), key=_wall)
    ratios = {
        "memory": (
            GROWTH * tenth["megabytes"] / one["megabytes"], 1.0,
            "1.1 times the peak memory at a tenth of the samples, over that at all",
        ),
        "linear": (
            CURVE * 10 * tenth["seconds"] / one["seconds"], 1.0,
            "1.2 times ten times the processor seconds at a tenth of the samples, over all of them",
        ),
        "workers": (
            one["wall"] / two["wall"], 1.6,
            f"decompose and breakdown of {samples} samples by one worker, over two, by the clock",
        ),
    }  # fmt: skip
    raw = {
        "samples": samples, "length": LENGTH, "hidden": HIDDEN, "shards": SHARDS,
        "gigabytes": size / 1e9, "a_tenth": tenth, "rounds": both,
    }  # fmt: skip
    return Benchmark("shards", ratios, raw)


def _wall(found: Measured) -> float:
    return float(found["wall"])


def write_shards(folder: Path, samples: int, count: int = SHARDS) -> int:
    """A made recording in shards, a thousand samples in memory at a time. -> bytes"""
    recording, storage = synthetic(samples, LENGTH, HIDDEN)
    per = samples // count
    for number in range(count):
        first = number * per
        pieces = (
            {name: storage.read(name, start, start + 1000) for name in storage.names()}
            for start in range(first, first + per, 1000)
        )
        path = folder / f"{number:05d}.safetensors"
        write_recording(pieces, {}, Sizes(per, LENGTH, LENGTH), recording.metadata, path)
    gather_shards(folder)
    return sum(path.stat().st_size for path in folder.iterdir())


def take_shards(folder: Path, to: Path, count: int) -> None:
    """The first shards of a folder as a recording of their own, without copies."""
    to.mkdir()
    for path in sorted(folder.glob("*.safetensors"))[:count]:
        os.link(path, to / path.name)
    gather_shards(to)


def measure_apart(folder: Path, jobs: int) -> Measured:
    """What `adding_up.measure` says in a fresh process with one thread, nothing being kept."""
    shutil.rmtree(folder / "sums", ignore_errors=True)
    found: Measured = json.loads(start_process("adding_up", folder, jobs).communicate()[0])
    return found
