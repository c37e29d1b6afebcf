"""The gates of a module's cells, by the names that all recordings have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

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


def find_weights(
    net: nn.Module, places: Mapping[str, Place], gates: Mapping[str, str], quantity: str
) -> list[tuple[Tensor, Tensor]]:
    """W_ih and W_hh of the cells whose units a state or gate has: both ways, one way, or none."""
    parts = quantity.split(".")
    layer: int | None = None
    if parts[1:2] == ["gates"]:
        name, layer = gates.get(parts[0], ""), int(parts[2])
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


def find_gates(
    net: nn.Module, heard: Heard, sizes: Sizes
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """`encoder.gates.0.update` and so on, (batch, time, hidden), of every cell that was called,
    and the submodule that each side's are of."""
    found: dict[str, Tensor] = {}
    sources: dict[str, str] = {}
    known = dict(net.named_modules())
    for name, calls in heard.cells.items():
        module = known[name]
        if isinstance(module, nn.RNNCellBase):
            given = [_cell_input(args) for args, _ in calls]
            inputs, before = torch.stack([x for x, _ in given], 1), given[0][1]
            gates = gates_of(module, inputs, before)
        else:
            assert isinstance(module, nn.RNNBase)
            gates = _layer_gates(module, calls)
        width = next(iter(gates.values())).shape[1]
        side = "encoder" if width == sizes.source and not _taken(found, "encoder") else "decoder"
        if width == (sizes.source if side == "encoder" else sizes.target):
            found |= {f"{side}.gates.{gate}": values for gate, values in gates.items()}
            sources[side] = name
    return found, sources


def _taken(found: dict[str, Tensor], side: str) -> bool:
    return any(name.startswith(f"{side}.") for name in found)


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
