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
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Blocks = list[tuple[int, int, int]]  # per step: rows there, first packed row, first row before
Flow = tuple[Tensor, ...]  # gradients of a state, one per member, (rows, hidden) each


@dataclass(frozen=True)
class Layout:
    """How a padded batch (batch, time) is packed."""

    batch: int
    time: int
    blocks: Blocks
    index: Tensor | None  # (packed,) into (batch · time); None where nothing is padded
    order: Tensor | None  # (rows,) into the batch; None where nothing is padded
    final: Tensor  # (batch,) into packed: where each row ends
    fresh: bool  # the first state is zero and nobody's: its products need not be taken

    @classmethod
    def of(
        cls,
        batch: int,
        time: int,
        lengths: Tensor | None,
        device: torch.device,
        fresh: bool = False,
    ) -> Layout:
        """The layout for some lengths, all of them at least 1.

        The last few are remembered: layers, directions and often both sides share theirs.
        """
        key = None if lengths is None else lengths.cpu().numpy().tobytes()
        return _layout(batch, time, key, device, fresh)

    def pack(self, x: Tensor) -> Tensor:
        """(batch, time, features) -> (packed, features)"""
        if self.index is None:
            return x.transpose(0, 1).flatten(0, 1)
        return x.flatten(0, 1).index_select(0, self.index)

    def unpack(self, packed: Tensor) -> Tensor:
        """(packed, features) -> (batch, time, features), zero in the padding."""
        if self.index is None:
            return packed.view(self.time, self.batch, -1).transpose(0, 1)
        padded = packed.new_zeros(self.batch * self.time, packed.shape[1])
        return padded.index_copy_(0, self.index, packed).view(self.batch, self.time, -1)

    def sort(self, state: Tensor) -> Tensor:
        """(batch, features) -> (rows, features)"""
        return state if self.order is None else state.index_select(0, self.order)

    def steps(self, packed: Tensor) -> tuple[Tensor, ...]:
        """(packed, …) as one view per step."""
        return torch.split_with_sizes(packed, [rows for rows, _, _ in self.blocks])

    @property
    def begin(self) -> int:
        """The first packed row whose state before is not just zero."""
        return self.blocks[0][0] if self.fresh else 0

    def unsort(self, state: Tensor) -> Tensor:
        """(rows, features) -> (batch, features)"""
        if self.order is None:
            return state
        return torch.empty_like(state).index_copy_(0, self.order, state)


@lru_cache(maxsize=8)
def _layout(batch: int, time: int, key: bytes | None, device: torch.device, fresh: bool) -> Layout:
    if key is None:
        order = rank = np.arange(batch)
        ends, counts = np.full(batch, time), np.full(time, batch)
    else:
        ends = np.frombuffer(key, dtype=np.int64)
        order = np.argsort(-ends, kind="stable")
        rank = np.argsort(order)
        counts = (ends[:, None] > np.arange(time)).sum(axis=0)
        counts = counts[counts > 0]
    starts = np.concatenate([[0], counts.cumsum()])
    before = [0, *(starts[:-2] + batch)]  # in [first; states], see `shifted`
    blocks = list(zip(counts.tolist(), starts[:-1].tolist(), map(int, before), strict=True))
    final = torch.from_numpy(starts[ends - 1] + rank).to(device)
    if key is None:
        return Layout(batch, time, blocks, None, None, final, fresh)
    places = np.concatenate([order[:n] * time + t for t, n in enumerate(counts)])
    index, rows = torch.from_numpy(places).to(device), torch.from_numpy(order).to(device)
    return Layout(batch, time, blocks, index, rows, final, fresh)


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
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], layout: Layout
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Packed states, one per member of a state, and what the way back needs."""

    @abstractmethod
    def backward(
        self,
        grad: Tensor | None,
        flow: Flow,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        layout: Layout,
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the projected inputs and of the weight.

        `grad` (packed, hidden) reaches every h, `flow` the last state of each row. `flow` is
        carried back in place and ends as the gradient of the first state.
        """


class Recurrence(torch.autograd.Function):
    """A cell's mathematics as one node of the graph, from a padded batch to a padded batch."""

    @staticmethod
    def forward(
        ctx: Any,
        mathematics: Mathematics,
        layout: Layout,
        rows: Tensor,
        numbers: Tensor | None,
        weight: Tensor,
        *first: Tensor,
    ) -> tuple[Tensor, ...]:
        """All steps: the states (batch, time, hidden), then each member of the last state."""
        source, first = Source(rows, numbers), tuple(map(layout.sort, first))
        packed, saved = mathematics.forward(source, weight, first, layout)
        ctx.mathematics, ctx.layout, ctx.source = mathematics, layout, source
        ctx.members = len(first)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weight, *first, *saved)
        final = (member.index_select(0, layout.final) for member in packed)
        return layout.unpack(packed[0]), *final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, states: Tensor | None, *final: Tensor | None) -> tuple[Any, ...]:
        """All steps, backwards."""
        weight, *rest = ctx.saved_tensors
        first, saved = tuple(rest[: ctx.members]), tuple(rest[ctx.members :])
        layout = ctx.layout
        flow = tuple(
            torch.zeros_like(member) if grad is None else layout.sort(grad).clone()
            for member, grad in zip(first, final, strict=True)
        )
        grad = None if states is None else layout.pack(states)
        local, d_weight = ctx.mathematics.backward(grad, flow, saved, weight, first, layout)
        d_first = map(layout.unsort, flow)
        return None, None, ctx.source.gradient(local), None, d_weight, *d_first


class UpdateMathematics(Mathematics):
    """UGRNN: u = σ(p_u + W_u h), c = tanh(p_c + W_c h), h' = u∘h + (1−u)∘c."""

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], layout: Layout
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See the class."""
        (h,) = first
        hidden, weight_t = h.shape[1], weight.t()
        gates, states = source.gates(hidden, layout.blocks)
        for rows, start, _ in layout.blocks:
            here = slice(start, start + rows)
            gate = source.fetch(gates[here], start)
            if start >= layout.begin:
                gate.addmm_(h[:rows], weight_t)
            u, c = gate[:, :hidden].sigmoid_(), gate[:, hidden:].tanh_()
            h = torch.lerp(c, h[:rows], u, out=states[here])
        return (states,), (gates, states)

    def backward(
        self,
        grad: Tensor | None,
        flow: Flow,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        layout: Layout,
    ) -> tuple[Tensor, Tensor]:
        """d h'/d p_u = (h − c) u (1 − u); d h'/d p_c = (1 − u) (1 − c²)."""
        gates, states = saved
        u, c = gates.chunk(2, dim=1)
        before = shifted(first[0], states, layout.blocks)
        local = torch.cat([(before - c) * u * (1 - u), (1 - u) * (1 - c * c)], dim=1)
        both = local.view(len(local), 2, -1)
        for rows, start, _ in reversed(layout.blocks):
            here = slice(start, start + rows)
            d_h = flow[0][:rows]
            if grad is not None:
                d_h.add_(grad[here])
            both[here].mul_(d_h[:, None])
            torch.addmm(d_h * u[here], local[here], weight, out=d_h)
        return local, local.t() @ before


class GatedMathematics(Mathematics):
    """GRU that resets before the matrix: r, z = σ(…), n = tanh(p_n + W_n (r∘h))."""

    def __init__(self, update_keeps: bool):
        self.update_keeps = update_keeps

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], layout: Layout
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """h' = z∘h + (1−z)∘n where the update gate keeps, (1−z)∘h + z∘n where it writes."""
        (h,) = first
        hidden = h.shape[1]
        gates, states = source.gates(hidden, layout.blocks)
        resets = torch.empty_like(states)
        gate_weight, candidate_weight = weight[: 2 * hidden].t(), weight[2 * hidden :].t()
        for rows, start, _ in layout.blocks:
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
        grad: Tensor | None,
        flow: Flow,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        layout: Layout,
    ) -> tuple[Tensor, Tensor]:
        """The chain rule through the mixture, the candidate, and the two gates."""
        gates, states, resets = saved
        r, z, n = gates.chunk(3, dim=1)
        hidden = r.shape[1]
        gate_weight, candidate_weight = weight[: 2 * hidden], weight[2 * hidden :]
        before = shifted(first[0], states, layout.blocks)
        keep, sign = (z, 1.0) if self.update_keeps else (1 - z, -1.0)
        d_update = sign * (before - n) * z * (1 - z)
        local = torch.cat([before * r * (1 - r), d_update, (1 - keep) * (1 - n * n)], dim=1)
        for rows, start, _ in reversed(layout.blocks):
            here = slice(start, start + rows)
            here_local = local[here]
            d_h = flow[0][:rows]
            if grad is not None:
                d_h.add_(grad[here])
            here_local.view(rows, 3, hidden)[:, 1:].mul_(d_h[:, None])
            through = here_local[:, 2 * hidden :] @ candidate_weight  # d loss / d (r∘h)
            here_local[:, :hidden].mul_(through)
            rest = (d_h * keep[here]).addcmul_(through, r[here])
            torch.addmm(rest, here_local[:, : 2 * hidden], gate_weight, out=d_h)
        d_weight = torch.cat(
            [local[:, : 2 * hidden].t() @ before, local[:, 2 * hidden :].t() @ resets]
        )
        return local, d_weight


class LSTMMathematics(Mathematics):
    """i, f, o = σ(…), g = tanh(…); c' = f∘c + i∘g; h' = o∘tanh(c'). Blocks i, f, g, o.

    tanh(x) = 2σ(2x) − 1, so that one σ serves all four blocks, which is much faster; what goes
    into g is doubled beforehand.
    """

    def forward(
        self, source: Source, weight: Tensor, first: tuple[Tensor, ...], layout: Layout
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See the class."""
        h, c = first
        hidden = h.shape[1]
        double = weight.new_ones(4, hidden)
        double[2] = 2.0
        double = double.flatten()
        weight_t = (weight * double[:, None]).t()
        source = replace(source, rows=source.rows * double)
        minus_one = weight.new_full((), -1.0)
        gates, states = source.gates(hidden, layout.blocks)
        memories, tanhs = torch.empty_like(states), torch.empty_like(states)
        views = zip(*map(layout.steps, (gates, memories, tanhs, states)), strict=True)
        for (rows, start, _), (gate, memory, tanh, state) in zip(layout.blocks, views, strict=True):
            source.fetch(gate, start)
            if start >= layout.begin:
                gate.addmm_(h[:rows], weight_t)
            i, f, g, o = gate.sigmoid_().view(rows, 4, hidden).unbind(1)
            torch.add(minus_one, g, alpha=2.0, out=g)
            c = torch.mul(f, c[:rows], out=memory).addcmul_(i, g)
            torch.mul(c, 2.0, out=tanh).sigmoid_()
            h = torch.mul(o, torch.add(minus_one, tanh, alpha=2.0, out=tanh), out=state)
        return (states, memories), (gates, states, memories, tanhs)

    def backward(
        self,
        grad: Tensor | None,
        flow: Flow,
        saved: tuple[Tensor, ...],
        weight: Tensor,
        first: tuple[Tensor, ...],
        layout: Layout,
    ) -> tuple[Tensor, Tensor]:
        """Through c: i, f, g; through h: o. Their local derivatives are taken for all steps."""
        gates, states, memories, tanhs = saved
        i, f, g, o = gates.chunk(4, dim=1)
        local = torch.addcmul(gates, gates, gates, value=-1.0)  # σ' for i, f, o
        four = local.view(len(local), 4, -1)
        torch.addcmul(local.new_ones(()), g, g, value=-1.0, out=four[:, 2])  # tanh' for g
        four[:, 0].mul_(g)
        four[:, 1].mul_(shifted(first[1], memories, layout.blocks))
        four[:, 2].mul_(i)
        four[:, 3].mul_(tanhs)
        through = torch.addcmul(o, states, tanhs, value=-1.0)  # d h' / d c'
        views = [layout.steps(x) for x in (local, four[:, :3], four[:, 3], through, f)]
        outer = None if grad is None else layout.steps(grad)
        for t, (rows, start, _) in reversed(list(enumerate(layout.blocks))):
            d_h, d_c = flow[0][:rows], flow[1][:rows]
            d_all, d_ifg, d_o, through_c, keep = (view[t] for view in views)
            if outer is not None:
                d_h.add_(outer[t])
            d_c.addcmul_(d_h, through_c)
            d_ifg.mul_(d_c[:, None])
            d_o.mul_(d_h)
            d_c.mul_(keep)
            if start >= layout.begin:
                torch.mm(d_all, weight, out=d_h)
        begin = layout.begin
        d_weight = local[begin:].t() @ shifted(first[0], states, layout.blocks)[begin:]
        return local, d_weight
