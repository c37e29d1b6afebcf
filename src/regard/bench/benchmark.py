"""What a benchmark yields."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from regard.display import Table
from regard.registry import Registry

Clock = Callable[[], float]  # the wall's, or `time.process_time`, which rises less on busy machines


@dataclass(frozen=True)
class Benchmark:
    """Ratios with their goals, and the raw figures behind them."""

    name: str
    ratios: dict[str, tuple[float, float, str]]  # name -> measured, goal, what it says
    raw: dict[str, Any]

    def table(self) -> Table:
        """For a terminal."""
        rows = tuple(
            (name, measured, goal, "yes" if measured >= goal else "no", about)
            for name, (measured, goal, about) in self.ratios.items()
        )
        return Table(self.name, ("ratio", "measured", "goal", "reached", "meaning"), rows)

    def to_json(self) -> dict[str, Any]:
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


benchmarks: Registry[Callable[[], Benchmark]] = Registry("benchmark")


def seconds(
    work: Callable[[], object],
    seconds_at_least: float = 2.0,
    warmup: int = 3,
    clock: Clock = time.perf_counter,
) -> float:
    """The median time of one call, over calls for some seconds."""
    for _ in range(warmup):
        work()
    times: list[float] = []
    end = clock() + seconds_at_least
    while clock() < end or len(times) < 3:
        times.append(_once(work, clock))
    return statistics.median(times)


def in_turns(
    *works: Callable[[], object],
    rounds: int = 12,
    calls: int = 25,
    cold: int = 3,
    clock: Clock = time.perf_counter,
) -> list[float]:
    """The median times of several works, taken in turns so that a noisy machine is fair to all.

    The first `cold` calls of each turn find cold caches and do not count.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, taken in zip(works, times, strict=True):
            taken += [_once(work, clock) for _ in range(calls)][cold:]
    return [statistics.median(taken) for taken in times]


def _once(work: Callable[[], object], clock: Clock) -> float:
    start = clock()
    work()
    return clock() - start


def matmul_peak(size: int = 1024, clock: Clock = time.perf_counter) -> float:
    """Floating-point operations a second of a large matrix product, at its best."""
    a = torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: a @ a, 0.5, clock=clock) for _ in range(3))
