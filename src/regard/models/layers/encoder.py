"""The encoder: cells in layers, in one direction or both, or without any recurrence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from regard.models.blocks import split_gates
from regard.models.layers.cells import Cell, Inputs, RecurrentCell, State, Words, vectors
from regard.models.layers.dropping import drop_out
from regard.tasks.batch import reverse

Gates = dict[str, Tensor]


class Encoder(nn.Module):
    """Cells in layers, in one direction or both.

    With `trainable`, every cell's state before the first word is learned (zero at the start).
    """

    def __init__(
        self,
        cell: type[Cell],
        inputs: int,
        hidden: int,
        layers: int,
        both: bool,
        trainable: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.dropout = dropout
        width = 2 * hidden if both else hidden
        sizes = [inputs] + [width] * (layers - 1)
        self.ahead = nn.ModuleList(cell(size, hidden) for size in sizes)
        self.back = nn.ModuleList(cell(size, hidden) for size in sizes if both)
        starts = layers * (2 if both else 1) if trainable else 0
        self.starts = nn.ParameterList(
            nn.Parameter(torch.zeros(len(cell.state_names), hidden)) for _ in range(starts)
        )

    def forward(
        self, x: Inputs, lengths: Tensor | None, gates: Gates | None = None
    ) -> tuple[Tensor, State]:
        """States of the last layer (batch, source, features), and the last state of each cell.

        The last states come layer by layer; both directions' are joined in one vector.
        With `gates` given, the step path is taken and the gates are put there.
        """
        if lengths is not None and bool((lengths == x.shape[1]).all()):
            lengths = None  # there is no padding to skip
        finals: list[Tensor] = []
        for layer, ahead in enumerate(self.ahead):
            if layer and self.dropout and self.training:
                x = drop_out(vectors(x), self.dropout)
            name = f"encoder.gates.{layer}"
            start = self._start(2 * layer if self.back else layer, x)
            states, final = run(ahead, x, lengths, start, gates, f"{name}.ahead")
            if self.back:
                start = self._start(2 * layer + 1, x)
                turned, other = run(
                    self.back[layer], x, lengths, start, gates, f"{name}.back", back=True
                )
                states = torch.cat([states, turned], dim=2)
                final = tuple(torch.cat(pair, dim=1) for pair in zip(final, other, strict=True))
            finals += final
            x = states
        return vectors(x), tuple(finals)

    def cells(self) -> dict[str, RecurrentCell]:
        """Every cell by name, with the state it starts from where that is learned."""
        found, starts = {}, iter(self.starts)
        for layer, ahead in enumerate(self.ahead):
            ways = {"ahead": ahead, **({"back": self.back[layer]} if self.back else {})}
            for way, cell in ways.items():
                assert isinstance(cell, Cell)
                states = ["encoder.states"] if layer + 1 == len(self.ahead) else []
                gates = [f"encoder.gates.{layer}.{way}.{gate}" for gate in cell.gate_effects]
                name = f"encoder.{layer}.back" if way == "back" else f"encoder.{layer}"
                start = (next(starts),) if self.starts else ()
                found[name] = RecurrentCell(cell, start, recorded=(*states, *gates))
        return found

    def named_blocks(self) -> Iterator[tuple[str, Tensor]]:
        """`0.W_ih.update`, `0.back.W_ih.update`, and the first states, where they are learned."""
        for way, cells in (("", self.ahead), (".back", self.back)):
            for layer, cell in enumerate(cells):
                assert isinstance(cell, Cell)
                yield from ((f"{layer}{way}.{name}", x) for name, x in cell.named_blocks())
        yield from ((f"starts.{number}", start) for number, start in enumerate(self.starts))

    def _start(self, number: int, x: Inputs) -> State | None:
        if not len(self.starts):
            return None
        return tuple(row.expand(x.shape[0], -1) for row in self.starts[number])


class FeedForward(nn.Module):
    """Cells that are told nothing of the step before: their state is always zero (aitken2021, AO).

    What is left of a gated cell is a gated layer; of the tanh cell, a plain one.
    """

    def __init__(self, cell: type[Cell], inputs: int, hidden: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(
            cell(size, hidden) for size in [inputs] + [hidden] * (layers - 1)
        )
        for name, parameter in self.named_parameters():
            if name.endswith("weight_hh"):  # it only ever meets zeros
                parameter.requires_grad_(False)

    def named_blocks(self) -> Iterator[tuple[str, Tensor]]:
        """`0.W_ih.update`; there is no W_hh, which would only ever meet zeros."""
        for layer, cell in enumerate(self.layers):
            assert isinstance(cell, Cell)
            yield from split_gates(f"{layer}.W_ih", cell.weight_ih, cell.block_names)

    def forward(self, x: Tensor, gates: Gates | None = None, name: str = "") -> Tensor:
        """All positions at once. (batch, time, inputs) -> (batch, time, hidden)"""
        for number, cell in enumerate(self.layers):
            assert isinstance(cell, Cell)
            batch, time, _ = x.shape
            state, seen = cell.step(cell.project(x.flatten(0, 1)), cell.initial(1))
            if gates is not None:
                for gate, values in seen.items():
                    gates[f"{name}.{number}.{gate}"] = values.view(batch, time, -1)
            x = state[0].view(batch, time, -1)
        return x


def run(
    cell: nn.Module,
    x: Inputs,
    lengths: Tensor | None,
    state: State | None,
    gates: Gates | None,
    name: str,
    back: bool = False,
) -> tuple[Tensor, State]:
    """One cell over one sequence: fast, or step by step where the gates are wanted.

    With `back` it reads backwards; states and gates stand where the words are all the same.
    """

    def turn(x: Tensor) -> Tensor:
        if not back:
            return x
        return x.flip(1) if lengths is None else reverse(x, lengths)

    assert isinstance(cell, Cell)
    x = replace(x, numbers=turn(x.numbers)) if isinstance(x, Words) else turn(x)
    if gates is None:
        states, final = cell(x, lengths, state)
    else:
        states, final, seen = cell.unroll(x, lengths, state)
        gates.update({f"{name}.{gate}": turn(values) for gate, values in seen.items()})
    return turn(states), final
