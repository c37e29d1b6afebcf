"""How a model names its parts: hook points, blocks of weights, cells, components.

Whatever stands right of the models asks here, and never how a model is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.blocks import blocks_of
from regard.models.layers.cells import Cell, RecurrentCell
from regard.models.layers.hook_point import HookPoint

Parts = Mapping[str, Sequence[nn.Module | Tensor | None]]


class Layer(NamedTuple):
    """A part of one side whose first output is the states that the next layer reads."""

    module: nn.Module
    time_first: bool = False  # (time, batch, hidden) instead of (batch, time, hidden)


def number_layers(encoder: Iterable[nn.Module], decoder: Iterable[nn.Module]) -> dict[str, Layer]:
    """The layers of both sides by name: `encoder.0`."""
    sides = {"encoder": encoder, "decoder": decoder}
    return {f"{s}.{n}": Layer(m) for s, own in sides.items() for n, m in enumerate(own)}


class NamedParts(nn.Module):
    """A module that answers for its parts by name."""

    def hook_points(self) -> dict[str, HookPoint]:
        """Where numbers can be looked at or replaced.

        `encoder.embedding` and `decoder.embedding` (batch, time, size): the words' vectors as they
        enter, before positions are added. `encoder.states` and `decoder.states` (batch, time,
        features): the states as attention and output layer read them; what one step of a
        recurrence tells the next does not pass there. Of every attention, by the names in
        `Output.sites`: `SITE.queries`, `SITE.keys` and `SITE.values` (batch, head or 1, time,
        features), `SITE.scores` before the softmax, and `SITE.weights` (batch, head, target,
        source); a hook on the scores gets (scores, queries, keys) as its arguments.
        """
        return {point.name: point for point in self.modules() if isinstance(point, HookPoint)}

    def crossing_sites(self) -> list[str]:
        """The names of the attentions that look from the target to the source."""
        points = self.hook_points()
        sites = dict.fromkeys(point.site for point in points.values() if point.site is not None)
        return [
            site
            for site in sites
            if points[f"{site}.queries"].side == "decoder"
            and points[f"{site}.keys"].side == "encoder"
        ]

    def blocks(self) -> dict[str, Tensor]:
        """Every weight matrix by name, gates apart; see `blocks_of`."""
        return blocks_of(self)

    def cells(self) -> dict[str, RecurrentCell]:
        """The recurrent cells: `encoder.0`, `encoder.0.back` (it reads backwards), `decoder.0`."""
        return {}

    def unit_weights(self, quantity: str) -> list[tuple[Tensor, Tensor]]:
        """What leads into the units of a recorded state or gate: W_ih and W_hh of each cell.

        Both have a row per unit, block by block; two cells where an encoder reads both ways, none
        where units are not those of a cell.
        """
        cells = [one.cell for one in self.cells().values() if quantity in one.recorded]
        return [(cell.weight_ih, cell.weight_hh) for cell in cells]

    def layers(self) -> dict[str, Layer]:
        """The layers whose outputs are states, by name: `encoder.0`, `decoder.0`; none where a
        model has no such parts."""
        return {}

    def gate_effects(self) -> dict[str, str]:
        """What each gate of the cells does when it is open: `update` -> `keeps`."""
        return {
            gate: effect
            for one in self.cells().values()
            for gate, effect in one.cell.gate_effects.items()
        }

    def parts(self) -> Parts:
        """The components inside of both sides, as modules and parameters; what is not there: None.

        `encoder` is the encoder's whole side; all the rest of the model is the decoder's.
        """
        return {"encoder": [getattr(self, "encoder", None)]}

    def components(self) -> dict[str, list[str]]:
        """Names for groups of parameters, to freeze or to swap, and the parameters in each.

        `encoder` and `decoder` are whole sides: the decoder has the attention and the output layer.
        `attention` is the one that looks from the target to the source.
        """
        names = {parameter: name for name, parameter in self.named_parameters()}
        found = {}
        for component, members in self.parts().items():
            held = {
                parameter
                for member in members
                if member is not None
                for parameter in ([member] if isinstance(member, Tensor) else member.parameters())
            }
            found[component] = [name for p, name in names.items() if p in held]
            if component == "encoder":
                found["decoder"] = [name for p, name in names.items() if p not in held]
        return {component: own for component, own in found.items() if own}

    def parameters_of(self, components: Iterable[str]) -> list[str]:
        """The names of the parameters in some components; all unknown ones in one message."""
        known, components = self.components(), list(components)
        faults = [unknown("component", name, known) for name in components if name not in known]
        if faults:
            raise RegardError(*faults)
        return list(dict.fromkeys(name for component in components for name in known[component]))


def matrices_of(side: str, module: nn.Module | None) -> dict[str, list[Tensor]]:
    """The components `SIDE.W_ih` and `SIDE.W_hh`: what all cells of one side read."""
    cells = [] if module is None else [m for m in module.modules() if isinstance(m, Cell)]
    return {
        f"{side}.W_ih": [cell.weight_ih for cell in cells],
        f"{side}.W_hh": [cell.weight_hh for cell in cells],
    }
