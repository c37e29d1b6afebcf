"""Recurrent cells: each is a few lines of mathematics and the fastest way to run it.

Every cell has two paths that give the same numbers. `step` is the definition, one time step, and
shows the gates; `forward` runs a whole sequence, on a kernel of our own (see `kernels/`) or, where
that is faster, of `torch.nn`.

Axes: x (batch, time, inputs), states (batch, time, hidden). A state is a tuple whose first
member is h (batch, hidden).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.models.blocks import split_gates
from regard.models.kernels.layout import Layout
from regard.models.kernels.recurrence import Kernel, Source, recur
from regard.models.kernels.recurrence import State as State
from regard.models.kernels.steps import GRUKernel, LSTMKernel, ResetFirstKernel, UGRNNKernel
from regard.registry import Registry
from regard.tasks.batch import mask

Gates = dict[str, Tensor]


@dataclass(frozen=True)
class Words:
    """Input as word numbers and a table of their vectors.

    Where there are fewer words in the table than in the batch, a cell projects the table once
    and looks the results up, which is cheaper than projecting every word of the batch.
    """

    numbers: Tensor  # (batch, time)
    table: Tensor  # (vocab, inputs)

    @property
    def shape(self) -> torch.Size:
        """(batch, time)"""
        return self.numbers.shape

    @property
    def vectors(self) -> Tensor:
        """(batch, time, inputs)"""
        return nn.functional.embedding(self.numbers, self.table)


Inputs = Words | Tensor  # numbers and their vectors, or vectors (batch, time, inputs)


def vectors(x: Inputs) -> Tensor:
    """The input as vectors. (batch, time, inputs)"""
    return x.vectors if isinstance(x, Words) else x


CELLS: Registry[type[Cell]] = Registry("cell")


class Cell(nn.Module, ABC):
    """One layer in one direction.

    Weights are stacked block by block as in `torch.nn`: weight_ih (blocks·hidden, inputs),
    weight_hh (blocks·hidden, hidden).
    """

    blocks: ClassVar[int]
    block_names: ClassVar[tuple[str, ...]]  # in their order; one block alone has no name
    biases: ClassVar[tuple[str, ...]] = ("bias_ih",)
    gate_effects: ClassVar[dict[str, str]] = {}  # what each gate does to the unit when it is open
    state_names: ClassVar[tuple[str, ...]] = ("h",)
    kernel: ClassVar[Kernel | None] = None  # one step with its gradient, see `kernels/`
    bias_ih: nn.Parameter

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.hidden = hidden
        self.weight_ih = nn.Parameter(torch.empty(self.blocks * hidden, inputs))
        self.weight_hh = nn.Parameter(torch.empty(self.blocks * hidden, hidden))
        for name in self.biases:
            self.register_parameter(name, nn.Parameter(torch.empty(self.blocks * hidden)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """N(0, 1/fan_in) weights and zero biases, as in aitken2021's program."""
        for name, parameter in self.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)

    def outweighs(self, batch: int) -> bool:
        """Whether a batch is so small against the weights that passes by hand are faster."""
        on = torch.is_grad_enabled() and self.weight_hh.device.type == "cpu"
        return on and self.hidden > OUTWEIGHS * batch

    def initial(self, batch: int) -> State:
        """The state before the first step: zeros."""
        zeros = self.weight_hh.new_zeros(batch, self.hidden)
        return tuple(zeros for _ in self.state_names)

    def start(self, x: Inputs, state: State | None) -> State:
        """The given state, or the initial one."""
        return self.initial(x.shape[0]) if state is None else state

    def project(self, x: Tensor) -> Tensor:
        """What the input adds to each block, biases included. (…, inputs) -> (…, blocks·hidden)"""
        projected = nn.functional.linear(x, self.weight_ih, self.input_bias)
        return projected.to(self.weight_ih.dtype)  # steps add up in it, whatever the product is in

    @property
    def input_bias(self) -> Tensor:
        """What `project` adds."""
        return self.bias_ih

    @property
    def recurrent(self) -> State:
        """The parameters of the recurrent product."""
        return (self.weight_hh,)

    def named_blocks(self) -> Iterator[tuple[str, Tensor]]:
        """W_ih and W_hh, gate by gate: `W_ih.update`."""
        for name, matrix in (("W_ih", self.weight_ih), ("W_hh", self.weight_hh)):
            yield from split_gates(name, matrix, self.block_names)

    @abstractmethod
    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One time step from a projected input (batch, blocks·hidden)."""

    def forward(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """The states of a whole sequence, zero past each row's length, and the last true state.

        All steps at once, on the fastest way there is. Without a state it starts from `initial`.
        """
        if self.kernel is None:
            return self.unroll(x, lengths, state)[:2]
        device, fresh = self.weight_hh.device, state is None
        layout = Layout.of(x.shape[0], x.shape[1], lengths, device, fresh)
        source, first = self.source(x, layout), self.start(x, state)
        return recur(self.kernel, source, layout, self.recurrent, first)[:2]

    def source(self, x: Inputs, layout: Layout) -> Source:
        """The projected inputs: of all words of a table, where they are few, or of the batch's."""
        if isinstance(x, Words) and len(x.table) <= x.numbers.numel():
            numbers = layout.pack(x.numbers[:, :, None])[:, 0]
            return Source(self.project(x.table), numbers)
        return Source(self.project(layout.pack(vectors(x))))

    def unroll(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State, Gates]:
        """The same as `forward`, step by step, with the gates (batch, time, hidden)."""
        state = self.start(x, state)
        alive = None if lengths is None else mask(lengths, x.shape[1])[:, :, None]
        states, gates = [], []
        for t, projected in enumerate(self.project(vectors(x)).unbind(1)):
            new, gate = self.step(projected, state)
            if alive is not None:
                new = tuple(torch.where(alive[:, t], n, s) for n, s in zip(new, state, strict=True))
            states.append(new[0] if alive is None else new[0] * alive[:, t])
            gates.append(gate)
            state = new
        names = gates[0] if gates else ()
        shown = {name: torch.stack([gate[name] for gate in gates], dim=1) for name in names}
        return torch.stack(states, dim=1), state, shown


@dataclass(frozen=True)
class RecurrentCell:
    """A cell in a model, and what its units are to the rest of it.

    To silence a unit, what leads into it becomes zero (its rows in the cell's parameters), and so
    does its column in each of `columns`: where an encoder's unit starts, if that is learned; where
    a decoder's unit, which starts from the encoder's last state, is read. Where attention
    multiplies units of two cells, those of one number can only be silenced together: `shares`
    names these cells, this one among them.
    """

    cell: Cell
    columns: tuple[Tensor, ...] = ()  # (any, hidden) each, parts of parameters
    shares: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()  # the recorded states and gates that have its units


class TorchCell(Cell):
    """A cell with a kernel in `torch.nn`: its two biases, its initialisation U(±1/√hidden)."""

    biases = ("bias_ih", "bias_hh")
    bias_hh: nn.Parameter

    def reset_parameters(self) -> None:
        """As in `torch.nn`."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(self.hidden**-0.5), self.hidden**-0.5)

    @property
    def weights(self) -> list[Tensor]:
        """The parameters in the order of the kernels of `torch.nn`."""
        return [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]

    def run_in_torch(
        self, kernel: Callable[..., State], x: Inputs, lengths: Tensor | None, state: State | None
    ) -> tuple[Tensor, State]:
        """On a kernel of `torch.nn` that has one member of a state and knows no lengths."""
        states, _ = kernel(vectors(x), self.start(x, state)[0][None], self.weights, *KERNEL)
        if lengths is None:
            return states, (states[:, -1],)
        last = states[torch.arange(len(lengths), device=states.device), lengths - 1]
        return states * mask(lengths, states.shape[1])[:, :, None], (last,)


# Hidden units per row of a batch from which on passes by hand are faster.
OUTWEIGHS = 16

# How the kernels of torch take a layer: biases, one layer, no dropout, training, one direction,
# batch first.
KERNEL = (True, 1, 0.0, True, False, True)


@CELLS.register("tanh")
class Tanh(TorchCell):
    """h' = tanh(W_i x + b_i + W_h h + b_h), Elman's network."""

    blocks = 1
    block_names = ("",)

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step of the equation above."""
        recurrent = nn.functional.linear(state[0], self.weight_hh, self.bias_hh)
        return (torch.tanh(projected + recurrent),), {}

    def forward(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """On `torch.nn.RNN`'s kernel."""
        return self.run_in_torch(torch.rnn_tanh, x, lengths, state)


@CELLS.register("lstm")
class LSTM(TorchCell):
    """i, f, o = σ(W x + U h + b), g = tanh(…); c' = f∘c + i∘g; h' = o∘tanh(c')."""

    blocks = 4
    kernel = LSTMKernel()
    block_names = ("input", "forget", "candidate", "output")
    gate_effects = {"input": "writes", "forget": "keeps", "output": "shows"}
    state_names = ("h", "c")

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step of the equations above."""
        h, c = state
        blocks = projected + nn.functional.linear(h, self.weight_hh)
        i, f, g, o = blocks.chunk(4, dim=1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
        c = f * c + i * torch.tanh(g)
        return (o * torch.tanh(c), c), {"input": i, "forget": f, "output": o}

    @property
    def input_bias(self) -> Tensor:
        """Both biases at once: only their sum matters."""
        return self.bias_ih + self.bias_hh

    def forward(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """On a CPU on our own recurrence, elsewhere on `torch.nn.LSTM`'s kernel."""
        if self.weight_hh.device.type == "cpu":
            return super().forward(x, lengths, state)
        return self.run_packed(x, lengths, state)

    def run_packed(
        self, x: Inputs, lengths: Tensor | None, state: State | None
    ) -> tuple[Tensor, State]:
        """On `torch.nn.LSTM`'s kernel, on packed input, so that the last c is the true one."""
        layout = Layout.of(x.shape[0], x.shape[1], lengths, self.weight_hh.device)
        first = [layout.sort(member)[None] for member in self.start(x, state)]
        counts = torch.tensor(layout.sizes)
        packed = layout.pack(vectors(x))
        states, h, c = torch.lstm(packed, counts, first, self.weights, *KERNEL[:-1])
        return layout.unpack(states), (layout.unsort(h[0]), layout.unsort(c[0]))


@CELLS.register("lstm-renn")
class RennLSTM(LSTM):
    """LSTM as aitken2021's program starts it: N(0, 1/fan_in), biases 0, forget bias 1."""

    def reset_parameters(self) -> None:
        """As above; the forget gate begins open."""
        Cell.reset_parameters(self)
        with torch.no_grad():
            self.bias_ih[self.hidden : 2 * self.hidden] = 1.0


@CELLS.register("gru-torch")
class TorchGRU(TorchCell):
    """GRU as in `torch.nn`: n = tanh(W x + b + r∘(U h + b')); h' = (1−z)∘n + z∘h: z keeps."""

    blocks = 3
    kernel = GRUKernel()
    block_names = ("reset", "update", "candidate")
    gate_effects = {"reset": "reads the old state", "update": "keeps"}

    @property
    def recurrent(self) -> State:
        """With its bias, which the reset gate acts on."""
        return self.weight_hh, self.bias_hh

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step of the equations above."""
        h = state[0]
        recurrent = nn.functional.linear(h, self.weight_hh, self.bias_hh)
        xr, xz, xn = projected.chunk(3, dim=1)
        hr, hz, hn = recurrent.chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return ((1 - z) * n + z * h,), {"reset": r, "update": z}

    def forward(
        self, x: Inputs, lengths: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """On `torch.nn.GRU`'s kernel, or on ours where the weights outweigh the batch.

        Torch's multiplies the weights' gradient out at every step.
        """
        if lengths is None and self.outweighs(x.shape[0]):
            return super().forward(x, None, state)
        return self.run_in_torch(torch.gru, x, lengths, state)

    def source(self, x: Inputs, layout: Layout) -> Source:
        """Projected row by row of the batch, which is the order that its runs have added up in."""
        return Source(layout.pack(self.project(vectors(x))))


class ResetFirstGRU(Cell):
    """The two GRUs whose reset gate acts before the matrix: n = tanh(W x + U(r∘h) + b)."""

    blocks = 3
    block_names = ("reset", "update", "candidate")
    update_keeps: ClassVar[bool]

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step: gates, candidate, and the mixture that the update gate decides."""
        h = state[0]
        hidden = self.hidden
        xr, xz, xn = projected.chunk(3, dim=1)
        hr, hz = nn.functional.linear(h, self.weight_hh[: 2 * hidden]).chunk(2, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + nn.functional.linear(r * h, self.weight_hh[2 * hidden :]))
        keep = z if self.update_keeps else 1 - z
        return (keep * h + (1 - keep) * n,), {"reset": r, "update": z}


@CELLS.register("gru-cho")
class ChoGRU(ResetFirstGRU):
    """GRU as in Cho et al. 2014 and baan2019's text: h' = (1−z)∘h + z∘n: z writes."""

    update_keeps = False
    kernel = ResetFirstKernel(update_keeps)
    gate_effects = {"reset": "reads the old state", "update": "writes"}


@CELLS.register("gru-renn")
class RennGRU(ResetFirstGRU):
    """GRU as in aitken2021's program: h' = u∘h + (1−u)∘c: u keeps."""

    update_keeps = True
    kernel = ResetFirstKernel(update_keeps)
    gate_effects = {"reset": "reads the old state", "update": "keeps"}


@CELLS.register("ugrnn")
class UGRNN(Cell):
    """u = σ(A_u x + W_u h + b_u); c = tanh(A_c x + W_c h + b_c); h' = u∘h + (1−u)∘c."""

    blocks = 2
    kernel = UGRNNKernel()
    block_names = ("update", "candidate")
    gate_effects = {"update": "keeps"}

    def step(self, projected: Tensor, state: State) -> tuple[State, Gates]:
        """One step of the equations above."""
        h = state[0]
        u, c = (projected + nn.functional.linear(h, self.weight_hh)).chunk(2, dim=1)
        u, c = torch.sigmoid(u), torch.tanh(c)
        return (u * h + (1 - u) * c,), {"update": u}
