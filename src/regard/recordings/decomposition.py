"""h = μ + χ + Δ: hidden states as temporal, input and delta components (aitken2021, eqs. 1-2).

One pass, constant memory: only sums are kept, and sums from other batches, processes or machines
add up to the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.display import Figure, Table
from regard.errors import RegardError
from regard.models.layers.score_functions import ACTIVATIONS
from regard.recordings.adding import Stats, Summed, add_up, steady
from regard.recordings.recording import Recording, open_recording
from regard.recordings.site import AXIS_OF, Site
from regard.recordings.storage import Array

SMALL = 64  # vocabularies up to this size are summed step by step and word by word at once


class Parts(NamedTuple):
    """The three components of some states, each (sample, time, features)."""

    temporal: Tensor
    input: Tensor
    delta: Tensor


@dataclass(frozen=True)
class Components:
    """The averages of one set of states: μ_t, χ_x and how often each word stood at each step.

    `temporal` (time, features), `input` (word, features), `counts` (word, time). A word that
    never occurred has a zero input component, a step that never occurred a zero temporal one.
    """

    temporal: Array
    input: Array
    counts: Array

    @property
    def seen(self) -> Array:
        """The numbers of the words that occurred."""
        return np.flatnonzero(self.counts.sum(axis=1))

    @property
    def steps(self) -> int:
        """How many steps there are, up to the last that occurred."""
        return int(np.flatnonzero(self.counts.sum(axis=0)).max(initial=-1)) + 1

    def reached(self, share: float) -> int:
        """How many steps, from the first, at least a `share` of the most samples reach."""
        samples = self.counts.sum(axis=0)
        kept = samples[: self.steps] >= share * samples.max(initial=0)
        return int(np.flatnonzero(kept).max(initial=-1)) + 1

    @cached_property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """μ and χ as float32 tensors."""
        return torch.from_numpy(self.temporal).float(), torch.from_numpy(self.input).float()

    def select(self, words: Array, start: int, steps: int) -> Components:
        """Those of some words (by number) and of `steps` steps from `start` on, in that order.

        Steps past the last one are steps that never occurred.
        """
        inside = slice(start, max(start, min(start + steps, len(self.temporal))))
        missing = steps - (inside.stop - inside.start)
        temporal, counts = self.temporal[inside], self.counts[words][:, inside]
        if missing:
            temporal = np.pad(temporal, ((0, missing), (0, 0)))
            counts = np.pad(counts, ((0, 0), (0, missing)))
        return Components(temporal, self.input[words], counts)

    def parts(self, states: Array, words: Array) -> Parts:
        """The components of some states: they add up to the state, to float rounding.

        states (sample, time, features), words (sample, time)
        """
        temporal, inputs = self.tensors
        states_, numbers = as_tensor(states), as_tensor(words).long()
        mu = temporal[: states_.shape[1]].expand_as(states_)
        chi = inputs[numbers]
        return Parts(mu, chi, states_ - mu - chi)

    def delta(self, states: Array, words: Array) -> Array:
        """Δ = h − μ − χ of any chunk. (sample, time, features)"""
        found: Array = self.parts(states, words).delta.numpy()
        return found


SUMS = ("temporal", "input", "counts")


class Sums:
    """Σh per step, Σh per word, and n(x, t): all that the decomposition needs.

    `update` takes a batch, `merge` another's sums, `result` gives the components:
    μ_t = Σ_t h / n(t), χ_x = (Σ_x h − Σ_t n(x,t) μ_t) / n(x).
    """

    def __init__(self, words: int, time: int, features: int):
        self.temporal = torch.zeros(time, features, dtype=torch.float64)
        self.input = torch.zeros(words, features, dtype=torch.float64)
        self.counts = torch.zeros(words, time, dtype=torch.int64)

    def update(self, states: Array | Tensor, words: Array | Tensor, mask: Array | Tensor) -> None:
        """states (sample, time, features), words and mask (sample, time)"""
        h, numbers, mask = as_tensor(states), as_tensor(words).long(), as_tensor(mask)
        vocabulary, time = self.counts.shape
        width = h.shape[1]
        if vocabulary <= SMALL:
            # The sum of every word at every step; both sums follow from it.
            groups = torch.arange(width) * vocabulary + numbers  # (sample, time)
            groups = groups.masked_fill(~mask, width * vocabulary).flatten()  # padding's own
            both = h.new_zeros(width * vocabulary + 1, h.shape[2])
            both.index_add_(0, groups, h.flatten(0, 1))
            both = both[:-1].view(width, vocabulary, -1).double()
            self.temporal[:width] += both.sum(dim=1)
            self.input += both.sum(dim=0)
            counts = torch.bincount(groups, minlength=width * vocabulary + 1)[:-1]
            self.counts[:, :width] += counts.view(width, vocabulary).t()
            return
        kept = h[mask].double()  # (words there, features)
        steps = torch.arange(width).expand_as(numbers)[mask]
        self.temporal.index_add_(0, steps, kept)
        self.input.index_add_(0, numbers[mask], kept)
        flat = torch.bincount(numbers[mask] * time + steps, minlength=vocabulary * time)
        self.counts += flat.view(vocabulary, time)

    def merge(self, other: Sums) -> Sums:
        """The sums of both, in place."""
        if self.counts.shape != other.counts.shape or self.input.shape != other.input.shape:
            raise RegardError(
                f"Sums over {tuple(other.counts.shape)} words and steps do not add to sums over"
                f" {tuple(self.counts.shape)}."
            )
        self.temporal += other.temporal
        self.input += other.input
        self.counts += other.counts
        return self

    @classmethod
    def of(cls, stats: Stats, name: str) -> Sums:
        """The sums that stand under a name among some statistics."""
        made = cls(0, 0, 0)
        made.temporal, made.input, made.counts = (
            torch.from_numpy(stats[f"{name}.{what}"]) for what in SUMS
        )
        return made

    def stats(self, name: str) -> Stats:
        """The sums as plain arrays, under a name."""
        return {f"{name}.{what}": getattr(self, what).numpy() for what in SUMS}

    def result(self) -> Components:
        """μ and χ."""
        at_step = self.counts.sum(dim=0).clamp(min=1)
        of_word = self.counts.sum(dim=1).clamp(min=1)
        mu = self.temporal / at_step[:, None]
        chi = (self.input - self.counts.double() @ mu) / of_word[:, None]
        return Components(mu.numpy(), chi.numpy(), self.counts.numpy())


@dataclass(frozen=True)
class StateSums(Summed):
    """Σh per step and per word, and n(x, t), of the states of both sides."""

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By side: `encoder.temporal`, `encoder.input`, `encoder.counts`, …"""
        sides = [side for side in AXIS_OF if f"{side}.states" in part]
        sums = {side: _sums(part, side, f"{side}.states") for side in sides}
        names = [f"{side}.{what}" for side in sides for what in ("states", "words", "mask")]
        for chunk in part.chunks(names):
            for side, total in sums.items():
                total.update(*(chunk[f"{side}.{what}"] for what in ("states", "words", "mask")))
        return {n: a for side, total in sums.items() for n, a in total.stats(side).items()}


@dataclass(frozen=True)
class HeadSums(Summed):
    """The same of an array (sample, head, time, features) of one side, head by head.

    `site` names the attention whose lag its words follow; none: the words as they are.
    """

    array: str
    side: str
    site: str | None = None

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By head: `0.temporal`, `0.input`, `0.counts`, …"""
        site = None if self.site is None else part.metadata.sites[self.site]
        heads = part.shape(self.array)[1]
        sums = [_sums(part, self.side, self.array) for _ in range(heads)]
        for chunk in part.chunks([self.array, f"{self.side}.words", f"{self.side}.mask"]):
            words, mask = chunk[f"{self.side}.words"], chunk[f"{self.side}.mask"]
            words = words if site is None else site.shift_words(words)
            for head, total in enumerate(sums):
                total.update(chunk[self.array][:, head], words, mask)
        return {n: a for k, total in enumerate(sums) for n, a in total.stats(str(k)).items()}


@dataclass(frozen=True)
class SiteComponents:
    """The components of one attention's queries and keys, head by head."""

    name: str
    site: Site
    queries: tuple[Components, ...]
    keys: tuple[Components, ...]
    vector: Array | None = None  # (head, features), where scores = vector · f(queries + keys)

    def head(self, number: int) -> tuple[Components, Components]:
        """The components of one head's queries and keys."""
        if not 0 <= number < len(self.queries):
            raise RegardError(
                f"head={number} does not fit: '{self.name}' has the heads"
                f" 0 to {len(self.queries) - 1}."
            )
        return self.queries[number], self.keys[number]

    def temporal(self, head: int = 0, past: bool = False) -> Array:
        """The score of every mean query with every mean key: μ_s·μ_t. (target, source)

        With `past`, what a decoder's look at itself cannot see is minus infinity.
        """
        found = self._temporal(head)
        if past and self.site.causal:
            found = np.where(np.tril(np.ones(found.shape, np.bool_)), found, -np.inf)
        return found

    def _temporal(self, head: int) -> Array:
        queries, keys = (part.temporal[: part.steps] for part in self.head(head))
        if self.vector is None:
            found: Array = queries @ keys.T
            return found
        found = ACTIVATIONS[self.site.score](queries[:, None] + keys[None]) @ self.vector[head]
        return found


@dataclass(frozen=True, repr=False)
class Decomposition:
    """The decomposition of a recording's states, and on demand of its queries and keys.

    `.encoder` and `.decoder` are `Components`; `.site(name)` those of an attention site.
    """

    # Not the recording that keeps this: two that hold each other stay in memory for too long.
    bare: Recording = field(repr=False)
    encoder: Components
    decoder: Components | None
    sites: dict[str, SiteComponents] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, recording: Recording) -> Decomposition:
        """In one pass over the recording, some samples at a time."""
        sides = [side for side in AXIS_OF if f"{side}.states" in recording]
        if "encoder" not in sides:
            raise RegardError(
                "This recording has no encoder.states, so there is nothing to decompose."
            )
        stats = add_up(StateSums(), recording)
        with steady([recording]):
            found = {side: Sums.of(stats, side).result() for side in sides}
        return cls(replace(recording), found["encoder"], found.get("decoder"))

    def __repr__(self) -> str:
        sides = "encoder" if self.decoder is None else "encoder, decoder"
        return f"<Decomposition h = μ + χ + Δ of {len(self.bare)} samples: {sides}>"

    def _repr_html_(self) -> str:
        return self.table().html()

    @property
    def recording(self) -> Recording:
        """The recording, which keeps this decomposition."""
        made = replace(self.bare)
        vars(made)["decomposition"] = self
        return made

    @property
    def decoding(self) -> Components:
        """The decoder's components, which must be there."""
        if self.decoder is None:
            raise RegardError("This recording has no decoder.states. Record the decoder, too.")
        return self.decoder

    def site(self, name: str | None = None) -> SiteComponents:
        """The components of a site's queries and keys: made once, and kept."""
        name = self.bare.site(name)
        if name not in self.sites:
            self.sites[name] = self._site(name, self.bare.metadata.sites[name])
        return self.sites[name]

    def _site(self, name: str, site: Site) -> SiteComponents:
        if f"{name}.queries" not in self.bare:
            raise RegardError(
                f"Of '{name}' only the weights are recorded, so that there are no queries and keys"
                " to take apart. Record them, or take an instrument that reads weights."
            )
        if site.plain and self.decoder is not None:
            return SiteComponents(name, site, (self.decoder,), (self.encoder,))
        queries = self.heads(f"{name}.queries", site.query_side, name)
        keys = self.heads(f"{name}.keys", site.key_side)
        vector = None if site.bilinear else self.bare[f"{name}.vector"]
        return SiteComponents(name, site, queries, keys, vector)

    def heads(self, array: str, side: str, site: str | None = None) -> tuple[Components, ...]:
        """The components of an array (sample, head, time, features) of one side, head by head.

        Of queries, `site` names the attention: their words are those that it knows.
        """
        stats = add_up(HeadSums(array, side, site), self.bare)
        heads = range(self.bare.shape(array)[1])
        with steady([self.bare]):
            return tuple(Sums.of(stats, str(head)).result() for head in heads)

    def table(self) -> Table:
        """How large the components are, as a table."""
        return self.recording.inspect("sizes").table()

    def figure(self) -> Figure:
        """How large the components are, as a figure."""
        return self.recording.inspect("sizes").figure()

    def save(self, folder: str | Path) -> list[Path]:
        """How large the components are, as files in a folder."""
        return self.recording.inspect("sizes").save(folder)


def decompose(recording: Recording, rows: int | None = None) -> Decomposition:
    """h = μ + χ + Δ for the encoder's and the decoder's states (aitken2021, eqs. 1-2).

    μ_t is the mean state at step t over the samples that have one; χ_x the mean of h − μ over all
    states that follow the word x; Δ what is left. In one pass, `rows` samples at a time, as all
    instruments then read it that are put on it; without them, what `recording.decomposition`
    keeps. Decoder words are the words fed in, `<SOS>` included.

    >>> d = regard.decompose(recording)                       # doctest: +SKIP
    >>> d.encoder.temporal, d.encoder.input, d.encoder.counts # doctest: +SKIP
    """
    opened = open_recording(recording)
    return (opened if rows is None else replace(opened, rows=rows)).decomposition


def _sums(recording: Recording, side: str, array: str) -> Sums:
    words = len(recording.words(side))
    shape = recording.shape(array)
    return Sums(words, shape[-2], shape[-1])


def as_tensor(values: Array | Tensor) -> Tensor:
    """A tensor on the same memory."""
    return values if isinstance(values, Tensor) else torch.from_numpy(np.ascontiguousarray(values))
