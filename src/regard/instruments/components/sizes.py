"""`sizes`: how large the temporal, input and delta components are (aitken2021, eqs. 1-2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from regard.display import Bars, Figure, Panel
from regard.instruments.registry import instrument
from regard.instruments.result import SIZE, Measured, Result
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import Components, StateSums, as_tensor
from regard.recordings.recording import Recording


@dataclass(frozen=True)
class Sizes(Measured):
    """How large the components are: mean squared lengths, as shares of the mean squared state."""

    shares: dict[tuple[str, str], float]  # (side, component) -> share

    def values(self) -> dict[tuple[str, str], float]:
        """By side and component."""
        return self.shares


class SizesResult(Result[Sizes]):
    """The sizes of the components over seeds."""

    title = "Mean squared length of the components, as a share of E‖h‖²"
    columns = ("side",)
    within = SIZE

    def figure(self) -> Figure:
        """Bars, a group per component."""
        found = self.by_key()
        sides = list(dict.fromkeys(key[0] for key in found))
        bars = tuple(
            Bars.of(side, {key[1]: value for key, value in found.items() if key[0] == side}, colour)
            for colour, side in enumerate(sides)
        )
        caption = (
            "Mean squared length of each component, as a share of the states'. The shares need"
            " not add up to 1: the temporal and the input component may lean on each other."
        )
        panel = Panel("Size of the components", "component", "E‖part‖² / E‖h‖²", bars)
        return Figure("sizes", caption, (panel,))


@dataclass(frozen=True)
class SquaredLengths(Summed):
    """Σ‖μ‖², Σ‖χ‖², Σ‖Δ‖² and Σ‖h‖² of each side."""

    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By side. (4,)"""
        means = whole.decomposition
        sides: dict[str, Components | None] = {"encoder": means.encoder, "decoder": means.decoder}
        known = {side: components for side, components in sides.items() if components is not None}
        sums = {side: torch.zeros(4, dtype=torch.float64) for side in known}
        names = [f"{side}.{what}" for side in known for what in ("states", "words", "mask")]
        for chunk in part.chunks(names):
            for side, components in known.items():
                states, mask = chunk[f"{side}.states"], as_tensor(chunk[f"{side}.mask"])
                parts = components.parts(states, chunk[f"{side}.words"])
                for number, values in enumerate((*parts, as_tensor(states))):
                    sums[side][number] += values[mask].square().sum(dtype=torch.float64)
        return {side: total.numpy() for side, total in sums.items()}


@instrument(SizesResult, sums=(StateSums, SquaredLengths))
def sizes(recording: Recording) -> Sizes:
    """How large the temporal, input and delta components of the hidden states are."""
    sums = add_up(SquaredLengths(), recording)
    return Sizes(
        {
            (side, part): float(total[number] / max(total[3], 1e-300))
            for side, total in sums.items()
            for number, part in enumerate(("temporal", "input", "delta"))
        }
    )
