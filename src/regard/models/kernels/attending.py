"""Inputs that attention makes at every step from the state before (baan2019)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.models.kernels.layout import Layout
from regard.models.kernels.recurrence import Kernel, Source, State


class Weights(NamedTuple):
    """A word's vector, attention, full focus, a cell's input, a readout."""

    memory: Tensor  # (b, s, h)
    keys: Tensor  # (b, s, a)
    table: Tensor  # (vocab, word)
    query: Tensor  # (a, h)
    query_bias: Tensor
    v: Tensor  # (a,)
    v_bias: Tensor  # (1,)
    focus: Tensor  # (h, h + word)
    focus_bias: Tensor
    ih: Tensor  # (blocks·h, h)
    ih_bias: Tensor
    readout: Tensor  # (vocab, h)
    readout_bias: Tensor


class Kept(NamedTuple):
    """What a step leaves for the way back."""

    word: Tensor  # (b,)
    h: Tensor  # (b, h), before the step
    bent: Tensor  # (b, s, a): max(0, query + key)
    weights: Tensor  # (b, s)
    joined: Tensor  # (b, h + word): context and word
    open: Tensor  # (b, h): max(0, …) of the focus
    x: Tensor  # (b, h): context ∘ open


class Attending(Source):
    """A decoder that attends before each step, with full focus.

    q = W h + b; a_s = v·max(0, q + k_s) + b'; α = softmax(a); c = Σ α_s h_s;
    x = c ∘ max(0, F [c; e] + b); after the cell's step, logits = R h' + b.
    A step that is not forced is fed the choice of the one before.

    Axes: batch b, time t, source positions s, attention's size a, hidden units h.
    """

    tensors: Weights

    def __init__(self, inputs: Tensor, forced: list[bool], mask: Tensor, weights: Weights):
        self.inputs, self.forced, self.tensors = inputs, forced, weights
        self.barred = None if bool(mask.all()) else ~mask  # (b, s)
        self.kept: list[Kept] = []
        self.found: list[list[Tensor]] = []  # per step: query, scores, weights, state, logits

    def open(self, kernel: Kernel, layout: Layout) -> Tensor:
        """Empty gates."""
        w = self.tensors
        self.ih, self.ih_bias = kernel.scale(w.ih.t()), kernel.scale(w.ih_bias)
        return w.ih.new_empty(self.inputs.numel(), len(w.ih))

    def fetch(self, t: int, gate: Tensor, state: State) -> None:
        """Attend, and project what comes of it."""
        w, h = self.tensors, state[0]
        word = self.inputs[:, t] if self.forced[t] or not t else self.found[-1][-1].argmax(dim=1)
        query = linear(h, w.query, w.query_bias)
        bent = (query[:, None] + w.keys).relu_()
        scores = torch.matmul(bent, w.v).add_(w.v_bias)
        allowed = scores if self.barred is None else scores.masked_fill(self.barred, -torch.inf)
        weights = torch.softmax(allowed, dim=1)
        context = torch.bmm(weights[:, None], w.memory)[:, 0]
        joined = torch.cat([context, w.table[word]], dim=1)
        focus = linear(joined, w.focus, w.focus_bias).relu_()
        x = context * focus
        torch.addmm(self.ih_bias, x, self.ih, out=gate)
        self.kept.append(Kept(word, h, bent, weights, joined, focus, x))
        self.found.append([query, scores, weights])

    def read(self, t: int, state: State) -> None:
        """Say a word."""
        w = self.tensors
        self.found[-1] += [state[0], linear(state[0], w.readout, w.readout_bias)]

    def results(self) -> State:
        """Queries (t·b, a), scores and weights (t·b, s), logits (t·b, vocab)."""
        *said, self.states, logits = map(torch.cat, zip(*self.found, strict=True))
        self.said = (*said, logits)
        return self.said

    def receive(self, states: Tensor | None, results: tuple[Tensor | None, ...]) -> Tensor:
        """States also get the gradient of the logits that were read off them."""
        grads = [
            torch.zeros_like(said) if grad is None else grad
            for said, grad in zip(self.said, results, strict=True)
        ]
        *self.outer, self.d_logits = grads
        self.d_memory, self.d_keys = map(torch.zeros_like, self.tensors[:2])
        self.noted: list[State] = []
        outer = self.d_logits @ self.tensors.readout
        return outer if states is None else outer.add_(states)

    def backward(self, t: int, local: Tensor, flow: State) -> None:
        """Through the focus, the mixture, the scores and the query to the state before."""
        w, at, size = self.tensors, self.kept[t], self.tensors.memory.shape[2]
        rows = slice(t * len(local), (t + 1) * len(local))
        queries, scores, weights = (grad[rows] for grad in self.outer)
        through = local @ w.ih  # d loss / d x
        d_focus = (through * at.joined[:, :size]).mul_(at.open > 0)
        d_joined = d_focus @ w.focus
        d_context = torch.addcmul(d_joined[:, :size], through, at.open)
        d_weights = torch.bmm(w.memory, d_context[:, :, None])[:, :, 0].add_(weights)
        self.d_memory.baddbmm_(at.weights[:, :, None], d_context[:, None])
        inner = (at.weights * d_weights).sum(dim=1, keepdim=True)
        d_scores = (at.weights * (d_weights - inner)).add_(scores)  # (b, s)
        d_bent = (d_scores[:, :, None] * w.v).mul_(at.bent > 0)
        self.d_keys.add_(d_bent)
        d_query = d_bent.sum(dim=1).add_(queries)
        flow[0].addmm_(d_query, w.query)
        self.noted.append((d_focus, d_query, d_scores, d_joined[:, size:]))

    def gradients(self, local: Tensor) -> State:
        """Each weight's is one product over all steps."""
        d_focus, d_query, d_scores, d_word = map(torch.cat, zip(*self.noted[::-1], strict=True))
        kept = list(zip(*self.kept, strict=True))
        word, h, bent, joined, x = (torch.cat(kept[place]) for place in (0, 1, 2, 4, 6))
        return (
            self.d_memory, self.d_keys,
            torch.zeros_like(self.tensors.table).index_add_(0, word, d_word),
            d_query.t() @ h, d_query.sum(dim=0),
            (d_scores.reshape(1, -1) @ bent.flatten(0, 1))[0], d_scores.sum().reshape(1),
            d_focus.t() @ joined, d_focus.sum(dim=0),
            local.t() @ x, local.sum(dim=0),
            self.d_logits.t() @ self.states, self.d_logits.sum(dim=0),
        )  # fmt: skip
