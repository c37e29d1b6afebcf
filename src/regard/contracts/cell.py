"""What every cell keeps: the fast way is the definition, and gates do what they say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.contracts.contract import Check, require, require_close, require_docs
from regard.models.layers.cells import CELLS, Cell, Words

INPUTS, HIDDEN = 6, 11
LENGTHS = torch.tensor([7, 1, 4, 7, 2])
WIDE = 50.0  # what opens a gate


def make_cell(name: str) -> Cell:
    """A small cell with weights of its own choice."""
    return CELLS[name](INPUTS, HIDDEN)


def gradients(
    cell: Cell, x: Tensor, outputs: Sequence[Tensor], first: Sequence[Tensor] = ()
) -> tuple[Tensor, ...]:
    """Of a fixed random loss of the outputs: by the input, the first state, the parameters."""
    generator = torch.Generator().manual_seed(1)
    loss = sum((o * torch.randn(o.shape, generator=generator)).sum() for o in outputs)
    return torch.autograd.grad(loss, [x, *first, *cell.parameters()])  # type: ignore[arg-type]


def check_description(cell: Cell) -> None:
    """It says what it is, names its blocks, and what its gates do."""
    require_docs(type(cell), "The cell")
    require(len(cell.block_names) == cell.blocks, "`block_names` names each of the blocks.")
    extra = set(cell.gate_effects) - set(cell.block_names)
    require(not extra, f"`gate_effects` speaks of {extra}, which are no blocks.")
    known = {"keeps", "writes", "reads the old state", "shows"}
    odd = set(cell.gate_effects.values()) - known
    require(not odd, f"A gate that is open {' or '.join(sorted(known))}, not {odd}.")


def check_fast_way(cell: Cell) -> None:
    """`forward` is `step` by `step`: states, last state, gates and gradients."""
    for lengths in (None, LENGTHS):
        for given in (True, False):
            x = torch.randn(5, 7, INPUTS, requires_grad=True)
            names = cell.state_names if given else ()
            first = tuple(torch.randn(5, HIDDEN, requires_grad=True) for _ in names)
            fast, final = cell(x, lengths, first or None)
            slow, last, gates = cell.unroll(x, lengths, first or None)
            require_close(fast, slow, "The states of `forward` are not those of `step`.")
            require_close(final, last, "The last state of `forward` is not that of `step`.")
            require(set(gates) == set(cell.gate_effects), "`step` gives the gates that it names.")
            ways = (gradients(cell, x, (fast, *final), first),
                    gradients(cell, x, (slow, *last), first))  # fmt: skip
            for a, b in zip(*ways, strict=True):
                require_close(a, b, "The gradient of `forward` is not that of `step`.")


def check_last_state(cell: Cell) -> None:
    """The gradient is right where only the last state is looked at."""
    x = torch.randn(5, 7, INPUTS, requires_grad=True)
    fast = gradients(cell, x, cell(x, LENGTHS)[1][-1:])
    slow = gradients(cell, x, cell.unroll(x, LENGTHS)[1][-1:])
    for a, b in zip(fast, slow, strict=True):
        require_close(a, b, "The gradient of the last state is not that of `step`.")


@torch.no_grad()
def check_padding(cell: Cell) -> None:
    """Padding changes nothing, and states in it are zero."""
    x = torch.randn(5, 7, INPUTS)
    states, final = cell(x, LENGTHS)
    garbage = x.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        garbage[row, length:] = 1e6
        alone, end = cell(x[row : row + 1, :length])
        require_close(states[row, :length], alone[0], "A row depends on its neighbours' lengths.")
        require((states[row, length:] == 0).all(), "States in the padding are not zero.")
        for member, own in zip(final, end, strict=True):
            require_close(member[row], own[0], "The last state is not that of the last word.")
    require_close(cell(garbage, LENGTHS)[0], states, "What stands in the padding changes states.")


def check_words(cell: Cell) -> None:
    """Words and a table give what their vectors give, with a small table and a large one."""
    for vocabulary in (4, 60):
        table = torch.randn(vocabulary, INPUTS, requires_grad=True)
        numbers = torch.randint(0, vocabulary, (5, 7))
        results = []
        for x in (Words(numbers, table), nn.functional.embedding(numbers, table)):
            states, final = cell(x, LENGTHS)
            results.append((states, *gradients(cell, table, (states, *final))))
        for a, b in zip(*results, strict=True):
            require_close(a, b, "Words do not give what their vectors give.")


def check_differences(cell: Cell) -> None:
    """The gradient is that of finite differences."""
    double = cell.double()
    x = torch.randn(3, 4, INPUTS, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor) -> tuple[Tensor, ...]:
        states, final = double(x, torch.tensor([4, 2, 1]))
        return states, *final

    require(torch.autograd.gradcheck(run, (x,)), "The gradient is not right.")
    cell.float()


@torch.no_grad()
def take_step(cell: Cell, old: float, **biases: float) -> tuple[Tensor, ...]:
    """The state after a step from `old` everywhere, with no weights but some blocks' biases."""
    for name, parameter in cell.named_parameters():
        if name != "weight_hh":
            parameter.zero_()
    for block, bias in biases.items():
        start = cell.hidden * cell.block_names.index(block)
        cell.bias_ih[start : start + cell.hidden] = bias
    first = tuple(torch.full((1, cell.hidden), old) for _ in cell.state_names)
    return cell.step(cell.project(torch.zeros(1, cell.weight_ih.shape[1])), first)[0]


def check_gates(cell: Cell) -> None:
    """Each gate, wide open and shut, does what `gate_effects` says."""
    cell = type(cell)(3, 2)
    for gate, effect in cell.gate_effects.items():
        nn.init.zeros_(cell.weight_hh)
        more, old = {}, 0.7
        if effect == "writes":
            more, old = {"candidate": WIDE}, 0.0
        if effect == "reads the old state":
            with torch.no_grad():
                cell.weight_hh[-2:] = torch.eye(2)
            more = {"update": WIDE if cell.gate_effects["update"] == "writes" else -WIDE}
        states = [take_step(cell, old, **{gate: sign * WIDE, **more}) for sign in (1, -1)]
        read = 0 if effect == "shows" else -1  # of an LSTM, h is shown and c is kept
        opened, shut = (float(state[read][0, 0]) for state in states)
        _judge_gate(gate, effect, opened, shut)


def _judge_gate(gate: str, effect: str, opened: float, shut: float) -> None:
    """Old states were 0.7, and a new one would be the most that the candidate can be."""
    exact = {"keeps": 0.7, "reads the old state": math.tanh(0.7), "shows": math.tanh(0.35)}
    right = opened > 0.5 if effect == "writes" else abs(opened - exact[effect]) < 1e-5
    if effect == "reads the old state":  # through whatever non-linearity the candidate has
        right = opened > 0.3
    require(right, f"The gate {gate} {effect}, but open it gives {opened:.3g}.")
    require(abs(shut) < 1e-5, f"The gate {gate} {effect}, but shut it gives {shut:.3g}.")


CONTRACT: tuple[Check, ...] = (
    check_description, check_fast_way, check_last_state, check_padding, check_words,
    check_differences, check_gates,
)  # fmt: skip
