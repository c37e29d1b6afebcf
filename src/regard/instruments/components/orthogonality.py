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
from regard.instruments.result import SHARE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import Components, StateSums, as_tensor
from regard.recordings.recording import Chunk, Recording
from regard.recordings.storage import Array

ROUNDING = 1e-5  # parts this small beside the state are float32's rounding
SUM, COUNT = ": sum", ": count"
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

    within = SHARE

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


@dataclass(frozen=True)
class Cosines(Summed):
    """Σ|cos| between each side's μ and each side's χ + Δ, and of how many states."""

    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By pair of sides and what: the sums (step of μ,), the counts (1,)."""
        means = whole.decomposition
        sides = [side for side in ("encoder", "decoder") if f"{side}.states" in part]
        components = {"encoder": means.encoder, "decoder": means.decoder}
        found: Stats = {}
        names = [f"{side}.{what}" for side in sides for what in ("states", "words", "mask")]
        for chunk in part.chunks(names):
            free = {side: _free(chunk, side, components[side]) for side in sides}
            for ours, theirs in PAIRS:
                mu = components[ours]
                if (
                    mu is None
                    or theirs not in free
                    or mu.temporal.shape[1] != free[theirs].shape[1]
                ):
                    continue
                name = f"μ of {ours}, χ+Δ of {theirs}"
                path = normalize(mu.tensors[0][: mu.steps], dim=1)
                cosine = (free[theirs] @ path.t()).abs().double()
                sums = cosine.sum(dim=0).numpy()
                found[f"{name}{SUM}"] = found.get(f"{name}{SUM}", np.zeros(1)) + sums
                found[f"{name}{COUNT}"] = found.get(f"{name}{COUNT}", np.zeros(1)) + len(cosine)
        return found


def _free(chunk: Chunk, side: str, components: Components | None) -> torch.Tensor:
    """The directions of χ + Δ of all states of a side. (states, features)"""
    assert components is not None
    parts = components.parts(chunk[f"{side}.states"], chunk[f"{side}.words"])
    rest = parts.input + parts.delta
    # The only state at its step is its own mean: what is left is rounding, no direction.
    size = as_tensor(chunk[f"{side}.states"]).norm(dim=2)
    mask = as_tensor(chunk[f"{side}.mask"]) & (rest.norm(dim=2) > ROUNDING * size)
    return normalize(rest[mask], dim=1)


@instrument(OrthogonalityResult, sums=(StateSums, Cosines))
def orthogonality(recording: Recording) -> Angles:
    """Cosines between temporal components μ and input-delta components χ + Δ."""
    found = add_up(Cosines(), recording)
    sums = {n.removesuffix(SUM): total for n, total in found.items() if n.endswith(SUM)}
    counts = {name: found[f"{name}{COUNT}"] for name in sums}
    return Angles(
        {name: total / np.maximum(counts[name], 1) for name, total in sums.items()},
        {name: np.broadcast_to(counts[name], total.shape) for name, total in sums.items()},
        _chance(recording.decomposition.encoder.temporal.shape[1]),
    )


def _chance(size: int) -> float:
    """E|cos| of two random directions: Γ(n/2) / (√π Γ((n+1)/2)), near √(2/πn) where n is large."""
    return math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.sqrt(math.pi)
