"""`decompose`: hidden states as temporal, input and delta components (aitken2021, eqs. 1-2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.decomposition import Components, Decomposition, as_tensor
from regard.instruments.instrument import Measured, Result, Sources, each, instruments
from regard.recordings import Recording


@dataclass(frozen=True)
class Sizes(Measured):
    """How large the components are: mean squared lengths, as shares of the mean squared state."""

    sizes: dict[str, dict[str, float]]  # side -> component -> share

    def values(self) -> dict[str, float]:
        """`encoder temporal`, `encoder input` and so on."""
        return {
            f"{side} {part}": share
            for side, parts in self.sizes.items()
            for part, share in parts.items()
        }


@dataclass(frozen=True)
class Decomposed(Result[Sizes]):
    """The sizes of the components over seeds."""

    name = "decompose"

    @classmethod
    def of(cls, source: Decomposition) -> Decomposed:
        """Of one decomposition."""
        return cls((_measure(source),))

    def table(self) -> Table:
        """A row per side and component."""
        rows = tuple((*name.split(" "), value) for name, value in self.estimates().items())
        title = f"Components of the hidden states, {self.n} seed{'s' * (self.n > 1)}"
        return Table(title, ("side", "component", "share of E‖h‖²"), rows)

    def figure(self) -> Figure:
        """Bars, a group per component."""
        found = self.estimates()
        sides = list(self.first.sizes)
        bars = tuple(
            Bars.of(side, {k.split(" ")[1]: v for k, v in found.items() if k.startswith(side)}, n)
            for n, side in enumerate(sides)
        )
        caption = (
            "Mean squared length of each component, as a share of the states'. The shares need"
            " not add up to 1: the temporal and the input component may lean on each other."
        )
        panel = Panel("Size of the components", "component", "E‖part‖² / E‖h‖²", bars)
        return Figure("decompose", caption, (panel,))


def decompose(recording: Recording, rows: int = 1000) -> Decomposition:
    """h = μ + χ + Δ for the encoder's and the decoder's states (aitken2021, eqs. 1-2).

    μ_t is the mean state at step t over the samples that have one; χ_x the mean of h − μ over all
    states that follow the word x; Δ what is left. In one pass, `rows` samples at a time.
    Decoder words are the words fed in, `<SOS>` included.

    >>> d = regard.decompose(recording)                       # doctest: +SKIP
    >>> d.encoder.temporal, d.encoder.input, d.encoder.counts # doctest: +SKIP
    """
    return Decomposition.of(recording, rows)


@instruments.register("decompose")
def decomposed(sources: Sources) -> Decomposed:
    """How large the temporal, input and delta components of the hidden states are."""
    return Decomposed(each(sources, _measure))


def _measure(source: Decomposition) -> Sizes:
    sides: dict[str, Components | None] = {"encoder": source.encoder, "decoder": source.decoder}
    there = {side: parts for side, parts in sides.items() if parts is not None}
    sums = {side: torch.zeros(4, dtype=torch.float64) for side in there}
    names = [f"{side}.{what}" for side in there for what in ("states", "words", "mask")]
    for chunk in source.recording.chunks(names, source.rows):
        for side, components in there.items():
            states, mask = chunk[f"{side}.states"], as_tensor(chunk[f"{side}.mask"])
            parts = components.parts(states, chunk[f"{side}.words"])
            for number, part in enumerate((*parts, as_tensor(states))):
                sums[side][number] += part[mask].square().sum(dtype=torch.float64)
    return Sizes(
        {
            side: {
                part: float(total[number] / total[3].clamp(min=1e-300))
                for number, part in enumerate(("temporal", "input", "delta"))
            }
            for side, total in sums.items()
        }
    )
