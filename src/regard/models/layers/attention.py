"""Attention: how a decoder state asks, how encoder states answer.

A site is one place where attention happens. It keeps everything an instrument may want:
queries, keys, scores before the softmax, weights after it, and what all of these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.models.layers.hook_point import AttentionPoints, Side
from regard.models.layers.score_functions import ACTIVATIONS
from regard.registry import Registry

Merge = Literal["sum", "mean", "concatenate"]


@dataclass(frozen=True, kw_only=True)
class SiteKind:
    """What an attention is. `score` says how scores follow from queries and keys.

    `dot`: scores = queries · keys, which can be taken apart exactly. `additive`: scores =
    vector · tanh(queries + keys), which cannot; nor can `additive-relu`, the same with max(0, ·)
    and a constant on top.
    """

    query_side: Side = "decoder"
    key_side: Side = "encoder"
    layer: int = 0  # of the query side, from 0
    heads: int = 1
    score: str = "dot"
    lag: int = 0  # 1 where the query of a step is made before the step's word is read
    plain: bool = False  # queries and keys are the states themselves
    projected: bool = False  # weights mix V h, a learned map of the states, instead of the states
    scale: float = 1.0  # that the queries have been multiplied with
    masked: bool = True  # positions without a word get no weight

    @property
    def bilinear(self) -> bool:
        """Whether scores = queries · keys, so that the decomposition is exact."""
        return self.score == "dot"

    @property
    def crosses(self) -> bool:
        """Whether it looks from the target to the source."""
        return (self.query_side, self.key_side) == ("decoder", "encoder")


@dataclass(frozen=True)
class Site(SiteKind):
    """What one attention did, and what it is."""

    queries: Tensor  # (batch, head, target, features)
    keys: Tensor  # (batch, head or 1, source, features)
    values: Tensor  # (batch, head or 1, source, features), what the weights mix
    scores: Tensor  # (batch, head, target, source)
    weights: Tensor  # (batch, head, target, source), zero at masked positions
    vector: Tensor | None = None  # (head, features), where the score function needs one
    bias: Tensor | None = None  # (batch or 1, head, target, source): added to the scores


def join_steps(steps: Sequence[Site]) -> Site:
    """The sites of single target steps as one over all of them; the keys are the same for all."""
    queries, scores, weights = (
        torch.cat([getattr(step, name) for step in steps], dim=2)
        for name in ("queries", "scores", "weights")
    )
    return replace(steps[0], queries=queries, scores=scores, weights=weights)


ATTENTIONS: Registry[type[Attention]] = Registry("attention")


class Attention(nn.Module):
    """Scores between decoder states and encoder states, and the mixture that follows.

    A newcomer writes `queries` and `keys`, or makes a `query` and a `key` that map the states, and
    `scores` where they are not plain products; the mask, the softmax and the mixture are here.
    """

    many_heads: ClassVar[bool] = True
    sized: ClassVar[bool] = False  # queries and keys have a size that can be chosen
    needs_equal_sizes: ClassVar[bool] = False  # decoder and encoder states must have one size
    score: ClassVar[str] = "dot"  # the score function, see `Site`
    plain: ClassVar[bool] = False  # queries and keys are the states that it is given
    projected: ClassVar[bool] = False  # `values` are not the encoder states

    def __init__(
        self,
        hidden: int,
        heads: int = 1,
        size: int | None = None,
        merge: Merge = "sum",
        memory: int | None = None,
        layer: int = 0,
        lag: int = 0,
    ):
        super().__init__()
        self.hidden, self.heads, self.how = hidden, heads, merge
        self.memory = memory or hidden  # size of an encoder state
        self.size = size or hidden  # of a query and a key, per head
        self.layer, self.lag = layer, lag  # whose states ask, and how old they are
        self.at = AttentionPoints("attention", "decoder", "encoder")
        self.query: nn.Linear | None = None
        self.key: nn.Linear | None = None
        self.v: Tensor | None = None  # (head, size)
        self.make()

    def make(self) -> None:
        """Make the parameters, where there are any; all sizes are set by now."""

    def queries(self, states: Tensor) -> Tensor:
        """(batch, target, hidden) -> (batch, head, target, size)"""
        return states[:, None] if self.query is None else self.split(self.query(states))

    def keys(self, memory: Tensor) -> Tensor:
        """(batch, source, hidden) -> (batch, head or 1, source, size)"""
        return memory[:, None] if self.key is None else self.split(self.key(memory))

    def values(self, memory: Tensor) -> Tensor:
        """What the weights mix: the encoder states. -> (batch, head or 1, source, features)"""
        return memory[:, None]

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """How well each key answers each query. -> (batch, head, target, source)"""
        return queries @ keys.transpose(-1, -2)

    @property
    def vector(self) -> Tensor | None:
        """What the score function needs beside queries and keys. (head, size)"""
        return self.v

    @property
    def query_columns(self) -> tuple[Tensor, ...]:
        """The matrix that makes a query of a decoder state, a column per unit, if there is one."""
        return () if self.query is None else (self.query.weight,)

    @property
    def features(self) -> int:
        """The size of the context."""
        return self.memory * self.heads if self.how == "concatenate" else self.memory

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, which are the same at every decoder step."""
        return self.at.keys(self.keys(memory)), self.at.values(self.values(memory))

    def forward(
        self,
        states: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        forced_alignment: Tensor | None = None,
    ) -> tuple[Tensor, Site]:
        """states (batch, target, hidden), what `remember` gave, mask (batch, source).

        With a `forced_alignment` (batch, target) all weight lies there; -1 leaves it free.
        Returns the context (batch, target, features) and the site.
        """
        queries = self.at.queries(self.queries(states))
        scores = self.at.scores(self.scores(queries, keys), queries, keys)
        weights = masked_softmax(scores, mask[:, None, None, :])
        if forced_alignment is not None:
            weights = force_weights(weights, forced_alignment)
        weights = self.at.weights(weights)
        return self.merge(weights @ values), self.site(queries, keys, values, scores, weights)

    def site(
        self, queries: Tensor, keys: Tensor, values: Tensor, scores: Tensor, weights: Tensor
    ) -> Site:
        """What it did, and what that is."""
        return Site(
            queries, keys, values, scores, weights, self.vector, layer=self.layer,
            heads=self.heads, score=self.score, lag=self.lag,
            plain=self.plain and not self.lag, projected=self.projected,
        )  # fmt: skip

    def merge(self, heads: Tensor) -> Tensor:
        """The heads' contexts as one. (batch, head, target, hidden) -> (batch, target, …)"""
        if self.how == "concatenate":
            return heads.transpose(1, 2).flatten(2)
        return heads.sum(dim=1) if self.how == "sum" else heads.mean(dim=1)

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, head · size) -> (batch, head, time, size)"""
        batch, time, _ = x.shape
        return x.view(batch, time, self.heads, -1).transpose(1, 2)


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the last axis; positions not allowed get exactly zero."""
    return torch.softmax(scores.masked_fill(~allowed, float("-inf")), dim=-1)


def force_weights(weights: Tensor, alignment: Tensor) -> Tensor:
    """The weights (batch, head, target, source) with all of it where an alignment puts it.

    alignment (batch, target), -1 where the weights stay as they are.
    """
    forced = torch.nn.functional.one_hot(alignment.clamp(min=0), weights.shape[-1])
    return torch.where(
        (alignment >= 0)[:, None, :, None], forced[:, None].to(weights.dtype), weights
    )


@ATTENTIONS.register("dot")
class Dot(Attention):
    """Luong et al. 2015: a_ts = h_t · h_s, unscaled, with the current decoder state."""

    many_heads = False
    needs_equal_sizes = True
    plain = True


@ATTENTIONS.register("bilinear")
class Bilinear(Attention):
    """Luong et al. 2015, `general`: a_ts = (W h_t + b) · h_s; a W and b for each head."""

    query: nn.Linear

    def make(self) -> None:
        """W and b; a query has the size of an encoder state."""
        self.size = self.memory
        self.query = nn.Linear(self.hidden, self.heads * self.memory)

    @torch.no_grad()
    def draw(self, seeds: Sequence[int]) -> None:
        """Draw each head's W and b anew, with a seed of its own.

        A head has the same first weights in a model of one head and in one of many.
        """
        bound = self.hidden**-0.5
        weights, biases = (x.chunk(self.heads) for x in (self.query.weight, self.query.bias))
        for weight, bias, seed in zip(weights, biases, seeds, strict=True):
            generator = torch.Generator().manual_seed(seed)
            for part in (weight, bias):
                part.uniform_(-bound, bound, generator=generator)


@ATTENTIONS.register("scaled")
class Scaled(Attention):
    """Vaswani et al. 2017: a_ts = (Q h_t / √d) · (K h_s), and the weights mix V h_s."""

    sized = True
    projected = True
    query: nn.Linear

    def make(self) -> None:
        """Q, K and V."""
        self.query = nn.Linear(self.hidden, self.heads * self.size, bias=False)
        self.key = nn.Linear(self.memory, self.heads * self.size, bias=False)
        self.value = nn.Linear(self.memory, self.heads * self.memory, bias=False)

    def queries(self, states: Tensor) -> Tensor:
        """Q h_t / √d, the scale with the query so that scores are plain products."""
        return self.split(self.query(states) * self.size**-0.5)

    def values(self, memory: Tensor) -> Tensor:
        """V h_s"""
        return self.split(self.value(memory))


@ATTENTIONS.register("additive")
class Additive(Attention):
    """Bahdanau et al. 2015: a_ts = v · tanh(W h_t + U h_s + b). Not bilinear."""

    sized = True
    score = "additive"
    query: nn.Linear
    key: nn.Linear
    v: nn.Parameter

    def make(self) -> None:
        """W and b, U, and v."""
        self.query = nn.Linear(self.hidden, self.heads * self.size)
        self.key = nn.Linear(self.memory, self.heads * self.size, bias=False)
        self.v = nn.Parameter(torch.randn(self.heads, self.size) * self.size**-0.5)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """v · activation(query + key)"""
        both = queries[:, :, :, None] + keys[:, :, None]  # (…, target, source, size)
        return torch.einsum("bhtsf,hf->bhts", ACTIVATIONS[self.score](both), self.v)


@ATTENTIONS.register("additive-relu")
class AdditiveReLU(Additive):
    """baan2019's program: a_ts = v · max(0, W h_t + U h_s + b) + b'. Not bilinear."""

    score = "additive-relu"

    def make(self) -> None:
        """W and b, U, v, and b'."""
        super().make()
        self.bias = nn.Parameter(torch.zeros(self.heads))

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """v · max(0, query + key) + b'"""
        return super().scores(queries, keys) + self.bias[:, None, None]


@ATTENTIONS.register("unasked")
class QueryFree(Attention):
    """Wiegreffe and Pinter 2019; snell2021, eq. 7: a_s = v · max(0, Q h_s + b) + b'.

    Nothing asks: the weights depend on the encoder states alone.
    """

    sized = True
    score = "additive-relu"
    v: nn.Parameter

    def make(self) -> None:
        """Q and b, v, and b'."""
        self.key = nn.Linear(self.memory, self.heads * self.size)
        bound = self.size**-0.5
        self.v = nn.Parameter(torch.empty(self.heads, self.size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(self.heads).uniform_(-bound, bound))

    def queries(self, states: Tensor) -> Tensor:
        """Zeros."""
        return states.new_zeros(len(states), self.heads, states.shape[1], self.size)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """v · max(0, key) + b', the same for every query."""
        activated = ACTIVATIONS[self.score](keys)
        scores = torch.einsum("bhsf,hf->bhs", activated, self.v) + self.bias[:, None]
        return scores[:, :, None].expand(-1, -1, queries.shape[2], -1)


@ATTENTIONS.register("uniform")
class Uniform(Attention):
    """Every position alike: all scores are zero, whatever the states are."""

    many_heads = False

    def queries(self, states: Tensor) -> Tensor:
        """Zeros."""
        return states.new_zeros(len(states), 1, states.shape[1], self.size)

    def keys(self, memory: Tensor) -> Tensor:
        """Zeros."""
        return memory.new_zeros(len(memory), 1, memory.shape[1], self.size)
