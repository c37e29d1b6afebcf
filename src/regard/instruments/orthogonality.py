"""`orthogonality`: do time and input live in separate directions (aitken2021, section 3)?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import normalize

from regard.display import Figure, Line, Panel, Rule
from regard.instruments.decomposition import Decomposition, as_tensor
from regard.instruments.geometry import mean_there
from regard.instruments.instrument import Measured, Result, Sources, each, instruments, numbers
from regard.recordings.storage import Array

ROUNDING = 1e-5  # parts this small beside the state are float32's rounding
PAIRS = (("decoder", "encoder"), ("encoder", "encoder"), ("decoder", "decoder"))


@dataclass(frozen=True)
class Angles(Measured):
    """Mean |cos| between temporal components of one side and input-delta ones of another."""

    by_step: dict[str, Array]  # "μ of decoder, χ + Δ of encoder" -> (step of μ,)
    counts: dict[str, Array]
    chance: float

    def values(self) -> dict[str, float]:
        """The mean over all steps for each pair of sides, and what random vectors would give."""
        means = {
            name: float(np.average(values, weights=np.maximum(self.counts[name], 1e-12)))
            for name, values in self.by_step.items()
        }
        return means | {"chance": self.chance}


@dataclass(frozen=True)
class OrthogonalityResult(Result[Angles]):
    """Angles over seeds."""

    name = "orthogonality"

    def figure(self) -> Figure:
        """Mean |cos| over steps, with the level of random vectors."""
        lines = []
        for colour, name in enumerate(self.first.by_step):
            mean = mean_there([seed.by_step[name] for seed in self.seeds])
            steps = numbers(range(1, len(mean) + 1))
            lines.append(Line(name, steps, numbers(mean), colour=colour, points=True))
        return Figure(
            "orthogonality",
            "Mean |cos| between a temporal component and the input-delta components of all"
            f" states, {self.n} seeds; 0 is orthogonal.",
            (
                Panel(
                    "Time and input",
                    "step of the temporal component",
                    "|cos|",
                    (*lines, Rule("random vectors", y=self.first.chance)),
                    (0, 1),
                ),
            ),
        )


@instruments.register("orthogonality")
def orthogonality(sources: Sources) -> OrthogonalityResult:
    """Cosines between temporal components μ and input-delta components χ + Δ."""
    return OrthogonalityResult(each(sources, _measure))


def _measure(source: Decomposition) -> Angles:
    recording = source.recording
    sides = [side for side in ("encoder", "decoder") if f"{side}.states" in recording]
    components = {"encoder": source.encoder, "decoder": source.decoder}
    sums: dict[str, torch.Tensor] = {}
    counts: dict[str, torch.Tensor] = {}
    names = [f"{side}.{what}" for side in sides for what in ("states", "words", "mask")]
    for chunk in recording.chunks(names, source.rows):
        free = {}
        for side in sides:
            part = components[side]
            assert part is not None
            parts = part.parts(chunk[f"{side}.states"], chunk[f"{side}.words"])
            rest = parts.input + parts.delta
            # The only state at its step is its own mean: what is left is rounding, no direction.
            whole = as_tensor(chunk[f"{side}.states"]).norm(dim=2)
            there = as_tensor(chunk[f"{side}.mask"]) & (rest.norm(dim=2) > ROUNDING * whole)
            free[side] = normalize(rest[there], dim=1)  # (states, features)
        for ours, theirs in PAIRS:
            mu = components[ours]
            if mu is None or theirs not in free or mu.temporal.shape[1] != free[theirs].shape[1]:
                continue
            name = f"μ of {ours}, χ+Δ of {theirs}"
            path = normalize(mu.tensors[0][: mu.steps], dim=1)
            cosine = (free[theirs] @ path.t()).abs().double()
            sums[name] = sums.get(name, torch.zeros(1)) + cosine.sum(dim=0)
            counts[name] = counts.get(name, torch.zeros(1)) + len(cosine)
    hidden = source.encoder.temporal.shape[1]
    return Angles(
        {name: (total / counts[name].clamp(min=1)).numpy() for name, total in sums.items()},
        {name: counts[name].expand_as(total).numpy() for name, total in sums.items()},
        _chance(hidden),
    )


def _chance(size: int) -> float:
    """E|cos| of two random directions: Γ(n/2) / (√π Γ((n+1)/2)), near √(2/πn) where n is large."""
    return math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.sqrt(math.pi)
