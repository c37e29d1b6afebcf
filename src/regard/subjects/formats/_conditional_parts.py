"""What Marian's recurrent models are made of: maps and cells that may be normalised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear

from regard.models.layers.cells import Cell, Gates, Inputs, RecurrentCell, State, TorchGRU, vectors
from regard.models.layers.encoder import Encoder, run


class Norm(nn.Module):
    """Layer normalisation of neighbouring parts, each by itself, with a scale and a shift."""

    def __init__(self, sizes: Sequence[int], epsilon: float):
        super().__init__()
        self.sizes, self.epsilon = list(sizes), epsilon
        self.weight = nn.Parameter(torch.ones(sum(sizes)))
        self.bias = nn.Parameter(torch.zeros(sum(sizes)))

    def forward(self, x: Tensor) -> Tensor:
        """(…, size) -> (…, size)"""
        parts = torch.split(x, self.sizes, dim=-1)
        normal = [layer_norm(part, part.shape[-1:], eps=self.epsilon) for part in parts]
        return torch.cat(normal, dim=-1) * self.weight + self.bias


class Dense(nn.Linear):
    """norm(W x + b), or W x + b where nothing is normalised."""

    def __init__(self, inputs: int, outputs: int, norm: Norm | None = None):
        super().__init__(inputs, outputs)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) -> (…, outputs)"""
        mapped = super().forward(x)
        return mapped if self.norm is None else self.norm(mapped)


class NormedGRU(TorchGRU):
    """n = tanh(N(W x + b) + r∘M(U h + b')), h' = (1−z)∘n + z∘h, where N and M may normalise.

    `after` are cells without an input that a step goes through besides (deep transitions: Pascanu
    et al. 2014; Miceli Barone et al. 2017). Their gates are called `cell2.update` and so on.
    """

    def __init__(self, inputs: int, hidden: int, after: Sequence[NormedGRU] = ()):
        super().__init__(inputs, hidden)
        self.norm_ih: Norm | None = None
        self.norm_hh: Norm | None = None
        self.after = nn.ModuleList(after)

    def project(self, x: Tensor) -> Tensor:
        """See `Cell`."""
        projected = super().project(x)
        return projected if self.norm_ih is None else self.norm_ih(projected)

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step of the equations above, and of all cells after it."""
        h = state[0]
        recurrent = linear(h, self.weight_hh, self.bias_hh)
        recurrent = recurrent if self.norm_hh is None else self.norm_hh(recurrent)
        xr, xz, xn = projected.chunk(3, dim=1)
        hr, hz, hn = recurrent.chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        h = (1 - z) * torch.tanh(xn + r * hn) + z * h
        gates = {"reset": r, "update": z}
        for number, cell in enumerate(self.after, start=2):
            assert isinstance(cell, NormedGRU)
            (h,), seen = cell.step(cell.project(h[:, :0]), (h,))
            gates |= {f"cell{number}.{gate}": values for gate, values in seen.items()}
        return (h,), gates

    def forward(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """All at once where it is torch's cell, else step by step."""
        if self.norm_hh is None and not self.after:
            return super().forward(x, lengths, state)
        return self.unroll(x, lengths, state)[:2]

    def named_blocks(self) -> Iterator[tuple[str, Tensor]]:
        """Those of a cell; a cell without an input has no W_ih."""
        yield from (pair for pair in super().named_blocks() if pair[1].shape[1])
        for number, cell in enumerate(self.after, start=2):
            assert isinstance(cell, NormedGRU)
            yield from ((f"cell{number}.{name}", block) for name, block in cell.named_blocks())

    def chain(self, side: str, layer: str, first: int = 1) -> Iterator[tuple[str, NormedGRU, str]]:
        """This cell and those after it: the name of each, and how the names of its gates begin."""
        place, _, way = layer.partition(".")
        for number, cell in enumerate([self, *self.after], start=first):
            assert isinstance(cell, NormedGRU)
            part = f".cell{number}" if number > 1 else ""
            back = ".back" if way == "back" else ""
            yield f"{side}.{place}{back}{part}", cell, f"{side}.gates.{layer}{part}"


def name_cells(
    chains: Iterator[tuple[str, NormedGRU, str]], last: nn.Module | None, states: str
) -> dict[str, RecurrentCell]:
    """Cells by name with what is recorded of them; the `last` one's units are the states."""
    found = {}
    for name, cell, gates in chains:
        own = (states,) if cell is last else ()
        recorded = (*own, *(f"{gates}.{gate}" for gate in cell.gate_effects))
        found[name] = RecurrentCell(cell, recorded=recorded)
    return found


class TwoStacks(Encoder):
    """Layers of cells in both directions that meet at the top, as Marian's encoders have them.

    `bidirectional`: two stacks, each in its direction. `alternating`: each turns at every layer.
    `bi-unidirectional`: both directions in the first layer, forwards in all others. With `skip`,
    what enters a layer but the first of a stack is added to what leaves it.
    """

    def __init__(self, ahead: Sequence[Cell], back: Sequence[Cell], way: str, skip: bool):
        nn.Module.__init__(self)
        self.ahead, self.back = nn.ModuleList(ahead), nn.ModuleList(back)
        self.starts, self.dropout = nn.ParameterList(), 0.0
        self.way, self.skip = way, skip

    def forward(
        self, x: Inputs, lengths: Tensor | None, gates: Gates | None = None
    ) -> tuple[Tensor, State]:
        """States (batch, source, features), and their mean over the words (batch, features)."""
        count = x.shape[1] if lengths is None else lengths[:, None]
        if lengths is not None and bool((lengths == x.shape[1]).all()):
            lengths = None

        def climb(x: Inputs, cells: Any, name: str, first: int = 0) -> Tensor:
            for number, cell in enumerate(cells):
                turned = (name == "back") != (self.way == "alternating" and number % 2 == 1)
                place = f"encoder.gates.{first + number}.{name}"
                states, _ = run(cell, x, lengths, None, gates, place, back=turned)
                x = states + vectors(x) if self.skip and number else states
            return vectors(x)

        low = len(self.back)
        ways = (self.ahead[:low], "ahead"), (self.back, "back")
        states = torch.cat([climb(x, *way) for way in ways], dim=2)
        states = climb(states, self.ahead[low:], "ahead", low)
        return states, (states.sum(dim=1) / count,)

    def cells(self) -> dict[str, RecurrentCell]:
        """Every cell by name; the last one of each stack makes the states."""
        found: dict[str, RecurrentCell] = {}
        for way, cells in (("ahead", self.ahead), ("back", self.back)):
            for layer, cell in enumerate(cells):
                assert isinstance(cell, NormedGRU)
                top = layer + 1 == len(self.ahead)
                last = [cell, *cell.after][-1] if top else None
                chain = cell.chain("encoder", f"{layer}.{way}")
                found |= name_cells(chain, last, "encoder.states")
        return found
