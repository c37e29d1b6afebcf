"""The weight matrices of a model by name, one block per gate.

`encoder.embedding`, `encoder.0.W_ih.update`, `encoder.0.back.W_hh.reset`, `attention.query`,
`readout`: side, layer (`back` where it reads backwards), matrix, gate. W_ih meets a cell's input,
W_hh its last state. Rows are what a weight goes to, columns what it comes from; an embedding has
a row per word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.instruments.instrument import Runs, opened
from regard.models.cells import Cell
from regard.models.encoder import FeedForward
from regard.recordings.recording import numbers
from regard.recordings.storage import Array
from regard.runs import Run

# How `torch.nn`, and the cells here, stack the blocks of a matrix.
LSTM = ("input", "forget", "candidate", "output")
GRU = ("reset", "update", "candidate")
MATRICES = {"weight_ih": "W_ih", "weight_hh": "W_hh"}

# Where a module stands in Regard's models, and what it is called here.
NAMES = (
    (r"^source_embedding", "encoder.embedding"),
    (r"^target_embedding", "decoder.embedding"),
    (r"^(encoder|decoder)\.(?:ahead|layers)\.(\d+)", r"\1.\2"),
    (r"^encoder\.back\.(\d+)", r"encoder.\1.back"),
    (r"\.weight$", ""),
)

Weighted = Run | str | Path | nn.Module | Mapping[str, Any]
Holders = Weighted | Sequence[Weighted]


@dataclass(frozen=True)
class Blocks:
    """The matrices of one model, and the words that its vocabularies have, where known."""

    arrays: dict[str, Array]  # (to, from)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # block -> words of its rows

    def __getitem__(self, name: str) -> Array:
        if name not in self.arrays:
            raise RegardError(unknown("block of weights", name, self.arrays))
        return self.arrays[name]

    def under(self, name: str) -> list[str]:
        """The block of that name, or all whose names begin so: `encoder.0.W_hh`."""
        if name in self.arrays:
            return [name]
        found = [block for block in self.arrays if block.startswith(f"{name}.")]
        if not found:
            raise RegardError(unknown("block of weights", name, self.arrays))
        return found

    def first(self, *names: str) -> str:
        """The first of some names that is there, or the first block of all."""
        if not self.arrays:
            raise RegardError("There are no weights to look at: the model has no matrix.")
        return next((name for name in names if name in self.arrays), next(iter(self.arrays)))

    def rows(self, name: str) -> tuple[str, ...]:
        """What the rows of a block are: words where known, else numbers."""
        count = len(self[name])
        words = self.words.get(name, ())
        return words if len(words) == count else tuple(map(str, range(count)))


def held(runs: Holders, checkpoint: str | int = "reported") -> list[Blocks]:
    """The blocks of runs, of modules, or of mappings from names to matrices; one or many."""
    if isinstance(runs, (Run, str, Path, nn.Module, Mapping)):
        runs = [runs]
    if not runs:
        opened(cast(Runs, runs))  # which says so
    return [_blocks(one, checkpoint) for one in runs]


def _blocks(one: Weighted, checkpoint: str | int) -> Blocks:
    if isinstance(one, nn.Module):
        return Blocks(dict(_of_module(one)))
    if isinstance(one, Mapping):
        arrays = {name: numbers(values) for name, values in one.items()}
        faults = [
            f"'{name}' has the shape {array.shape}, but a block of weights has two axes."
            for name, array in arrays.items()
            if array.ndim != 2
        ]
        if faults:
            raise RegardError(*faults)
        return Blocks(arrays)
    (run,) = opened(one)
    model = run.model(checkpoint)
    task = run.task()
    target = task.target_vocabulary.words
    words = {"encoder.embedding": task.source_vocabulary.words}
    return Blocks(
        dict(_of_module(model)), words | dict.fromkeys(["decoder.embedding", "readout"], target)
    )


def _of_module(model: nn.Module) -> Iterator[tuple[str, Array]]:
    """Every matrix of a module, gates apart; biases are none."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.ndim != 2:
                continue
            if isinstance(module, Cell):
                if name == "weight_hh" and _feedforward(model, path):
                    continue  # it only ever meets zeros
                yield from _gates(_join(path, MATRICES.get(name, name)), parameter, parts(module))
            elif isinstance(module, nn.RNNBase | nn.RNNCellBase):
                yield from _gates(_join(path, _torch(name)), parameter, _stacked(module, name))
            else:
                yield _join(path, name), numbers(parameter)


def _join(path: str, name: str) -> str:
    full = f"{path}.{name}" if path else name
    for pattern, replacement in NAMES:
        full = re.sub(pattern, replacement, full)
    return full


def _gates(name: str, stacked: Tensor, gates: Sequence[str]) -> Iterator[tuple[str, Array]]:
    for gate, block in zip(gates, stacked.chunk(len(gates)), strict=True):
        yield f"{name}.{gate}" if gate else name, numbers(block)


def parts(cell: Cell) -> tuple[str, ...]:
    """What the blocks of a cell's matrices are, in their order."""
    if cell.blocks == 1:
        return ("",)
    if set(cell.gate_names) == set(LSTM) - {"candidate"}:
        return LSTM
    named = (*cell.gate_names, "candidate")
    return named if len(named) == cell.blocks else tuple(map(str, range(cell.blocks)))


def _feedforward(model: nn.Module, path: str) -> bool:
    parent = path.rpartition(".layers.")[0]
    return bool(parent) and isinstance(model.get_submodule(parent), FeedForward)


def _torch(name: str) -> str:
    """`weight_ih_l0_reverse` of `torch.nn` as `0.back.W_ih`."""
    found = re.fullmatch(r"weight_(\w\w)(?:_l(\d+)(_reverse)?)?", name)
    if found is None:
        return name
    matrix, layer, back = found.groups()
    return ".".join([*([layer] if layer else []), *(["back"] if back else []), f"W_{matrix}"])


def _stacked(module: nn.Module, name: str) -> tuple[str, ...]:
    if "_hr" in name:  # the LSTM's projection of its state
        return ("",)
    if isinstance(module, nn.GRU | nn.GRUCell):
        return GRU
    return LSTM if isinstance(module, nn.LSTM | nn.LSTMCell) else ("",)


def gate_name(array: str) -> str:
    """A recorded gate by the names used here: `encoder.gates.0.ahead.update` is of `encoder.0`."""
    return array.replace(".gates", "").replace(".ahead", "")
