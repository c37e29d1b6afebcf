"""What an update's time goes into, without a word about it in the program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch

from benchmarks.benchmark import Measured, median_time
from regard.training import Trainer, loop
from regard.training.adam import Adam

Functions = tuple[tuple[Any, str], ...]  # whose function of which name

MOVES = 7  # Adam reads a weight, its gradient and two moments, and writes all but the gradient
WARM = 5  # updates before the clock starts
PARTS: dict[str, Functions] = {
    "forward": ((loop, "forward"), (loop, "likelihood"), (loop, "guidance")),
    "backward": ((torch.Tensor, "backward"),),
    "norm and clipping": ((torch, "_foreach_norm"), (torch, "_foreach_mul_")),
    "adam": ((Adam, "step"),),
}


@contextmanager
def stopwatch(parts: Mapping[str, Functions]) -> Iterator[dict[str, float]]:
    """The processor seconds of each part's functions, counted while it is open.

    Of parts that call each other, both would count the time.
    """
    seconds = dict.fromkeys(parts, 0.0)

    def watch(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[part] += time.process_time() - began

        return timed

    places = [(part, *place) for part, functions in parts.items() for place in functions]
    before = [(owner, name, getattr(owner, name)) for _, owner, name in places]
    for part, owner, name in places:
        setattr(owner, name, watch(part, getattr(owner, name)))
    try:
        yield seconds
    finally:
        for place in before:
            setattr(*place)


def profile_updates(trainer: Trainer, updates: int) -> Measured:
    """What an update's time goes into, and how near Adam is to the speed of the memory."""
    for _ in range(WARM):
        trainer.step()
    with stopwatch(PARTS) as seconds:
        began = time.process_time()
        for _ in range(updates):
            trainer.step()
        total = time.process_time() - began
    parts = {**seconds, "rest": total - sum(seconds.values())}
    moved = sum(p.numel() * p.element_size() for p in trainer.model.parameters()) * MOVES
    return {
        "seconds": total / updates,
        "shares": {name: taken / total for name, taken in parts.items()},
        "adam_bytes": moved,
        "adam_gigabytes_per_second": moved * updates / seconds["adam"] / 1e9,
        "copy_gigabytes_per_second": moved / copy_seconds(moved) / 1e9,
    }


def copy_seconds(moved: int) -> float:
    """The median time of a copy that reads and writes so many bytes together."""
    source = torch.ones(moved // 8)  # four bytes each, read once and written once
    target = torch.empty_like(source)
    return median_time(lambda: target.copy_(source), 0.2, clock=time.process_time)
