"""`gates`: how often each gate is shut or open (Karpathy et al. 2015; baan2019, Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.display import Figure, Line, Panel, Points, Table
from regard.errors import RegardError, unknown
from regard.instruments.blocks import gate_name
from regard.instruments.instrument import (
    Measured,
    Result,
    Sources,
    each_recording,
    instruments,
    numbers,
    reads_gates,
)
from regard.recordings import Recording
from regard.recordings.storage import Array

# What an open update gate does: h' = z∘h + (1−z)∘n keeps, h' = (1−z)∘h + z∘n writes.
KEEPS = {"gru-torch": True, "gru-cho": False, "gru-renn": True, "ugrnn": True}
LSTM = {"input": "writes", "forget": "keeps", "output": "shows"}
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

    def values(self) -> dict[str, float]:
        """`encoder.0.update left` and so on."""
        return {
            f"{name} {what}": value
            for name, gate in self.gates.items()
            for what, value in gate.values().items()
        }


@dataclass(frozen=True)
class GatesResult(Result[Gated]):
    """Saturation over seeds; the figure shows the first."""

    convention: Convention = "own"
    name = "gates"
    within = (0.0, 1.0)

    @property
    def cell(self) -> str:
        """The cell, in words."""
        return self.first.cell or "unknown"

    def table(self) -> Table:
        """A row per gate."""
        found = self.estimates()
        rows = tuple(
            (name, gate.open, *(found[f"{name} {what}"] for what in WHAT))
            for name, gate in self.first.gates.items()
            if f"{name} left" in found
        )
        title = f"Saturation of gates (cell: {self.cell}), {self.n} seed{'s' * (self.n > 1)}"
        low, high = self.first.low, self.first.high
        columns = (f"left (< {low:g})", f"right (> {high:g})", *WHAT[2:])
        return Table(title, ("gate", "open", *columns), rows)

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
                    numbers(gate.left),
                    numbers(gate.right),
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
            f" {meant[self.convention]}. {self.n} seeds; the first is shown.",
            tuple(panels),
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, the cell, and what an open gate does."""
        does = {name: gate.open for name, gate in self.first.gates.items()}
        more = {"cell": self.first.cell, "convention": self.convention, "open": does}
        return {**super().to_json(), **more}


@instruments.register("gates")
@reads_gates
def gates(
    sources: Sources,
    low: float = 0.1,
    high: float = 0.9,
    convention: Convention = "own",
    cell: str | None = None,
) -> GatesResult:
    """How often each unit of each gate is below `low` (left) or above `high` (right).

    `convention="writes"` turns update gates that keep into 1 − z, so that open means that new
    information enters, as in baan2019's text; `"keeps"` turns those that write. A recording of a
    run knows its cell; of other recordings, `cell` tells it.
    """
    if not 0 <= low < high <= 1:
        raise RegardError(f"low={low:g} and high={high:g} do not fit: 0 ≤ low < high ≤ 1.")
    return GatesResult(
        each_recording(sources, lambda source: _measure(source, low, high, convention, cell)),
        convention,
    )


def _measure(
    recording: Recording, low: float, high: float, convention: Convention, cell: str | None
) -> Gated:
    names = [name for name in recording.names() if ".gates." in name]
    if not names:
        raise RegardError(
            "This recording has no gates. Record once more with gates=True (`regard record RUN"
            " --gates`), unless the cell has none."
        )
    cell = cell or _cell(recording)
    turned = {name: _turned(name, cell, convention) for name in names}
    counts = {name: np.zeros((2, recording.shape(name)[2])) for name in names}
    steps = dict.fromkeys(names, 0)
    masks = ["encoder.mask", *(["decoder.mask"] if "decoder.mask" in recording else [])]
    for chunk in recording.chunks([*names, *masks]):
        for name in names:
            values = chunk[name][chunk[f"{name.split('.')[0]}.mask"]]  # (word, unit)
            values = 1 - values if turned[name] else values
            counts[name] += (values < low).sum(axis=0), (values > high).sum(axis=0)
            steps[name] += len(values)
    found = {}
    for name in sorted(names, key=lambda name: (not name.startswith("encoder"), name)):
        left, right = counts[name] / max(steps[name], 1)
        found[gate_name(name)] = Saturation(left, right, _does(name, cell, turned[name]))
    return Gated(found, cell, low, high)


def _cell(recording: Recording) -> str | None:
    """What the recording says of its cell; nothing where it does not know."""
    model = recording.metadata.origin.get("model")
    return model.get("cell") if isinstance(model, dict) else None


def _turned(name: str, cell: str | None, convention: Convention) -> bool:
    """Whether an update gate has to be shown as 1 − z."""
    if convention == "own" or not name.endswith(".update"):
        return False
    if cell not in KEEPS:
        told = unknown("convention for the update gate of the cell", str(cell), KEEPS)
        raise RegardError(f"{told} Give cell=, or convention=own.")
    return KEEPS[cell] != (convention == "keeps")


def _does(name: str, cell: str | None, turned: bool) -> str:
    """What an open gate does."""
    gate = name.rpartition(".")[2]
    if gate == "update" and cell in KEEPS:
        does = "keeps" if KEEPS[cell] != turned else "writes"
        return f"{does} (1 − z)" if turned else does
    if gate == "reset" and cell in KEEPS:
        return "reads the old state"
    if cell in ("lstm", "lstm-renn"):
        return LSTM.get(gate, "unknown")
    return "unknown"
