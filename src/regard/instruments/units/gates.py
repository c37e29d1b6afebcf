"""`gates`: how often each gate is shut or open (Karpathy et al. 2015; baan2019, Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.display import Figure, Line, Panel, Points
from regard.errors import RegardError, unknown
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Measured, Result, to_floats
from regard.instruments.sources import Recordings
from regard.models.layers.cells import CELLS
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

NEAR = 0.05  # an axis, or the origin
CROWDED = 150  # units from which dots are faint
Convention = Literal["own", "writes", "keeps"]
WHAT = ("left", "right", "on an axis", "mostly left", "mostly right", "never", "distance")


@dataclass(frozen=True)
class Saturation:
    """One gate: of how many samples and steps each unit is shut (left) or open (right)."""

    left: Array  # (unit,)
    right: Array  # (unit,)
    open: str  # what an open gate does, in words

    def values(self) -> dict[str, float]:
        """What `WHAT` names; see the page of this instrument."""
        least, most = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        return {
            "left": float(self.left.mean()),
            "right": float(self.right.mean()),
            "on an axis": float(((least < NEAR) & (most > NEAR)).mean()),
            "mostly left": float((self.left > 0.5).mean()),
            "mostly right": float((self.right > 0.5).mean()),
            "never": float((most <= NEAR).mean()),
            "distance": float(least.mean()),
        }


@dataclass(frozen=True)
class Gated(Measured):
    """All gates of one model."""

    gates: dict[str, Saturation]
    cell: str | None
    low: float
    high: float
    convention: str

    def values(self) -> dict[tuple[str, str], float]:
        """By gate, `encoder.0.update`, and what `WHAT` names."""
        return {
            (name, what): value
            for name, gate in self.gates.items()
            for what, value in gate.values().items()
        }

    def about(self) -> dict[str, Any]:
        """The cell, and what an open gate does."""
        does = {name: gate.open for name, gate in self.gates.items()}
        return {"cell": self.cell, "convention": self.convention, "open": does}


class GatesResult(Result[Gated]):
    """Saturation over seeds; the figure shows the first."""

    columns = ("gate",)
    within = SHARE

    @property
    def cell(self) -> str:
        """The cell, in words."""
        return self.first.cell or "unknown"

    def heading(self) -> str:
        """With the cell and the limits."""
        limits = f"left: < {self.first.low:g}, right: > {self.first.high:g}"
        return f"Saturation of gates (cell: {self.cell}; {limits}), {self.over_seeds}"

    def figure(self) -> Figure:
        """Right against left share of each unit, a panel per gate; the diagonal is x + y = 1."""
        seed = self.first
        kinds = list(dict.fromkeys(name.rpartition(".")[2] for name in seed.gates))
        panels = []
        for name, gate in seed.gates.items():
            colour = kinds.index(name.rpartition(".")[2])
            marks = (
                Line("", (0.0, 0.5, 1.0), (1.0, 0.5, 0.0), colour=7, dashed=True),
                Points(
                    "",
                    to_floats(gate.left),
                    to_floats(gate.right),
                    colour,
                    size=1.3,
                    faint=len(gate.left) > CROWDED,
                ),
            )
            x, y = f"share left-saturated (< {seed.low:g})", f"share right (> {seed.high:g})"
            panels.append(Panel(f"{name} (open: {gate.open})", x, y, marks, (-0.05, 1.05)))
        meant = {
            "own": "Gates are as the cell has them",
            "writes": "Update gates are shown so that open means that new information enters",
            "keeps": "Update gates are shown so that open means that the old state stays",
        }
        return Figure(
            "gates",
            "Share of samples and steps at which each unit's gate is shut or open; on the dashed"
            f" line it is always one or the other. Cell: {self.cell}."
            f" {meant[seed.convention]}. {self.over_seeds}; the first is shown.",
            tuple(panels),
        )


@dataclass(frozen=True)
class GateCounts(Summed):
    """How often each unit of each gate is below `low` and above `high`; `turned` are 1 − z."""

    low: float
    high: float
    turned: tuple[str, ...] = ()

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By gate: how often (2, unit), and under `GATE steps` of how many words ()."""
        names = [name for name in part.names() if ".gates." in name]
        counts = {name: np.zeros((2, part.shape(name)[2])) for name in names}
        steps = dict.fromkeys(names, 0)
        masks = ["encoder.mask", *(["decoder.mask"] if "decoder.mask" in part else [])]
        for chunk in part.chunks([*names, *masks]):
            for name in names:
                values = chunk[name][chunk[f"{name.split('.')[0]}.mask"]]  # (word, unit)
                values = 1 - values if name in self.turned else values
                counts[name] += (values < self.low).sum(axis=0), (values > self.high).sum(axis=0)
                steps[name] += len(values)
        return counts | {f"{name} steps": np.array(count) for name, count in steps.items()}


@instrument(GatesResult, Recordings(also={"gates": {}}), sums=(GateCounts,))
def gates(
    recording: Recording,
    low: float = 0.1,
    high: float = 0.9,
    convention: Convention = "own",
    cell: str | None = None,
) -> Gated:
    """How often each unit of each gate is below `low` (left) or above `high` (right).

    `convention="writes"` turns update gates that keep into 1 − z, so that open means that new
    information enters, as in baan2019's text; `"keeps"` turns those that write. A recording of a
    model knows what its gates do; of other recordings, `cell` tells it.
    """
    if not 0 <= low < high <= 1:
        raise RegardError(f"low={low:g} and high={high:g} do not fit: 0 ≤ low < high ≤ 1.")
    names = [name for name in recording.names() if ".gates." in name]
    cell = cell or _read_cell(recording)
    effects = {name: _find_effect(recording, name, cell) for name in names}
    turned = {name: _is_turned(name, effects[name], cell, convention) for name in names}
    counts = add_up(GateCounts(low, high, tuple(n for n in names if turned[n])), recording)
    found = {}
    for name in sorted(names, key=lambda name: (not name.startswith("encoder"), name)):
        left, right = counts[name] / max(int(counts[f"{name} steps"]), 1)
        found[shorten(name)] = Saturation(left, right, _say_effect(effects[name], turned[name]))
    return Gated(found, cell, low, high, convention)


def shorten(array: str) -> str:
    """A recorded gate by its place alone: `encoder.gates.0.ahead.update` is `encoder.0.update`."""
    return array.replace(".gates", "").replace(".ahead", "")


def _read_cell(recording: Recording) -> str | None:
    """What the recording says of its cell; nothing where it does not know."""
    model = recording.metadata.origin.get("model")
    return model.get("cell") if isinstance(model, dict) else None


def _find_effect(recording: Recording, name: str, cell: str | None) -> str | None:
    """What an open gate does: as the recording knows it, or as the cell says; None: unknown."""
    gate = name.rpartition(".")[2]
    if gate in recording.metadata.gates:
        return recording.metadata.gates[gate]
    return CELLS[cell].gate_effects.get(gate) if cell and cell in CELLS else None


def _is_turned(name: str, effect: str | None, cell: str | None, convention: Convention) -> bool:
    """Whether an update gate has to be shown as 1 − z."""
    if convention == "own" or not name.endswith(".update"):
        return False
    if effect not in ("keeps", "writes"):
        known = [name for name, kind in CELLS.items() if "update" in kind.gate_effects]
        fault = unknown("convention for the update gate of the cell", str(cell), known)
        raise RegardError(f"{fault} Give cell=, or convention=own.")
    return effect != convention


def _say_effect(effect: str | None, turned: bool) -> str:
    """What an open gate does as it is shown."""
    if turned:
        return f"{'writes' if effect == 'keeps' else 'keeps'} (1 − z)"
    return effect or "unknown"
