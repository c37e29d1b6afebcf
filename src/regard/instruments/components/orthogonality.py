"""`orthogonality`: do time and input live in separate directions (aitken2021, section 3)?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import normalize

from regard.display import Figure, Line, Panel, Rule
from regard.instruments._geometry import mean_finite
from regard.instruments.registry import instrument
from regard.instruments.result import Measured, Result, to_floats
from regard.recordings.decomposition import as_tensor
from regard.recordings.recording import Recording
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


class OrthogonalityResult(Result[Angles]):
    """Angles over seeds."""

    def figure(self) -> Figure:
        """Mean |cos| over steps, with the level of random vectors."""
        lines = []
        for colour, name in enumerate(self.first.by_step):
            mean = mean_finite([seed.by_step[name] for seed in self.seeds])
            steps = to_floats(range(1, len(mean) + 1))
            lines.append(Line(name, steps, to_floats(mean), colour=colour, points=True))
        return Figure(
            "orthogonality",
            "Mean |cos| between a temporal component and the input-delta components of all"
            f" states, {self.over_seeds}; 0 is orthogonal.",
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


@instrument(OrthogonalityResult)
def orthogonality(recording: Recording) -> Angles:
    """Cosines between temporal components μ and input-delta components χ + Δ."""
    whole = recording.decomposition
    sides = [side for side in ("encoder", "decoder") if f"{side}.states" in recording]
    components = {"encoder": whole.encoder, "decoder": whole.decoder}
    sums: dict[str, torch.Tensor] = {}
    counts: dict[str, torch.Tensor] = {}
    names = [f"{side}.{what}" for side in sides for what in ("states", "words", "mask")]
    for chunk in recording.chunks(names):
        free = {}
        for side in sides:
            part = components[side]
            assert part is not None
            parts = part.parts(chunk[f"{side}.states"], chunk[f"{side}.words"])
            rest = parts.input + parts.delta
            # The only state at its step is its own mean: what is left is rounding, no direction.
            size = as_tensor(chunk[f"{side}.states"]).norm(dim=2)
            mask = as_tensor(chunk[f"{side}.mask"]) & (rest.norm(dim=2) > ROUNDING * size)
            free[side] = normalize(rest[mask], dim=1)  # (states, features)
        for ours, theirs in PAIRS:
            mu = components[ours]
            if mu is None or theirs not in free or mu.temporal.shape[1] != free[theirs].shape[1]:
                continue
            name = f"μ of {ours}, χ+Δ of {theirs}"
            path = normalize(mu.tensors[0][: mu.steps], dim=1)
            cosine = (free[theirs] @ path.t()).abs().double()
            sums[name] = sums.get(name, torch.zeros(1)) + cosine.sum(dim=0)
            counts[name] = counts.get(name, torch.zeros(1)) + len(cosine)
    hidden = whole.encoder.temporal.shape[1]
    return Angles(
        {name: (total / counts[name].clamp(min=1)).numpy() for name, total in sums.items()},
        {name: counts[name].expand_as(total).numpy() for name, total in sums.items()},
        _chance(hidden),
    )


def _chance(size: int) -> float:
    """E|cos| of two random directions: Γ(n/2) / (√π Γ((n+1)/2)), near √(2/πn) where n is large."""
    return math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.sqrt(math.pi)
