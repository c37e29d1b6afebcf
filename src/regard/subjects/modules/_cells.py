"""The gates of a module's cells, by the names that all recordings have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.cells import CELLS
from regard.subjects.modules._found import gates_of
from regard.subjects.modules._layout import Sizes
from regard.subjects.modules._listening import Heard
from regard.subjects.modules.at import Place

# Torch's cells are those of the same equations here.
ALIKE = {nn.GRU: "gru-torch", nn.GRUCell: "gru-torch", nn.LSTM: "lstm", nn.LSTMCell: "lstm"}


def say_effects(net: nn.Module) -> dict[str, str]:
    """What each gate of the cells in a module does when it is open."""
    names = dict.fromkeys(name for m in net.modules() if (name := ALIKE.get(type(m))))
    return {gate: effect for name in names for gate, effect in CELLS[name].gate_effects.items()}


Sources = dict[str, tuple[str, int]]  # `encoder.0` -> the submodule, and the layer in it


def find_weights(
    net: nn.Module, places: Mapping[str, Place], gates: Sources, quantity: str
) -> list[tuple[Tensor, Tensor]]:
    """W_ih and W_hh of the cells whose units a state or gate has: both ways, one way, or none."""
    parts = quantity.split(".")
    layer: int | None = None
    if parts[1:2] == ["gates"]:
        name, layer = gates.get(f"{parts[0]}.{parts[2]}", ("", 0))
    else:
        name = places[quantity].name if quantity in places else ""
    module = dict(net.named_modules()).get(name)
    if isinstance(module, nn.RNNCellBase):
        return [(module.weight_ih, module.weight_hh)]
    if not isinstance(module, nn.RNNBase):
        return []
    layer = module.num_layers - 1 if layer is None else layer
    ways = ("", "_reverse") if module.bidirectional else ("",)
    if parts[1:2] == ["gates"] and module.bidirectional:
        ways = ("_reverse",) if "back" in parts else ("",)
    found = [tuple(getattr(module, f"weight_{w}_l{layer}{way}") for w in ("ih", "hh"))
             for way in ways]  # fmt: skip
    return [(ih, hh) for ih, hh in found]


def find_sides(net: nn.Module, heard: Heard, sizes: Sizes) -> dict[str, str]:
    """Whose steps each cell makes, by how many it made of a probe; others are left out."""
    known = dict(net.named_modules())
    sides = {sizes.source: "encoder", sizes.target: "decoder"}
    steps = {name: _count_steps(known[name], calls) for name, calls in heard.cells.items()}
    return {name: sides[count] for name, count in steps.items() if count in sides}


def _count_steps(module: nn.Module, calls: list[tuple[Any, Any]]) -> int:
    if isinstance(module, nn.RNNCellBase):
        return len(calls)
    assert isinstance(module, nn.RNNBase)
    count = 0
    for args, _ in calls:
        x, _ = _cell_input(args)
        if isinstance(x, nn.utils.rnn.PackedSequence):
            count += len(x.batch_sizes)
        else:
            count += x.shape[1] if module.batch_first and x.ndim == 3 else x.shape[0]
    return count


def find_gates(
    net: nn.Module, heard: Heard, sides: Mapping[str, str]
) -> tuple[dict[str, Tensor], Sources]:
    """`encoder.gates.0.update` and so on, (batch, time, hidden), of every cell that was called,
    layer after layer, and the submodule that each layer is of."""
    found: dict[str, Tensor] = {}
    sources: Sources = {}
    known = dict(net.named_modules())
    for name, calls in heard.cells.items():
        if name not in sides:
            continue
        module, side = known[name], sides[name]
        if getattr(module, "proj_size", 0):
            raise RegardError(
                f"'{name}' is an LSTM with projected states (proj_size), whose gates are not"
                " worked out here. Record without gates."
            )
        if isinstance(module, nn.RNNCellBase):
            given = [_cell_input(args) for args, _ in calls]
            each = [gates_of(module, x[:, None], before) for x, before in given]
            gates = {gate: torch.cat([one[gate] for one in each], 1) for gate in each[0]}
        else:
            assert isinstance(module, nn.RNNBase)
            gates = _layer_gates(module, calls)
        first = sum(key.startswith(f"{side}.") for key in sources)  # layers there are already
        for gate, values in gates.items():
            layer, _, rest = gate.partition(".")
            found[f"{side}.gates.{first + int(layer)}.{rest}"] = values
            sources[f"{side}.{first + int(layer)}"] = (name, int(layer))
    return found, sources


def _cell_input(args: Any) -> tuple[Tensor, Any]:
    return args[0], args[1] if len(args) > 1 else None


def _layer_gates(module: nn.RNNBase, calls: list[tuple[Any, Any]]) -> dict[str, Tensor]:
    """Of one call over all steps, or of one call for every step."""
    parts = []
    for args, _ in calls:
        x, before = _cell_input(args)
        if isinstance(x, nn.utils.rnn.PackedSequence):
            x, lengths = nn.utils.rnn.pad_packed_sequence(x, batch_first=True)
            parts.append(_padded(module, x, before, lengths))
            continue
        if not module.batch_first:
            x = x.transpose(0, 1)
        parts.append(gates_of(module, x, before))
    return {name: torch.cat([part[name] for part in parts], 1) for name in parts[0]}


def _padded(module: nn.RNNBase, x: Tensor, before: Any, lengths: Tensor) -> dict[str, Tensor]:
    """Packed rows one by one, so that reading backwards begins at each row's own end."""
    rows = []
    for row, length in enumerate(lengths.tolist()):
        first = _row(before, row)
        gates = gates_of(module, x[row : row + 1, :length], first)
        rows.append(
            {n: nn.functional.pad(g, (0, 0, 0, x.shape[1] - length)) for n, g in gates.items()}
        )
    return {name: torch.cat([r[name] for r in rows]) for name in rows[0]}


def _row(before: Any, row: int) -> Any:
    if before is None:
        return None
    if isinstance(before, tuple):
        return tuple(_row(part, row) for part in before)
    return before[:, row : row + 1]
