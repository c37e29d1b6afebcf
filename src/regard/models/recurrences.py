"""Recurrences with hand-derived gradients, packed so that padding costs nothing.

Autograd over a Python loop records some ten nodes a step and multiplies the weight gradient
out at every one. Here the loop touches only what depends on the step before; the rest,
the weight gradient above all, is one large product over all steps. Rows are sorted by length,
so that step t is a product with just the rows that are still there.

Packed axes: `packed` runs over (time, row) for the rows that are there at that time, time by
time; `rows` is the batch, longest first. Gate blocks are stacked as in the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Blocks = list[tuple[int, int, int]]  # per step: rows there, first packed row, first row before
Grads = tuple[Tensor | None, ...]  # one per member of the state; None where nobody looked


DOUBLE_G = torch.tensor([1.0, 1.0, 2.0, 1.0])  # per block of an LSTM


@dataclass(frozen=True)
class Layout:
    """How a padded batch (batch, time) is packed."""

    blocks: Blocks
    index: Tensor | None  # (packed,) into (batch · time); None where nothing is padded
    order: Tensor | None  # (rows,) into the batch; None where nothing is padded
    final: Tensor  # (batch,) into packed: where each row ends

    @classmethod
    def of(cls, batch: int, time: int, lengths: Tensor | None) -> Layout:
        """The layout for some lengths, all of them at least 1."""
        counts = np.full(time, batch)
        order = rank = np.arange(batch)
        ends = np.full(batch, time)
        if lengths is not None:
            ends = lengths.cpu().numpy()
            order = np.argsort(-ends, kind="stable")
            rank = np.argsort(order)
            counts = (ends[:, None] > np.arange(time)).sum(axis=0)
            counts = counts[counts > 0]
        starts = np.concatenate([[0], counts.cumsum()])
        before = [0, *(starts[:-2] + batch)]  # in [first; states], see `shifted`
        blocks = list(zip(counts.tolist(), starts[:-1].tolist(), map(int, before), strict=True))
        final = torch.from_numpy(starts[ends - 1] + rank)
        if lengths is None:
            return cls(blocks, None, None, final)
        places = np.concatenate([order[:n] * time + t for t, n in enumerate(counts)])
        device = lengths.device
        return cls(
            blocks,
            torch.from_numpy(places).to(device),
            torch.from_numpy(order).to(device),
            final.to(device),
        )

    def pack(self, x: Tensor) -> Tensor:
        """(batch, time, features) -> (packed, features)"""
        if self.index is None:
            return x.transpose(0, 1).flatten(0, 1)
        return x.flatten(0, 1).index_select(0, self.index)

    def unpack(self, packed: Tensor, batch: int, time: int) -> Tensor:
        """(packed, features) -> (batch, time, features), zero in the padding."""
        if self.index is None:
            return packed.view(time, batch, -1).transpose(0, 1)
        padded = packed.new_zeros(batch * time, packed.shape[1])
        return padded.index_copy(0, self.index, packed).view(batch, time, -1)

    def sort(self, state: Tensor) -> Tensor:
        """(batch, features) -> (rows, features)"""
        return state if self.order is None else state.index_select(0, self.order)


def shifted(first: Tensor, packed: Tensor, blocks: Blocks) -> Tensor:
    """For each packed row the one a step earlier: [first; packed] at the rows before."""
    joined = torch.cat([first, packed])
    if blocks[-1][0] == len(first):  # nothing is padded
        return joined[: len(packed)]
    return torch.cat([joined[before : before + rows] for rows, _, before in blocks])


@dataclass(frozen=True)
class Source:
    """The projected inputs: one row per packed row, or a table of words and a number for each.

    Rows are fetched step by step, so that a table's never lie in memory all at once.
    """

    rows: Tensor  # (packed, blocks·hidden), or (vocab, blocks·hidden) where there are numbers
    numbers: Tensor | None  # (packed,)

    def gates(self, hidden: int, blocks: Blocks) -> tuple[Tensor, Tensor]:
        """Room for the gates, and for the states. (packed, blocks·hidden), (packed, hidden)"""
        count = blocks[-1][0] + blocks[-1][1]
        return self.rows.new_empty(count, self.rows.shape[1]), self.rows.new_empty(count, hidden)

    def fetch(self, gate: Tensor, start: int) -> Tensor:
        """Fill `gate` (rows, blocks·hidden) with the inputs from a packed row on."""
        here = slice(start, start + len(gate))
        if self.numbers is None:
            return gate.copy_(self.rows[here])
        return torch.index_select(self.rows, 0, self.numbers[here], out=gate)

    def gradient(self, local: Tensor) -> Tensor:
        """The gradient of `rows`, given that of every packed row."""
        if self.numbers is None:
            return local
        return torch.zeros_like(self.rows).index_add_(0, self.numbers, local)


class Mathematics(ABC):
    """One cell's equations over all steps, forwards and backwards."""

    @abstractmethod
    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], blocks: Blocks
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Packed states, one per member of a state, and what the way back needs."""

    @abstractmethod
    def backward(
        self,
        grads: Grads,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        blocks: Blocks,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Gradients of the projected inputs, of the weight, and of the first state."""


class Recurrence(torch.autograd.Function):
    """A cell's mathematics as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any,
        mathematics: Mathematics,
        blocks: Blocks,
        rows: Tensor,
        numbers: Tensor | None,
        weight: Tensor,
        *first: Tensor,
    ) -> tuple[Tensor, ...]:
        """All steps; returns a packed sequence for each member of the state."""
        ctx.source = Source(rows, numbers)
        states, saved = mathematics.forward(ctx.source, weight, first, blocks)
        ctx.mathematics, ctx.blocks, ctx.members = mathematics, blocks, len(first)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weight, *first, *saved)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        """All steps, backwards."""
        weight, *rest = ctx.saved_tensors
        first, saved = tuple(rest[: ctx.members]), tuple(rest[ctx.members :])
        local, d_weight, d_first = ctx.mathematics.backward(grads, saved, weight, first, ctx.blocks)
        return None, None, ctx.source.gradient(local), None, d_weight, *d_first


class UpdateMathematics(Mathematics):
    """UGRNN: u = σ(p_u + W_u h), c = tanh(p_c + W_c h), h' = u∘h + (1−u)∘c."""

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], blocks: Blocks
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See the class."""
        (h,) = first
        hidden, weight_t = h.shape[1], weight.t()
        gates, states = source.gates(hidden, blocks)
        for rows, start, _ in blocks:
            here = slice(start, start + rows)
            gate = source.fetch(gates[here], start).addmm_(h[:rows], weight_t)
            u, c = gate[:, :hidden].sigmoid_(), gate[:, hidden:].tanh_()
            h = torch.lerp(c, h[:rows], u, out=states[here])
        return (states,), (gates, states)

    def backward(
        self,
        grads: Grads,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        blocks: Blocks,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """d h'/d p_u = (h − c) u (1 − u); d h'/d p_c = (1 − u) (1 − c²)."""
        gates, states = saved
        u, c = gates.chunk(2, dim=1)
        before = shifted(first[0], states, blocks)
        local = torch.cat([(before - c) * u * (1 - u), (1 - u) * (1 - c * c)], dim=1)
        both = local.view(len(local), 2, -1)
        flow, outer = torch.zeros_like(first[0]), grads[0]
        assert outer is not None
        for rows, start, _ in reversed(blocks):
            here = slice(start, start + rows)
            d_h = flow[:rows].add_(outer[here])
            both[here].mul_(d_h[:, None])
            torch.addmm(d_h * u[here], local[here], weight, out=d_h)
        return local, local.t() @ before, (flow,)


class GatedMathematics(Mathematics):
    """GRU that resets before the matrix: r, z = σ(…), n = tanh(p_n + W_n (r∘h))."""

    def __init__(self, update_keeps: bool):
        self.update_keeps = update_keeps

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], blocks: Blocks
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """h' = z∘h + (1−z)∘n where the update gate keeps, (1−z)∘h + z∘n where it writes."""
        (h,) = first
        hidden = h.shape[1]
        gates, states = source.gates(hidden, blocks)
        resets = torch.empty_like(states)
        gate_weight, candidate_weight = weight[: 2 * hidden].t(), weight[2 * hidden :].t()
        for rows, start, _ in blocks:
            here, h = slice(start, start + rows), h[:rows]
            gate = source.fetch(gates[here], start)
            both = gate[:, : 2 * hidden].addmm_(h, gate_weight).sigmoid_()
            reset = torch.mul(both[:, :hidden], h, out=resets[here])
            n = gate[:, 2 * hidden :].addmm_(reset, candidate_weight).tanh_()
            start_, end = (n, h) if self.update_keeps else (h, n)
            h = torch.lerp(start_, end, both[:, hidden:], out=states[here])
        return (states,), (gates, states, resets)

    def backward(
        self,
        grads: Grads,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        blocks: Blocks,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The chain rule through the mixture, the candidate, and the two gates."""
        gates, states, resets = saved
        r, z, n = gates.chunk(3, dim=1)
        hidden = r.shape[1]
        gate_weight, candidate_weight = weight[: 2 * hidden], weight[2 * hidden :]
        before = shifted(first[0], states, blocks)
        keep, sign = (z, 1.0) if self.update_keeps else (1 - z, -1.0)
        d_update = sign * (before - n) * z * (1 - z)
        local = torch.cat([before * r * (1 - r), d_update, (1 - keep) * (1 - n * n)], dim=1)
        flow, outer = torch.zeros_like(first[0]), grads[0]
        assert outer is not None
        for rows, start, _ in reversed(blocks):
            here = slice(start, start + rows)
            here_local = local[here]
            d_h = flow[:rows].add_(outer[here])
            here_local.view(rows, 3, hidden)[:, 1:].mul_(d_h[:, None])
            through = here_local[:, 2 * hidden :] @ candidate_weight  # d loss / d (r∘h)
            here_local[:, :hidden].mul_(through)
            rest = (d_h * keep[here]).addcmul_(through, r[here])
            torch.addmm(rest, here_local[:, : 2 * hidden], gate_weight, out=d_h)
        d_weight = torch.cat(
            [local[:, : 2 * hidden].t() @ before, local[:, 2 * hidden :].t() @ resets]
        )
        return local, d_weight, (flow,)


class LSTMMathematics(Mathematics):
    """i, f, o = σ(…), g = tanh(…); c' = f∘c + i∘g; h' = o∘tanh(c'). Blocks i, f, g, o.

    tanh(x) = 2σ(2x) − 1, so that one σ serves all four blocks, which is much faster. The g block
    of the projected inputs comes doubled (see `LSTM.run`). Both ways work on one step at a time
    while its rows are in the cache.
    """

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], blocks: Blocks
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See the class."""
        h, c = first
        hidden = h.shape[1]
        doubled = weight.view(4, hidden, hidden) * DOUBLE_G.to(weight)[:, None, None]
        weight_t = doubled.flatten(0, 1).t()
        minus_one = weight.new_tensor(-1.0)
        gates, states = source.gates(hidden, blocks)
        memories, tanhs = torch.empty_like(states), torch.empty_like(states)
        for rows, start, _ in blocks:
            here = slice(start, start + rows)
            gate = source.fetch(gates[here], start).addmm_(h[:rows], weight_t).sigmoid_()
            i, f, g, o = gate.view(rows, 4, hidden).unbind(1)
            torch.add(minus_one, g, alpha=2.0, out=g)
            c = torch.mul(f, c[:rows], out=memories[here]).addcmul_(i, g)
            tanh = torch.mul(c, 2.0, out=tanhs[here]).sigmoid_()
            h = torch.mul(o, torch.add(minus_one, tanh, alpha=2.0, out=tanh), out=states[here])
        return (states, memories), (gates, states, memories, tanhs)

    def backward(
        self,
        grads: Grads,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        blocks: Blocks,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The gates give way, step by step, to the gradients before their nonlinearities."""
        gates, states, memories, tanhs = saved
        hidden = states.shape[1]
        one = weight.new_tensor(1.0)
        flow, carry = torch.zeros_like(first[0]), torch.zeros_like(first[1])
        work = torch.empty_like(gates[: len(flow)])
        before = torch.cat([first[1], memories[: blocks[-1][1]]])  # c, a step earlier
        for rows, start, earlier in reversed(blocks):
            here = slice(start, start + rows)
            gate, local, tanh = gates[here], work[:rows], tanhs[here]
            d_h, d_c = flow[:rows], carry[:rows]
            if grads[0] is not None:
                d_h.add_(grads[0][here])
            if grads[1] is not None:
                d_c.add_(grads[1][here])
            i, f, g, o = gate.view(rows, 4, hidden).unbind(1)
            four = local.view(rows, 4, hidden)
            d_c.addcmul_(d_h, o).addcmul_(d_h * states[here], tanh, value=-1.0)
            torch.addcmul(gate, gate, gate, value=-1.0, out=local)  # σ' for i, f, o
            torch.addcmul(one, g, g, value=-1.0, out=four[:, 2])  # tanh' for g
            four[:, 0].mul_(g)
            four[:, 1].mul_(before[earlier : earlier + rows])
            four[:, 2].mul_(i)
            four[:, 3].mul_(tanh).mul_(d_h)
            four[:, :3].mul_(d_c[:, None])
            d_c.mul_(f)
            torch.mm(local, weight, out=d_h)
            gate.copy_(local)
        d_weight = gates.t() @ shifted(first[0], states, blocks)
        gates.view(len(gates), 4, hidden)[:, 2].mul_(0.5)  # the projected g came doubled
        return gates, d_weight, (flow, carry)
