"""Heads taken out of a model: whole, or one component of what they ask, answer and mix."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.instruments.interventions.ablate import (
    WHERE,
    Edit,
    Tried,
    decompose,
    record_site,
)
from regard.models.layers.attention import Site
from regard.models.seq2seq import Output, Seq2Seq
from regard.recordings.recording import Recording
from regard.training.evaluation import evaluating

Part = Literal["whole", "temporal", "input", "delta"]
Where = Literal["queries", "keys", "alignment", "context"]
PARTS_OF_HEADS = get_args(Part)


class Silence:
    """A hook that sets some heads to zero. (batch, head, time, features)"""

    def __init__(self, heads: Collection[int]):
        self.heads = sorted(heads)

    def __call__(self, _module: nn.Module, _inputs: object, values: Tensor) -> Tensor:
        """The values, or weights, with nothing in these heads."""
        changed = values.clone()
        changed[:, self.heads] = 0
        return changed


class Silencer:
    """What takes heads out of one model; components are measured once, on the same samples."""

    def __init__(self, tried: Tried, part: Part, where: Where, layer: int | None = None):
        self.tried, self.part, self.where = tried, part, where
        self.points = tried.model.hook_points()
        self.heads, self.silent = _count_heads(tried, layer)
        self.seen: dict[str, Recording] = {}
        if part != "whole":
            self.seen = {site: self.record(site) for site in self.heads}
        self.parts = {site: decompose(seen, site) for site, seen in self.seen.items()}

    def record(self, site: str) -> Recording:
        """What passes one attention, over all samples."""
        given = self.tried
        return record_site(given.model, given.batches, given.vocabularies, site, given.conventions)

    @property
    def every(self) -> list[tuple[str, int]]:
        """All heads, by site and number."""
        return [(site, head) for site, count in self.heads.items() for head in range(count)]

    def edits(self, chosen: Collection[tuple[str, int]]) -> dict[nn.Module, Any]:
        """The hooks that take out some heads."""
        found: dict[nn.Module, Any] = {}
        for site in self.heads:
            own = frozenset(head for name, head in chosen if name == site)
            if not own:
                continue
            if self.part == "whole":
                found[self.points[f"{site}.{self.silent[site]}"]] = Silence(own)
                continue
            for what in WHERE[self.where]:
                found[self.points[f"{site}.{what}"]] = Edit(
                    "remove", self.part, what, self.parts[site][what], 0, own, self.seen[site]
                )
        return found


def _count_heads(tried: Tried, layer: int | None) -> tuple[dict[str, int], dict[str, str]]:
    """The heads of each attention to the source, and where they are silenced: at their values, or
    at their weights where all heads mix the same."""
    model = tried.model
    with evaluating(model) as device, torch.no_grad():
        sites = _run(model, tried, device)
    crossing = {name: site for name, site in sites.items() if site.crosses}
    kept = {n: s for n, s in crossing.items() if layer in (None, s.layer)}
    if not crossing:
        raise RegardError("This model has no attention to change. Take one with attention.")
    if not kept:
        layers = ", ".join(map(str, sorted({s.layer for s in crossing.values()})))
        raise RegardError(f"layer={layer} does not fit: there are {layers}.")
    bare = [n for n, s in kept.items() if s.score == "given"]
    if bare:
        raise RegardError(
            f"Of '{bare[0]}' only the weights are known, so that its heads cannot be changed. Give"
            " the places of its queries, keys and values."
        )
    heads = {name: site.scores.shape[1] for name, site in kept.items()}
    silent = {n: "values" if s.values.shape[1] == heads[n] else "weights" for n, s in kept.items()}
    return heads, silent


def _run(model: Seq2Seq, tried: Tried, device: Any) -> Mapping[str, Site]:
    batch = tried.batches[0][:1].to(device)
    output: Output = model(batch.source, batch.source_lengths, batch.inputs)
    return output.sites
