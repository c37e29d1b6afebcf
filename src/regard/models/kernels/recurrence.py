"""The driver: a cell walks over a batch as one node of the graph, with hand-derived gradients.

Autograd over a Python loop records some ten nodes a step and multiplies the weight gradient
out at every one. Here the loop touches only what depends on the step before; the rest,
the weight gradient above all, is one large product over all steps. What a cell does at a step is
its `Kernel`; where its inputs come from is a `Source`.

Axes are those of `layout.py`. Gate blocks are stacked as in the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.models.kernels.layout import Layout

State = tuple[Tensor, ...]  # (rows, hidden) each; h first
Room = tuple[Tensor, ...]  # what a step reads and fills: views of arrays over all steps


class Kernel(ABC):
    """One cell's mathematics: a step forwards, a step backwards."""

    blocks: ClassVar[int]
    spare: ClassVar[tuple[int, ...]] = ()  # what `forward` fills besides: blocks of each array
    weights: ClassVar[int] = 1  # parameters of the recurrent product

    def scale(self, x: Tensor) -> Tensor:
        """What the steps want added up instead of x. (…, blocks·hidden)"""
        return x

    def prepare(self, weights: State) -> State:
        """The recurrent parameters as `forward` wants them."""
        return (self.scale(weights[0].t()), *weights[1:])

    @abstractmethod
    def forward(self, weights: State, before: State, room: Room, fresh: bool) -> State:
        """The new state. Where it is `fresh`, the old one is zero and needs no product.

        room: the step's gates, which hold the projected input, the same block by block, the new
        state's members, and the spare arrays.
        """

    @abstractmethod
    def derive(self, gates: Tensor, after: State, before: State, spare: Room) -> Room:
        """For all steps at once: what `backward` reads, and where it leaves gradients.

        The first holds the projected inputs' gradient at the end. (packed, blocks·hidden)
        """

    @abstractmethod
    def backward(self, weights: State, flow: State, room: Room, fresh: bool) -> None:
        """From the new state's gradient to the old one's, in place. `room`: as `derive` gave."""

    def gradients(self, derived: Room, before: Tensor, spare: Room, begin: int) -> State:
        """Of the recurrent parameters; rows before `begin` came from a state of zeros."""
        return (derived[0].t() @ before,)


class Source:
    """Projected inputs: one row per packed row, or a table of words and a number for each.

    Rows of a table are fetched step by step, so that they never lie in memory all at once.
    """

    tensors: State  # what it is made of and has gradients for

    def __init__(self, rows: Tensor, numbers: Tensor | None = None):
        self.numbers = numbers  # (packed,)
        self.tensors = (rows,)  # (packed or vocab, blocks·hidden)

    def open(self, kernel: Kernel, layout: Layout) -> Tensor:
        """The gates, filled or still empty. (packed, blocks·hidden)"""
        (rows,) = self.tensors
        self.rows = kernel.scale(rows)
        if self.numbers is None:
            return rows.clone() if self.rows is rows else self.rows
        self.at = layout.steps(self.numbers)
        return rows.new_empty(len(self.numbers), rows.shape[1])

    def fetch(self, t: int, gate: Tensor, state: State) -> None:
        """Put the inputs of a step into its gates."""
        if self.numbers is not None:
            torch.index_select(self.rows, 0, self.at[t], out=gate)

    def read(self, t: int, state: State) -> None:
        """See the state after a step."""

    def results(self) -> State:
        """What there is to give besides the states. (packed, …) each"""
        return ()

    def receive(self, states: Tensor | None, results: tuple[Tensor | None, ...]) -> Tensor | None:
        """The gradient of all states, from theirs and that of the results. (packed, hidden)"""
        return states

    def backward(self, t: int, local: Tensor, flow: State) -> None:
        """From the gradient of a step's inputs to that of what they were made of."""

    def gradients(self, local: Tensor) -> State:
        """Of `tensors`, given that of all projected inputs."""
        if self.numbers is None:
            return (local,)
        return (torch.zeros_like(self.tensors[0]).index_add_(0, self.numbers, local),)


def recur(
    kernel: Kernel, source: Source, layout: Layout, weights: State, first: State
) -> tuple[Tensor, State, State]:
    """A cell over a batch: states (batch, time, hidden), the last state, the source's results.

    Steps are taken in the precision of the weights: what is rounded at each would add up.
    """
    tensors = (*source.tensors, *weights, *first)
    device = weights[0].device.type
    lowered = torch.is_autocast_enabled(device)
    with torch.autocast(device, enabled=False) if lowered else nullcontext():
        states, *rest = Recurrence.apply(kernel, source, layout, *tensors)  # type: ignore[no-untyped-call]
    return states, tuple(rest[: len(first)]), tuple(rest[len(first) :])


class Recurrence(torch.autograd.Function):
    """A kernel over all steps, from a source to a padded batch."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, source: Source, layout: Layout, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        """States (batch, time, hidden), the last state's members, the source's results.

        tensors: the source's, the recurrent parameters, the first state's members.
        """
        given = len(source.tensors)
        weights, first = tensors[given : given + kernel.weights], tensors[given + kernel.weights :]
        gates = source.open(kernel, layout)
        state = tuple(map(layout.sort, first))
        count, hidden = len(gates), state[0].shape[1]
        joined = [gates.new_empty(layout.batch + count, hidden) for _ in state]
        for member, start in zip(joined, state, strict=True):
            member[: layout.batch] = start
        after = [member[layout.batch :] for member in joined]
        spare = [gates.new_empty(count, blocks * hidden) for blocks in kernel.spare]
        blocks = gates.view(count, kernel.blocks, -1).unbind(1)
        ready = kernel.prepare(weights)
        rooms = zip(*map(layout.steps, (gates, *blocks, *after, *spare)), strict=True)
        alive = layout.batch
        for t, (rows, room) in enumerate(zip(layout.sizes, rooms, strict=True)):
            if rows < alive:
                alive, state = rows, tuple(member[:rows] for member in state)
            source.fetch(t, room[0], state)
            state = kernel.forward(ready, state, room, layout.fresh and t == 0)
            source.read(t, state)
        ctx.kernel, ctx.source, ctx.layout, ctx.members = kernel, source, layout, len(first)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, gates, *joined, *spare)
        final = (member.index_select(0, layout.final) for member in after)
        return layout.unpack(after[0]), *final, *map(layout.unpack, source.results())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, states: Tensor | None, *rest: Tensor | None) -> tuple[Any, ...]:
        """All steps, backwards; the gradient of a state flows from step to step in place."""
        kernel, source, layout = ctx.kernel, ctx.source, ctx.layout
        saved, given = ctx.saved_tensors, len(source.tensors)
        weights = saved[given : given + kernel.weights]
        gates, *more = saved[given + kernel.weights + ctx.members :]
        joined, spare = more[: ctx.members], tuple(more[ctx.members :])
        after = tuple(member[layout.batch :] for member in joined)
        before = tuple(map(layout.shift, joined))
        flow = tuple(
            torch.zeros_like(member[: layout.batch]) if grad is None else layout.sort(grad).clone()
            for member, grad in zip(joined, rest, strict=False)
        )
        packed = None if states is None else layout.pack(states)
        results = (None if grad is None else layout.pack(grad) for grad in rest[ctx.members :])
        outer = source.receive(packed, tuple(results))
        grads = None if outer is None else layout.steps(outer)
        derived = kernel.derive(gates, after, before, spare)
        rooms = list(zip(*map(layout.steps, derived), strict=True))
        alive, here = 0, flow
        for t in range(len(rooms) - 1, -1, -1):
            if layout.sizes[t] > alive:
                alive = layout.sizes[t]
                here = tuple(member[:alive] for member in flow)
            if grads is not None:
                here[0].add_(grads[t])
            kernel.backward(weights, here, rooms[t], layout.fresh and t == 0)
            source.backward(t, rooms[t][0], here)
        d_weights = kernel.gradients(derived, before[0], spare, layout.begin)
        d_first = map(layout.unsort, flow)
        return None, None, None, *source.gradients(derived[0]), *d_weights, *d_first
