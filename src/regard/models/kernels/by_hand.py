"""Passes with hand-derived gradients for batches that are small against the weights.

With one example at a time, what autograd does around each product costs more than the product.
Here a whole sequence is one node of the graph: the loop holds only what depends on the step
before, and the gradient of every weight is one product over all steps.

Axes: batch b, time t, source positions s, hidden units h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

State = tuple[Tensor, ...]


class StepMathematics(ABC):
    """One step of a cell, forwards and backwards, from what its two products gave."""

    @abstractmethod
    def forward(self, x: Tensor, h: Tensor, state: State) -> tuple[State, State]:
        """x = W_ih input + b, h = W_hh state + b' -> the new state, and what the way back needs."""

    @abstractmethod
    def backward(self, grad: State, saved: State) -> tuple[Tensor, Tensor, State]:
        """From the new state's gradient: those of x, of h, and of the old state directly."""


class GRUStep(StepMathematics):
    """r, z = σ(x + h); n = tanh(x_n + r∘h_n); h' = n + z∘(h − n). Blocks r, z, n."""

    def forward(self, x: Tensor, h: Tensor, state: State) -> tuple[State, State]:
        """See the class."""
        size, before = state[0].shape[1], state[0]
        both = torch.add(x[:, : 2 * size], h[:, : 2 * size]).sigmoid_()
        r, z = both[:, :size], both[:, size:]
        raw = h[:, 2 * size :]
        n = torch.addcmul(x[:, 2 * size :], r, raw).tanh_()
        return (torch.lerp(n, before, z),), (both, n, raw, before)

    def backward(self, grad: State, saved: State) -> tuple[Tensor, Tensor, State]:
        """The chain rule through the mixture, the candidate, and the gates."""
        both, n, raw, before = saved
        size, g = n.shape[1], grad[0]
        r, z = both[:, :size], both[:, size:]
        d_x = torch.empty_like(torch.cat([both, n], dim=1))
        d_r, d_z, d_n = d_x[:, :size], d_x[:, size : 2 * size], d_x[:, 2 * size :]
        keep = g * z
        torch.mul(g - keep, 1 - n * n, out=d_n)
        torch.mul(g, before - n, out=d_z)
        torch.mul(d_n, raw, out=d_r)
        d_x[:, : 2 * size].mul_(both * (1 - both))
        d_h = d_x.clone()
        d_h[:, 2 * size :].mul_(r)
        return d_x, d_h, (keep,)


class LSTMStep(StepMathematics):
    """i, f, o = σ(x + h), g = tanh(x + h); c' = f∘c + i∘g; h' = o∘tanh(c'). Blocks i, f, g, o."""

    def forward(self, x: Tensor, h: Tensor, state: State) -> tuple[State, State]:
        """See the class."""
        i, f, g, o = (x + h).chunk(4, dim=1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        c = torch.addcmul(f * state[1], i, g)
        tanh = torch.tanh(c)
        return (o * tanh, c), (i, f, g, o, state[1], tanh)

    def backward(self, grad: State, saved: State) -> tuple[Tensor, Tensor, State]:
        """Through c: i, f, g; through h: o."""
        i, f, g, o, before, tanh = saved
        d_c = torch.addcmul(grad[1], grad[0] * o, 1 - tanh * tanh)
        parts = (
            d_c * g * i * (1 - i),
            d_c * before * f * (1 - f),
            d_c * i * (1 - g * g),
            grad[0] * tanh * o * (1 - o),
        )
        local = torch.cat(parts, dim=1)
        return local, local, (torch.zeros_like(d_c), d_c * f)


class Sequence(torch.autograd.Function):
    """A cell over a sequence of projected inputs, all rows of the same length."""

    @staticmethod
    def forward(
        ctx: Any, step: StepMathematics, x: Tensor, weight: Tensor, bias: Tensor, *first: Tensor
    ) -> tuple[Tensor, ...]:
        """x (b, t, blocks·h) -> states (b, t, h), then each member of the last state."""
        state, states, kept = first, [], []
        for projected in x.unbind(1):
            state, saved = step.forward(projected, linear(state[0], weight, bias), state)
            states.append(state[0])
            kept.append(saved)
        ctx.step, ctx.kept, ctx.first = step, kept, first[0]
        ctx.states = states
        ctx.save_for_backward(weight)
        return torch.stack(states, dim=1), *(member.clone() for member in state)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, states: Tensor, *final: Tensor) -> tuple[Any, ...]:
        """All steps, backwards."""
        (weight,) = ctx.saved_tensors
        grad, for_x, for_h = tuple(final), [], []
        for t in range(states.shape[1] - 1, -1, -1):
            grad = (grad[0] + states[:, t], *grad[1:])
            d_x, d_h, grad = ctx.step.backward(grad, ctx.kept[t])
            grad = (torch.addmm(grad[0], d_h, weight), *grad[1:])
            for_x.append(d_x)
            for_h.append(d_h)
        d_h = torch.cat(for_h[::-1])  # (t·b, blocks·h)
        before = torch.cat([ctx.first, *ctx.states[:-1]])
        return (
            None,
            torch.stack(for_x[::-1], dim=1),
            d_h.t() @ before,
            d_h.sum(dim=0),
            *grad,
        )


class Weights(NamedTuple):
    """The decoder that `Walk` runs: a word's vector, attention, full focus, a cell, a readout."""

    table: Tensor  # (vocab, word)
    query: Tensor  # (a, h)
    query_bias: Tensor
    v: Tensor  # (a,)
    v_bias: Tensor  # (1,)
    focus: Tensor  # (h, h + word)
    focus_bias: Tensor
    ih: Tensor  # (blocks·h, h)
    ih_bias: Tensor
    hh: Tensor  # (blocks·h, h)
    hh_bias: Tensor
    readout: Tensor  # (vocab, h)
    readout_bias: Tensor


class Kept(NamedTuple):
    """What one step leaves for the way back."""

    word: Tensor  # (b,)
    h: Tensor  # (b, h), before the step
    bent: Tensor  # (b, s, a): max(0, query + key)
    weights: Tensor  # (b, s)
    joined: Tensor  # (b, h + word): context and word
    open: Tensor  # (b, h): max(0, …) of the focus
    x: Tensor  # (b, h): context ∘ open
    cell: State


class Walk(torch.autograd.Function):
    """All steps of a decoder that attends before each step, with full focus (baan2019).

    q = W h + b; a_s = v·max(0, q + k_s) + b'; α = softmax(a); c = Σ α_s h_s;
    x = c ∘ max(0, F [c; e] + b); h' = cell(x, h); logits = R h' + b.
    """

    @staticmethod
    def forward(
        ctx: Any,
        step: StepMathematics,
        forced: list[bool],
        inputs: Tensor,
        mask: Tensor,
        memory: Tensor,
        keys: Tensor,
        *rest: Tensor,
    ) -> tuple[Tensor, ...]:
        """Logits (b, t, vocab), states (b, t, h), queries (b, t, a), scores and weights (b, t, s).

        memory (b, s, h), keys (b, s, a), mask (b, s), inputs (b, t); a step that is not forced
        is fed the choice of the one before. `rest`: the weights, then the first state.
        """
        size = len(Weights._fields)
        w, state = Weights(*rest[:size]), tuple(rest[size:])
        kept: list[Kept] = []
        found: list[tuple[Tensor, ...]] = []
        barred = None if bool(mask.all()) else ~mask
        for t, teacher in enumerate(forced):
            word = inputs[:, t] if teacher or not t else found[-1][0].argmax(dim=1)
            query = linear(state[0], w.query, w.query_bias)
            bent = (query[:, None] + keys).relu_()
            scores = torch.matmul(bent, w.v).add_(w.v_bias)
            allowed = scores if barred is None else scores.masked_fill(barred, float("-inf"))
            weights = torch.softmax(allowed, dim=1)
            context = torch.bmm(weights[:, None], memory)[:, 0]
            joined = torch.cat([context, w.table[word]], dim=1)
            gate = linear(joined, w.focus, w.focus_bias).relu_()
            x = context * gate
            before = state[0]
            state, cell = step.forward(
                linear(x, w.ih, w.ih_bias), linear(before, w.hh, w.hh_bias), state
            )
            kept.append(Kept(word, before, bent, weights, joined, gate, x, cell))
            logits = linear(state[0], w.readout, w.readout_bias)
            found.append((logits, state[0], query, scores, weights))
        ctx.step, ctx.kept, ctx.states = step, kept, [step[1] for step in found]
        ctx.save_for_backward(memory, *w)
        ctx.members = len(state)
        return tuple(torch.stack(parts, dim=1) for parts in zip(*found, strict=True))

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, logits: Tensor, states: Tensor, queries: Tensor, scores: Tensor, weights: Tensor
    ) -> tuple[Any, ...]:
        """The chain rule from the last step to the first; weights' gradients at the end."""
        memory, *rest = ctx.saved_tensors
        w, kept = Weights(*rest), ctx.kept
        size = memory.shape[2]
        outer = torch.matmul(logits, w.readout).add_(states)  # (b, t, h)
        grad: State = tuple(torch.zeros_like(kept[0].h) for _ in range(ctx.members))
        d_memory, d_keys = torch.zeros_like(memory), torch.zeros_like(kept[0].bent)
        noted: list[tuple[Tensor, ...]] = []
        for t in range(len(kept) - 1, -1, -1):
            at: Kept = kept[t]
            d_x, d_h, grad = ctx.step.backward((grad[0] + outer[:, t], *grad[1:]), at.cell)
            through = d_x @ w.ih  # d loss / d x
            context = at.joined[:, :size]
            d_gate = (through * context).mul_(at.open > 0)
            d_joined = d_gate @ w.focus
            d_context = torch.addcmul(d_joined[:, :size], through, at.open)
            d_weights = torch.bmm(memory, d_context[:, :, None])[:, :, 0].add_(weights[:, t])
            d_memory.baddbmm_(at.weights[:, :, None], d_context[:, None])
            inner = (at.weights * d_weights).sum(dim=1, keepdim=True)
            d_scores = (at.weights * (d_weights - inner)).add_(scores[:, t])  # (b, s)
            d_bent = (d_scores[:, :, None] * w.v).mul_(at.bent > 0)
            d_keys.add_(d_bent)
            d_query = d_bent.sum(dim=1).add_(queries[:, t])
            back = torch.addmm(grad[0], d_h, w.hh).addmm_(d_query, w.query)
            grad = (back, *grad[1:])
            noted.append((d_x, d_h, d_gate, d_query, d_scores, d_joined[:, size:]))
        d_x, d_h, d_gate, d_query, d_scores, d_word = (
            torch.cat(parts) for parts in zip(*reversed(noted), strict=True)
        )
        before, bent, joined, x = (
            torch.cat([getattr(step, name) for step in kept])
            for name in ("h", "bent", "joined", "x")
        )
        words = torch.cat([step.word for step in kept])
        flat = logits.transpose(0, 1).flatten(0, 1)  # (t·b, vocab)
        return (
            None, None, None, None, d_memory, d_keys,
            torch.zeros_like(w.table).index_add_(0, words, d_word),
            d_query.t() @ before, d_query.sum(dim=0),
            (d_scores.reshape(1, -1) @ bent.flatten(0, 1))[0], d_scores.sum().reshape(1),
            d_gate.t() @ joined, d_gate.sum(dim=0),
            d_x.t() @ x, d_x.sum(dim=0),
            d_h.t() @ before, d_h.sum(dim=0),
            flat.t() @ torch.cat(ctx.states), flat.sum(dim=0),
            *grad,
        )  # fmt: skip
