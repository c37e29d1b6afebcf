"""Changes of a running model: terms scaled, weights set, heads, units and components taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError, unknown
from regard.instruments.components._terms import TERMS, nine_terms, substituted_terms
from regard.instruments.interventions._steering import Change, Passing
from regard.instruments.interventions.ablate import PARTS, WHERE
from regard.models.layers.hook_point import Side
from regard.recordings.decomposition import Components, SiteComponents
from regard.recordings.storage import Array


@dataclass(frozen=True)
class ScaleTerms(Change):
    """scores = Σ f · term over the nine terms (aitken2021, eq. 3), with a factor f for each.

    In all heads, or in one.
    """

    parts: SiteComponents
    factors: tuple[float, ...]
    head: int | None = None

    def __post_init__(self) -> None:
        if len(self.factors) != len(TERMS):
            raise RegardError(f"There are {len(TERMS)} terms, but {len(self.factors)} factors.")
        if not self.parts.site.bilinear:
            raise RegardError(
                f"The scores of '{self.parts.name}' are not products of queries and keys, so their"
                " terms do not add up and cannot be scaled one by one."
            )

    def points(self) -> Sequence[str]:
        """The scores."""
        return (f"{self.parts.name}.scores",)

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, head, target, source): Σ_i a_i · (Σ_j f_ij b_j), a and b the parts of both."""
        _, queries, keys = at.made_of
        heads = list(x.unbind(1))
        for head in range(len(heads)) if self.head is None else (self.head,):
            site, (own, _) = self.parts.site, self.parts.head(head)
            words = at.sentence.words(site.query_side, at.start, x.shape[2], site)
            parts, numbers = renumber(own, words, at.start)
            asked = parts.parts(queries[:, head].detach().cpu().numpy(), numbers.numpy())
            mixed = self._mix(keys[:, head if keys.shape[1] > 1 else 0], head, at).to(x)
            ours = torch.stack(asked).to(x)  # (part, batch, target, features)
            heads[head] = torch.einsum("ibtf,ibsf->bts", ours, mixed.expand(-1, len(x), -1, -1))
        return torch.stack(heads, dim=1)

    def _mix(self, keys: Tensor, head: int, at: Passing) -> Tensor:
        """Σ_j f_ij b_j of the keys' parts; a source's are the same at every step. (3, batch, …)"""
        fixed = self.parts.site.key_side == "encoder"
        name = (id(self), head, keys.data_ptr(), tuple(keys.shape))
        if fixed and name in at.sentence.kept:
            return at.sentence.kept[name]
        words = at.sentence.words(self.parts.site.key_side, 0, keys.shape[1])
        if len(words) < len(keys):  # a beam of one sentence
            words = np.repeat(words, len(keys), axis=0)
        parts, numbers = renumber(self.parts.head(head)[1], words, 0)
        theirs = torch.stack(parts.parts(keys.detach().cpu().numpy(), numbers.numpy()))
        factors = torch.tensor(self.factors, dtype=theirs.dtype).view(3, 3)
        at.sentence.kept[name] = torch.einsum("ij,jbsf->ibsf", factors, theirs)
        return at.sentence.kept[name]


def split_scores(
    parts: SiteComponents, head: int, queries: Tensor, keys: Tensor, scores: Tensor, at: Passing
) -> Tensor:
    """The nine terms of every cell of one head's scores. -> (9, batch, target, source)

    queries (batch, target, features) begin with step `at.start`, keys (batch, source, features).
    Where scores are not products, terms are found by substitution, as in `breakdown`.
    """
    site, target, source = parts.site, queries.shape[1], keys.shape[1]
    ours = at.sentence.words(site.query_side, at.start, target, site)
    theirs = at.sentence.words(site.key_side, 0, source)
    own, others = parts.head(head)
    query_parts, query_words = renumber(own, ours, at.start)
    key_parts, key_words = renumber(others, theirs, 0)
    every = torch.arange(source).expand(len(scores), target, source)
    q, k, s = (x.detach().cpu() for x in (queries, keys, scores))
    both = q, k, query_words, key_words, query_parts, key_parts
    if parts.vector is None:
        return nine_terms(*both, s, every)
    return substituted_terms(*both, torch.from_numpy(parts.vector[head]), every, site.score)


def renumber(components: Components, words: Array, start: int) -> tuple[Components, Tensor]:
    """The components of some words (batch, time) only, and the words by their new numbers.

    A sentence has few words: tables over a whole vocabulary would cost far more than it.
    """
    used, places = np.unique(words, return_inverse=True)
    found = torch.from_numpy(places.reshape(words.shape).astype(np.int64))
    return components.select(used, start, words.shape[1]), found


@dataclass(frozen=True)
class SetWeight(Change):
    """The weight of one source position at one decoder step; the others share what is left."""

    site: str
    step: int
    source: int
    weight: float
    head: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise RegardError(f"weight={self.weight:g} does not fit: it is between 0 and 1.")

    def points(self) -> Sequence[str]:
        """The weights."""
        return (f"{self.site}.weights",)

    @property
    def first_step(self) -> int:
        """That step."""
        return self.step

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, head, target, source) with one cell set, its row still adding up to 1."""
        check_head(self.site, self.head or 0, x.shape[1])
        row = self.step - at.start
        if not 0 <= row < x.shape[2] or self.source >= x.shape[3]:
            return x
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        x = x.clone()
        rows = x[:, heads, row]
        own = rows[..., self.source : self.source + 1]
        left = (1 - own).clamp(min=torch.finfo(x.dtype).tiny)
        rows = torch.where(own < 1, rows * (1 - self.weight) / left, rows)
        rows[..., self.source] = self.weight
        x[:, heads, row] = rows
        return x


@dataclass(frozen=True)
class RemoveHead(Change):
    """A head whose weights are all zero: nothing of what it looks at gets through."""

    site: str
    head: int

    def points(self) -> Sequence[str]:
        """The weights."""
        return (f"{self.site}.weights",)

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, head, target, source)"""
        check_head(self.site, self.head, x.shape[1])
        x = x.clone()
        x[:, self.head] = 0
        return x


def check_head(site: str, head: int, heads: int) -> None:
    """Refuse a head that is not there."""
    if not 0 <= head < heads:
        raise RegardError(f"head={head} does not fit: '{site}' has the heads 0 to {heads - 1}.")


@dataclass(frozen=True)
class RemoveUnit(Change):
    """A unit that is zero in every state of one side, as attention and output layer read it."""

    side: Side
    unit: int

    def points(self) -> Sequence[str]:
        """The states."""
        return (f"{self.side}.states",)

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, time, features)"""
        if not 0 <= self.unit < x.shape[2]:
            raise RegardError(
                f"There is no unit {self.unit}: the {self.side}'s states have {x.shape[2]}."
            )
        x = x.clone()
        x[:, :, self.unit] = 0
        return x


@dataclass(frozen=True)
class PutState(Change):
    """Another state at one step of one side, as attention and output layer read it."""

    side: Side
    step: int
    state: tuple[float, ...]

    def points(self) -> Sequence[str]:
        """The states."""
        return (f"{self.side}.states",)

    @property
    def first_step(self) -> int:
        """That step, where it is the decoder's."""
        return self.step if self.side == "decoder" else 0

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, time, features)"""
        place = self.step - at.start
        if not 0 <= place < x.shape[1]:
            return x
        if len(self.state) != x.shape[2]:
            raise RegardError(
                f"A state of {len(self.state)} units does not fit: the {self.side}'s have"
                f" {x.shape[2]}."
            )
        x = x.clone()
        x[:, place] = torch.tensor(self.state, dtype=x.dtype, device=x.device)
        return x


@dataclass(frozen=True)
class RemovePart(Change):
    """μ, χ or Δ taken out of queries, keys, both (`alignment`), or the context, as in `ablate`."""

    parts: SiteComponents
    values: tuple[Components, ...]
    part: str  # temporal, input or delta
    where: str  # queries, keys, alignment or context

    def __post_init__(self) -> None:
        faults = [] if self.part in PARTS else [unknown("component", self.part, PARTS)]
        faults += [] if self.where in WHERE else [unknown("place", self.where, WHERE)]
        if faults:
            raise RegardError(*faults)

    def points(self) -> Sequence[str]:
        """The site's queries, keys or values."""
        return [f"{self.parts.name}.{what}" for what in WHERE[self.where]]

    def apply(self, x: Tensor, at: Passing) -> Tensor:
        """(batch, head, time, features)"""
        site = self.parts.site
        side = site.query_side if at.part == "queries" else site.key_side
        words = at.sentence.words(
            side, at.start, x.shape[2], site if at.part == "queries" else None
        )
        of_heads = {"queries": self.parts.queries, "keys": self.parts.keys, "values": self.values}
        heads = []
        for one, components in zip(x.unbind(1), of_heads[at.part], strict=False):
            own, numbers = renumber(components, words, at.start)
            split = own.parts(one.detach().cpu().numpy(), numbers.numpy())
            heads.append(one - getattr(split, self.part).to(one))
        return torch.stack(heads, dim=1)
