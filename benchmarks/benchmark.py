"""What a benchmark yields, and what all of them measure with."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.display import Table
from regard.errors import RegardError
from regard.registry import Registry

Work = Callable[[], object]
Clock = Callable[[], float]  # the wall's, or `time.process_time`, which rises less on busy machines
Measured = dict[str, Any]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Benchmark:
    """Ratios with their goals, and the raw figures behind them."""

    name: str
    ratios: dict[str, tuple[float, float, str]]  # name -> measured, goal, what it says
    raw: Measured

    def table(self) -> Table:
        """For a terminal."""
        rows = tuple(
            (name, measured, goal, "yes" if measured >= goal else "no", about)
            for name, (measured, goal, about) in self.ratios.items()
        )
        return Table(self.name, ("ratio", "measured", "goal", "reached", "meaning"), rows)

    def to_json(self) -> Measured:
        """For a program."""
        return {
            "benchmark": self.name,
            "machine": {"processor": platform.machine(), "torch": str(torch.__version__)},
            "ratios": {
                name: {"measured": m, "goal": g, "reached": m >= g, "meaning": about}
                for name, (m, g, about) in self.ratios.items()
            },
            "raw": self.raw,
        }


BENCHMARKS: Registry[Callable[[], Benchmark]] = Registry("benchmark")


def agree(what: str, ours: Any, plain: Any, close: float = 1e-4) -> None:
    """Refuse to compare two programs that compute different things: numbers, or many of them."""
    apart = float(np.abs(np.asarray(ours) - np.asarray(plain)).max())
    if not apart <= close:
        raise RegardError(
            f"{what}: ours and the plain program's lie {apart:g} apart, so there is nothing to"
            " compare. One of the two is wrong."
        )


def take_turns(
    *works: Work, rounds: int, calls: int = 1, cold: int = 0, clock: Clock = time.process_time
) -> list[list[float]]:
    """The times of several works, taken in turns so that a noisy machine is fair to all.

    The first `cold` calls of each turn find cold caches and do not count.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, taken in zip(works, times, strict=True):
            taken += [time_once(work, clock) for _ in range(calls)][cold:]
    return times


def medians_in_turns(
    *works: Work,
    rounds: int = 12,
    calls: int = 25,
    cold: int = 3,
    clock: Clock = time.perf_counter,
) -> list[float]:
    """The median time of each work; see `take_turns`."""
    times = take_turns(*works, rounds=rounds, calls=calls, cold=cold, clock=clock)
    return [statistics.median(taken) for taken in times]


def time_once(work: Work, clock: Clock = time.process_time) -> float:
    """What one call takes."""
    start = clock()
    work()
    return clock() - start


def median_time(
    work: Work, at_least: float = 2.0, warmup: int = 3, clock: Clock = time.perf_counter
) -> float:
    """The median time of one call, over calls for some seconds."""
    for _ in range(warmup):
        work()
    times: list[float] = []
    end = clock() + at_least
    while clock() < end or len(times) < 3:
        times.append(time_once(work, clock))
    return statistics.median(times)


def matmul_peak(size: int = 1024, clock: Clock = time.perf_counter) -> float:
    """Floating-point operations a second of a large matrix product, at its best."""
    a = torch.randn(size, size)
    return 2 * size**3 / min(median_time(lambda: a @ a, 0.5, clock=clock) for _ in range(3))


def start_process(module: str, *words: object, threads: int = 1) -> subprocess.Popen[str]:
    """A module of this package in a process of its own, with so many threads."""
    return subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict.fromkeys(THREADS, str(threads))},
        cwd=Path(__file__).parents[1],
    )
