"""The weight matrices of any module by name, one block per gate.

`encoder.embedding`, `encoder.0.W_ih.update`, `encoder.0.back.W_hh.reset`, `attention.query`,
`readout`: side, layer (`back` where it reads backwards), matrix, gate. W_ih meets a cell's input,
W_hh its last state. Rows are what a weight goes to, columns what it comes from; an embedding has
a row per word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

Named = Iterator[tuple[str, Tensor]]

# Submodules whose public names are not those of their attributes; layers stand by their numbers.
NAMES = {
    "source_embedding": "encoder.embedding",
    "target_embedding": "decoder.embedding",
    "encoder.layers": "encoder",
    "decoder.layers": "decoder",
}
# How `torch.nn` stacks the blocks of a matrix.
STACKS: dict[type[nn.Module], tuple[str, ...]] = {
    **dict.fromkeys((nn.LSTM, nn.LSTMCell), ("input", "forget", "candidate", "output")),
    **dict.fromkeys((nn.GRU, nn.GRUCell), ("reset", "update", "candidate")),
}


@runtime_checkable
class NamesBlocks(Protocol):
    """A module that names its own blocks."""

    def named_blocks(self) -> Named:
        """Every matrix by its name inside of this module, gates apart."""


def blocks_of(module: nn.Module) -> dict[str, Tensor]:
    """Every matrix of a module, gates apart: the parameters themselves, or parts of them.

    Biases and other vectors are none.
    """
    return dict(_walk(module, "", set()))


def split_gates(name: str, stacked: Tensor, gates: tuple[str, ...]) -> Named:
    """The blocks of one stacked matrix (blocks·hidden, …), by gate."""
    for gate, block in zip(gates, stacked.chunk(len(gates)), strict=True):
        yield _join(name, gate), block


def _walk(module: nn.Module, path: str, seen: set[nn.Module]) -> Named:
    """First a module's own matrices, then those of its submodules, each module once."""
    if module in seen:
        return
    seen.add(module)
    if isinstance(module, NamesBlocks):
        yield from ((_join(path, name), block) for name, block in module.named_blocks())
    elif isinstance(module, nn.RNNBase | nn.RNNCellBase):
        yield from ((_join(path, name), block) for name, block in _torch_blocks(module))
    else:
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.ndim == 2:
                yield path if path and name == "weight" else _join(path, name), parameter
        for name, child in module.named_children():
            full = _join(path, name)
            yield from _walk(child, NAMES.get(full, full), seen)


def _torch_blocks(module: nn.RNNBase | nn.RNNCellBase) -> Named:
    """`weight_ih_l0_reverse` of `torch.nn` is `0.back.W_ih`, and a cell's `weight_ih` `W_ih`."""
    gates = next((stack for kind, stack in STACKS.items() if isinstance(module, kind)), ("",))
    for name, parameter in module.named_parameters():
        if parameter.ndim != 2:
            continue
        _, matrix, *rest = name.split("_")
        layer, *back = (part.removeprefix("l").replace("reverse", "back") for part in rest or [""])
        full = ".".join(filter(None, [layer, *back, f"W_{matrix}"]))
        # `hr` is the LSTM's projection of its state, which has no gates.
        yield from split_gates(full, parameter, ("",) if matrix == "hr" else gates)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
