"""`python -m benchmarks recurrences`: our recurrence against torch's kernel on packed input, alone.

Forward and backward from vectors to states, one thread, processor seconds at their best, in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarks.benchmark import BENCHMARKS, Benchmark, agree, take_turns
from regard.models.layers.cells import CELLS, Cell, TorchCell
from regard.training import one_thread

KINDS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru-torch": nn.GRU}
SHAPES = {"mixed": 64, "equal": 64, "one": 1}  # lengths, and rows of the batch
TIME = 20

Pass = Callable[[], list[Tensor]]  # gives gradients


def passes(name: str, hidden: int, shape: str, time: int = TIME) -> tuple[Pass, Pass]:
    """Ours and torch's, from the same vectors, with the same weights."""
    torch.manual_seed(0)
    cell, other = CELLS[name](hidden, hidden), KINDS[name](hidden, hidden, batch_first=True)
    assert isinstance(cell, TorchCell)
    with torch.no_grad():
        for theirs, parameter in zip(other.parameters(), cell.weights, strict=True):
            theirs.copy_(parameter)
    batch = SHAPES[shape]
    x = torch.randn(batch, time, hidden, requires_grad=True)
    lengths = torch.full((batch,), time)
    if shape == "mixed":
        lengths[1:] = torch.randint(time // 4, time + 1, (batch - 1,))

    def ours() -> list[Tensor]:
        states, _ = Cell.forward(cell, x, lengths if shape == "mixed" else None)
        return list(torch.autograd.grad(states.sum(), [x, *cell.weights]))

    def torchs() -> list[Tensor]:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = other(packed if shape == "mixed" else x)
        total = (states.data if shape == "mixed" else states).sum()
        return list(torch.autograd.grad(total, [x, *other.parameters()]))

    return ours, torchs


def compare(name: str, hidden: int, shape: str, rounds: int, time: int = TIME) -> dict[str, float]:
    """Seconds of both, once their gradients agree."""
    ours, torchs = passes(name, hidden, shape, time)
    for a, b in zip(ours(), torchs(), strict=True):
        size = float(b.abs().max()) + 1e-6
        agree(f"Gradients of {name}", (a / size).numpy(), (b / size).numpy())
    ours_taken, torchs_taken = map(min, take_turns(ours, torchs, rounds=rounds, calls=3, cold=1))
    return {"seconds": ours_taken, "torch_seconds": torchs_taken}


@BENCHMARKS.register("recurrences")
def recurrences(
    sizes: Sequence[int] = (64, 128, 256, 512), rounds: int = 10, time: int = TIME
) -> Benchmark:
    """A ratio for every cell, size and kind of batch; above 1 ours is faster."""
    ratios, raw = {}, {}
    with one_thread():
        for name in KINDS:
            for shape, batch in SHAPES.items():
                for hidden in sizes:
                    found = compare(name, hidden, shape, rounds, time)
                    about = f"{name}, hidden {hidden}, batch {batch}, {shape} lengths: torch/ours"
                    key = f"{name}_{shape}_{hidden}"
                    ratios[key] = (found["torch_seconds"] / found["seconds"], 1.0, about)
                    raw[key] = found
    return Benchmark("recurrences", ratios, raw)
