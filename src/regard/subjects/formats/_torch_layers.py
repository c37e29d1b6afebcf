"""Layers that torch has written: which numbers of a file go where in Regard's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.cells import TorchCell
from regard.models.layers.hook_point import Side
from regard.models.transformer import Heads
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats._transformer import Layer, PlainTransformer, Shape, Stack

SIDES: tuple[Side, Side] = ("encoder", "decoder")
LONGEST = 2048  # words, where a model has no positions that bound them
CELLS = {4: "lstm", 3: "gru-torch", 1: "tanh"}  # blocks of a cell's matrix


class Cells(NamedTuple):
    """What the arrays of a recurrent part say of it."""

    kind: str
    inputs: int
    hidden: int
    layers: int
    both: bool
    listed: bool  # cells in a list, not in one module of torch


def read_cells(held: Arrays, name: str) -> Cells:
    """What `NAME.weight_ih_l0` and its like, or `NAME.0.weight_ih`, are."""
    listed = f"{name}.0.weight_ih" in held
    ends = (".0.weight_ih", ".0.weight_hh") if listed else (".weight_ih_l0", ".weight_hh_l0")
    (rows, inputs), (_, hidden) = (held.shape(name + end) for end in ends)
    if rows % hidden or rows // hidden not in CELLS:
        raise RegardError(f"{held.where}: '{name}' is a recurrent cell that is not known here.")
    layers = 0
    while (f"{name}.{layers}.weight_ih" if listed else f"{name}.weight_ih_l{layers}") in held:
        layers += 1
    both = f"{name}.weight_ih_l0_reverse" in held
    return Cells(CELLS[rows // hidden], inputs, hidden, layers, both, listed)


def fill_cells(held: Arrays, cells: nn.ModuleList, name: str, listed: bool, end: str = "") -> None:
    """The arrays of a recurrent part, layer by layer."""
    for layer, cell in enumerate(cells):
        assert isinstance(cell, TorchCell)
        for parameter, part in zip(
            cell.weights, ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), strict=True
        ):
            where = f"{name}.{layer}.{part}" if listed else f"{name}.{part}_l{layer}{end}"
            if part.startswith("bias") and where not in held:
                nn.init.zeros_(parameter)
            else:
                held.fill(parameter, where)


def fill_linear(held: Arrays, linear: nn.Linear | nn.LayerNorm, name: str) -> None:
    """`NAME.weight` and `NAME.bias`; a bias that the file does not have is zero."""
    held.fill(linear.weight, f"{name}.weight")
    if linear.bias is not None and f"{name}.bias" in held:
        held.fill(linear.bias, f"{name}.bias")
    elif linear.bias is not None:
        nn.init.zeros_(linear.bias)


def fill_turned(held: Arrays, linear: nn.Linear, name: str, first: int) -> None:
    """A map of [context; state], of which the context has `first`, as one of [state; context]."""
    weight: Tensor = held.take(f"{name}.weight")
    if weight.shape != linear.weight.shape:
        raise RegardError(f"{held.where}: '{name}' has the shape {tuple(weight.shape)}, where"
                          f" {tuple(linear.weight.shape)} is wanted.")  # fmt: skip
    with torch.no_grad():
        linear.weight.copy_(torch.cat([weight[:, first:], weight[:, :first]], dim=1))
    if linear.bias is not None:
        held.fill(linear.bias, f"{name}.bias")


@dataclass(frozen=True)
class Names:
    """What the parts of a Transformer's layer are called; `{}` is the layer's number."""

    layer: str
    attentions: Sequence[str]  # self, cross
    maps: Sequence[str]  # query, key, value, output
    norms: Sequence[str]  # of each attention, then of the feed-forward layer
    inner: str
    outer: str

    def count(self, held: Arrays) -> int:
        """How many layers a file has."""
        first = f"{self.attentions[0]}.{self.maps[0]}.weight"
        found = 0
        while f"{self.layer.format(found)}.{first}" in held:
            found += 1
        return found


def fill_stack(held: Arrays, stack: Stack, names: Names, final: str) -> None:
    """All layers of one side, and the norm after them where there is one."""
    if isinstance(stack.final, nn.LayerNorm):
        fill_linear(held, stack.final, final)
    for number, layer in enumerate(stack.layers):
        assert isinstance(layer, Layer)
        where = names.layer.format(number)
        attentions = [layer.self_attention, layer.cross_attention]
        for heads, part in zip(attentions, names.attentions, strict=False):
            assert isinstance(heads, Heads)
            maps = (heads.query, heads.key, heads.value, heads.merge)
            for linear, name in zip(maps, names.maps, strict=True):
                fill_linear(held, linear, f"{where}.{part}.{name}")
        for norm, name in zip(layer.norms, names.norms, strict=True):
            assert isinstance(norm, nn.LayerNorm)
            fill_linear(held, norm, f"{where}.{name}")
        fill_linear(held, layer.inner, f"{where}.{names.inner}")
        fill_linear(held, layer.outer, f"{where}.{names.outer}")


def make_stack(
    held: Arrays, side: Side, names: Names, table: str, final: str, positions: Tensor | None,
    **said: Any,
) -> Stack:  # fmt: skip
    """One side of a Transformer, filled; `said` are further fields of its `Shape`."""
    words, hidden = held.shape(table)
    inner = held.shape(f"{names.layer.format(0)}.{names.inner}.weight")[0]
    ends = f"{final}.weight" in held
    shape = Shape(words, hidden, inner, names.count(held), **said, final_norm=ends)
    stack = Stack(shape, side, torch.zeros(LONGEST, hidden) if positions is None else positions)
    held.fill(stack.embedding.weight, table)
    fill_stack(held, stack, names, final)
    return stack


def join_stacks(
    held: Arrays, encoder: Stack, decoder: Stack, table: str, bias: str | None = None
) -> PlainTransformer:
    """Both sides with the output layer that a file has, or with the decoder's own table."""
    shared = decoder.embedding.weight
    words, hidden = held.shape(table) if table in held else shared.shape
    readout = nn.Linear(hidden, words, bias=bias is not None and bias in held)
    if table in held:
        held.fill(readout.weight, table)
    else:
        readout.weight.data.copy_(shared.data)
    if bias is not None and bias in held:
        held.fill(readout.bias, bias)
    return PlainTransformer(encoder, decoder, readout)


def refuse_settings(
    where: str, said: Mapping[str, Any], known: Mapping[str, Sequence[Any]]
) -> None:
    """Settings whose values this reader does not know; all at once."""
    faults = [
        f"{where} has {name}={said[name]!r}, which is not known here: only"
        f" {' or '.join(map(repr, values))}."
        for name, values in known.items()
        if name in said and said[name] not in values
    ]
    if faults:
        raise RegardError(*faults)
