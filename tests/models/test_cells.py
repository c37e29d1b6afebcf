"""Every cell: the fast path is the definition, and the definition is the paper's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard.contracts.cell import CONTRACT, WIDE, check_gates, gradients, take_step
from regard.contracts.contract import Check, ContractError
from regard.models.layers.cells import CELLS, LSTM, UGRNN, Cell, TorchCell

NN = {"tanh": nn.RNN, "lstm": nn.LSTM, "gru-torch": nn.GRU}
LENGTHS = torch.tensor([7, 1, 4, 7, 2])
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(params=list(CELLS))
def cell(request: pytest.FixtureRequest) -> Cell:
    return CELLS[request.param](6, 11)


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_contract(cell: Cell, check: Check) -> None:
    check(cell)


def test_the_way_back_can_be_taken_twice(cell: Cell) -> None:
    x = torch.randn(3, 4, 6)
    states, _ = cell(x, torch.tensor([4, 2, 1]))
    first, second = (
        torch.autograd.grad(states.sum(), list(cell.parameters()), retain_graph=True)
        for _ in range(2)
    )
    torch.testing.assert_close(first, second, atol=0, rtol=0)


def test_a_cell_needs_only_a_step() -> None:
    class Slow(UGRNN):
        kernel = None

    slow, fast = Slow(6, 11), UGRNN(6, 11)
    slow.load_state_dict(fast.state_dict())
    x = torch.randn(5, 7, 6)
    torch.testing.assert_close(slow(x, LENGTHS), fast(x, LENGTHS), **CLOSE)


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
    ours, theirs = cell(x, lengths), cell.run_packed(x, lengths, None)
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


@pytest.mark.parametrize("name", CELLS)
def test_a_gate_that_writes_writes_all(name: str) -> None:
    """The contract leaves room for other non-linearities; these cells have tanh."""
    cell = CELLS[name](3, 2)
    for gate in [gate for gate, effect in cell.gate_effects.items() if effect == "writes"]:
        nn.init.zeros_(cell.weight_hh)
        new = take_step(cell, 0.0, **{gate: WIDE, "candidate": WIDE})
        assert float(new[-1][0, 0]) == pytest.approx(1.0, abs=1e-5)


def test_a_gate_that_lies_is_found() -> None:
    class Liar(CELLS["ugrnn"]):  # type: ignore[misc]
        """Says that its gate writes, and it keeps."""

        gate_effects = {"update": "writes"}

    with pytest.raises(ContractError, match="update writes, but open it gives"):
        check_gates(Liar(3, 2))
