"""A model that runs under changes, which `_changes.py` has: what they are, and where they reach.

A change names the hook points that it needs and says what becomes of the numbers there. The same
change holds at all steps at once and step by step, so words can be chosen under it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.layers.hook_point import Side
from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording
from regard.recordings.compact import number_seen
from regard.recordings.site import Site
from regard.recordings.storage import Array


@dataclass
class Sentence:
    """What is read and fed while changes are on; `feed` tells them before every pass or step."""

    source: Tensor  # (batch, source)
    fed: Tensor = field(default_factory=lambda: torch.empty(0, 0, dtype=torch.long))
    reference: Recording | None = None  # whose components are used: it may number words otherwise
    passes: int = 0
    kept: dict[Any, Tensor] = field(default_factory=dict)  # what changes need of the source

    def begin(self) -> None:
        """A new pass of the decoder: steps count from 0 again."""
        self.passes += 1

    def feed(self, words: Tensor) -> None:
        """What is fed up to now. (batch, target)"""
        self.fed = words

    def words(self, side: Side, start: int, steps: int, site: Site | None = None) -> Array:
        """The words of some steps of one side, as a query that lags behind knows them."""
        given = self.source if side == "encoder" else self.fed
        words: Array = given.cpu().numpy()
        if self.reference is not None:
            words = number_seen(self.reference, side, words)
        if site is not None and side == site.query_side:
            words = site.shift_words(words)
        return words[:, start : start + steps]


@dataclass(frozen=True)
class Passing:
    """What passes a hook point: its name, the first step of it, and what it was made of."""

    point: str
    start: int
    made_of: tuple[Tensor, ...]
    sentence: Sentence

    @property
    def part(self) -> str:
        """`queries`, `scores`, …"""
        return self.point.rpartition(".")[2]


class Change(ABC):
    """One change of a model."""

    @abstractmethod
    def points(self) -> Sequence[str]:
        """The hook points where it happens."""

    @abstractmethod
    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """What becomes of the numbers that pass there."""

    @property
    def first_step(self) -> int:
        """The first decoder step that is changed."""
        return 0


class _Hook:
    """A change at one hook point, which knows how many steps have passed it."""

    def __init__(self, change: Change, point: str, side: str, sentence: Sentence):
        self.change, self.point, self.side, self.sentence = change, point, side, sentence
        self.seen = self.steps = 0

    def __call__(self, _module: nn.Module, args: tuple[Tensor, ...], x: Tensor) -> Tensor:
        if self.seen != self.sentence.passes:
            self.seen, self.steps = self.sentence.passes, 0
        # A model may run all words so far at each step: then the rows are counted from 0 again.
        if self.steps + x.shape[-2] > self.sentence.fed.shape[1]:
            self.steps = 0
        start = 0 if self.side == "encoder" else self.steps
        self.steps += x.shape[-2]
        return self.change.apply(x, Passing(self.point, start, args, self.sentence))


@contextmanager
def steer(model: Seq2Seq, changes: Sequence[Change], sentence: Sentence) -> Iterator[None]:
    """The model with changes on; they are gone afterwards, whatever happens."""
    points = model.hook_points()
    wanted = [(change, name) for change in changes for name in change.points()]
    strange = [unknown("place to change", name, points) for _, name in wanted if name not in points]
    if strange:
        raise RegardError(*dict.fromkeys(strange))
    handles = [
        points[name].register_forward_hook(_Hook(change, name, points[name].side, sentence))
        for change, name in wanted
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def find_reach(
    sites: Mapping[str, Site], changes: Sequence[Change], free: bool
) -> dict[str, int | None]:
    """From which row on each attention's weights could have changed at all; None: nowhere.

    With `free`, the words fed after a changed step may be others, too. `output` is the row of the
    first output word that could be another.
    """
    first: dict[str, int | None] = dict.fromkeys(sites)
    order = sorted(sites, key=lambda name: _depth(sites[name]))
    output: int | None = None

    def reach(name: str, row: int) -> None:
        old = first[name]
        first[name] = row if old is None else min(old, row)

    for change in changes:
        row = change.first_step
        deepest = min(_depth_of_point(point, sites) for point in change.points())
        for name in order:
            if _depth(sites[name]) >= deepest:
                reach(name, 0 if sites[name].query_side == "encoder" else row)
            if free and sites[name].query_side == "decoder":
                reach(name, row + 1)
        output = row if output is None else min(output, row)
    return {**first, "output": output}


def _depth(site: Site) -> tuple[int, int, int]:
    """Where a site stands in the order of computation: side, layer, self before cross."""
    return (int(site.query_side == "decoder"), site.layer, int(site.crosses))


def _depth_of_point(point: str, sites: Mapping[str, Site]) -> tuple[int, int, int]:
    name = point.rpartition(".")[0]
    if name in sites:
        site = sites[name]
        return _depth(site)
    if point == "encoder.states":  # read by every attention that crosses
        crossing = [_depth(site) for site in sites.values() if site.crosses]
        return min(crossing, default=(1, 0, 1))
    # The decoder's states: with attention after the step they ask, else they end in the output.
    asking = [_depth(site) for site in sites.values() if site.query_side == "decoder"]
    plain = len(asking) == 1
    return asking[0] if plain else (2, 0, 0)
