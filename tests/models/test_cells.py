"""Every cell: the fast path is the definition, and the definition is the paper's."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from regard.models.layers.cells import CELLS, LSTM, Cell, TorchCell, Words

NN = {"tanh": nn.RNN, "lstm": nn.LSTM, "gru-torch": nn.GRU}
LENGTHS = torch.tensor([7, 1, 4, 7, 2])
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(params=list(CELLS))
def cell(request: pytest.FixtureRequest) -> Cell:
    return CELLS[request.param](6, 11)


def gradients(cell: Cell, x: Tensor, outputs: tuple[Tensor, ...], first: tuple[Tensor, ...]):
    torch.manual_seed(1)
    loss = sum((output * torch.randn(output.shape)).sum() for output in outputs)
    return torch.autograd.grad(loss, [x, *first, *cell.parameters()])


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
@pytest.mark.parametrize("given", [True, False], ids=["given state", "fresh state"])
def test_fast_path_equals_steps(cell: Cell, lengths: Tensor | None, given: bool) -> None:
    x = torch.randn(5, 7, 6, requires_grad=True)
    first = tuple(torch.randn(5, 11, requires_grad=True) for _ in cell.state_names) if given else ()
    fast, final = cell(x, lengths, first or None)
    slow, last, gates = cell.unroll(x, lengths, first or None)
    torch.testing.assert_close(fast, slow, **CLOSE)
    torch.testing.assert_close(final, last, **CLOSE)
    assert set(gates) == set(cell.gate_effects)
    for a, b in zip(
        gradients(cell, x, (fast, *final), first),
        gradients(cell, x, (slow, *last), first),
        strict=True,
    ):
        torch.testing.assert_close(a, b, **CLOSE)


def test_only_the_last_state_is_looked_at(cell: Cell) -> None:
    x = torch.randn(5, 7, 6, requires_grad=True)
    fast = gradients(cell, x, cell(x, LENGTHS)[1][-1:], ())
    slow = gradients(cell, x, cell.unroll(x, LENGTHS)[1][-1:], ())
    for a, b in zip(fast, slow, strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


def test_padding_changes_nothing(cell: Cell) -> None:
    x = torch.randn(5, 7, 6)
    states, final = cell(x, LENGTHS)
    garbage = x.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        garbage[row, length:] = 1e6
        alone, end = cell(x[row : row + 1, :length])
        torch.testing.assert_close(states[row, :length], alone[0], **CLOSE)
        assert (states[row, length:] == 0).all()
        for member, own in zip(final, end, strict=True):
            torch.testing.assert_close(member[row], own[0], **CLOSE)
    torch.testing.assert_close(cell(garbage, LENGTHS)[0], states, **CLOSE)


def test_words_equal_their_vectors(cell: Cell) -> None:
    """The table is projected once where it is small, and not where it is large."""
    for vocabulary in (4, 60):
        table = torch.randn(vocabulary, 6, requires_grad=True)
        numbers = torch.randint(0, vocabulary, (5, 7))
        results = []
        for x in (Words(numbers, table), nn.functional.embedding(numbers, table)):
            states, final = cell(x, LENGTHS)
            grads = gradients(cell, table, (states, *final), ())
            results.append((states, *grads))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, **CLOSE)


def test_gradient_by_finite_differences(cell: Cell) -> None:
    cell = cell.double()
    x = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([4, 2, 1])

    def run(x: Tensor) -> tuple[Tensor, ...]:
        states, final = cell(x, lengths)
        return states, *final

    assert torch.autograd.gradcheck(run, (x,))


@pytest.mark.parametrize("name", NN)
def test_equals_torch_nn(name: str) -> None:
    cell = CELLS[name](6, 11)
    assert isinstance(cell, TorchCell)
    other = NN[name](6, 11, batch_first=True)
    with torch.no_grad():
        for theirs, ours in zip(other.parameters(), cell.weights, strict=True):
            theirs.copy_(ours)
    x = torch.randn(5, 7, 6)
    torch.testing.assert_close(cell(x)[0], other(x)[0], **CLOSE)
    assert sum(p.numel() for p in cell.parameters()) == sum(p.numel() for p in other.parameters())


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_lstm_kernel_for_other_devices(lengths: Tensor | None) -> None:
    """On a CPU another path is taken, so the one for accelerators is tried here by hand."""
    cell = LSTM(6, 11)
    x = torch.randn(5, 7, 6, requires_grad=True)
    ours, theirs = cell(x, lengths), cell.run_in_torch(x, lengths, None)
    torch.testing.assert_close(theirs, ours, **CLOSE)
    for a, b in zip(
        gradients(cell, x, (ours[0], *ours[1]), ()),
        gradients(cell, x, (theirs[0], *theirs[1]), ()),
        strict=True,
    ):
        torch.testing.assert_close(a, b, **CLOSE)


def test_three_grus_differ_where_the_papers_do() -> None:
    """With an open update gate `torch` and `renn` keep the state, `cho` writes the candidate."""
    h, x = torch.full((1, 4), 0.3), torch.zeros(1, 3)
    kept = {}
    for name in ("gru-torch", "gru-cho", "gru-renn"):
        cell = CELLS[name](3, 4)
        with torch.no_grad():
            for parameter in cell.parameters():
                parameter.zero_()
            cell.bias_ih[4:8] = 20.0  # update gate open
        (new,), gates = cell.step(cell.project(x), (h,))
        assert torch.allclose(gates["update"], torch.ones(1, 4))
        kept[name] = new[0, 0].item()
    assert kept == pytest.approx({"gru-torch": 0.3, "gru-cho": 0.0, "gru-renn": 0.3})


def test_reset_acts_before_or_after_the_matrix() -> None:
    """By hand: n = tanh(r · (w h + b)) in `torch`, n = tanh(w (r h)) in `cho`, all sizes 1."""
    h = torch.tensor([[0.5]])
    for name, bias in (("gru-torch", 0.7), ("gru-cho", 0.0)):
        cell = CELLS[name](1, 1)
        with torch.no_grad():
            for parameter in cell.parameters():
                parameter.zero_()
            cell.weight_hh[2] = 2.0
            if name == "gru-torch":
                cell.bias_hh[2] = bias
        (new,), _ = cell.step(cell.project(torch.zeros(1, 1)), (h,))
        n = torch.tanh(0.5 * (2.0 * h + bias))  # r = z = σ(0) = ½
        torch.testing.assert_close(new, 0.5 * n + 0.5 * h)


WIDE = 50.0  # what opens a gate


@torch.no_grad()
def one_step(cell: Cell, old: float, **biases: float) -> tuple[Tensor, ...]:
    """The state after a step from `old` everywhere, with no weights but some blocks' biases."""
    for name, parameter in cell.named_parameters():
        if name != "weight_hh":
            parameter.zero_()
    for block, bias in biases.items():
        start = cell.hidden * cell.block_names.index(block)
        cell.bias_ih[start : start + cell.hidden] = bias
    first = tuple(torch.full((1, cell.hidden), old) for _ in cell.state_names)
    return cell.step(cell.project(torch.zeros(1, 3)), first)[0]


@pytest.mark.parametrize("name", CELLS)
def test_gates_do_what_they_say(name: str) -> None:
    """Each gate wide open and shut: whether the old state is kept, read or shown, or a new one."""
    cell = CELLS[name](3, 2)
    assert len(cell.block_names) == cell.blocks
    assert set(cell.gate_effects) <= set(cell.block_names)
    for gate, effect in cell.gate_effects.items():
        nn.init.zeros_(cell.weight_hh)
        more, old = {}, 0.7
        if effect == "writes":
            more, old = {"candidate": WIDE}, 0.0
        if effect == "reads the old state":
            with torch.no_grad():
                cell.weight_hh[-2:] = torch.eye(2)
            more = {"update": WIDE if cell.gate_effects["update"] == "writes" else -WIDE}
        states = (one_step(cell, old, **{gate: sign * WIDE, **more}) for sign in (1, -1))
        read = 0 if effect == "shows" else -1  # of an LSTM, h is shown and c is kept
        opened, shut = (float(state[read][0, 0]) for state in states)
        wanted = {"keeps": 0.7, "writes": 1.0, "reads the old state": math.tanh(0.7),
                  "shows": math.tanh(0.35)}  # fmt: skip
        assert opened == pytest.approx(wanted[effect], abs=1e-5), (gate, effect)
        assert shut == pytest.approx(0.0, abs=1e-5), (gate, effect)
