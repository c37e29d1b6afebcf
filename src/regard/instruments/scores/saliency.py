"""`saliency`: how much each source word bears on each target word, by gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from regard.display import Figure
from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Measured, Result
from regard.instruments.scores._agreement import agreement
from regard.instruments.scores._picture import draw_scores
from regard.instruments.scores._reading import (
    compare_scores,
    is_uniform,
    read_attention,
    read_words,
)
from regard.instruments.scores._scores import Scores
from regard.instruments.sources import Recordings
from regard.recordings.recording import Recording

Method = Literal["gradient", "integrated"]
DEFAULTS: dict[str, Any] = {"method": "gradient", "steps": 32}  # how it is recorded by default
CHECKS = ("finite differences", "completeness")  # that were made when it was recorded


@dataclass(frozen=True)
class Salient(Measured):
    """Saliency of one model, its attention, and how well the numbers can be trusted."""

    scores: Scores  # Δ
    weights: Scores | None  # α, where the model has attention
    words: tuple[list[str], list[str]]  # source and target of the first sentence
    found: dict[str, float]
    method: str

    def values(self) -> dict[str, float]:
        """Agreements with attention, and the checks."""
        return self.found

    def about(self) -> dict[str, Any]:
        """The method."""
        return {"method": self.method}


@dataclass(frozen=True)
class SaliencyResult(Result[Salient]):
    """Saliency over seeds; the figure shows the first's first sentence."""

    ranges = {"A(α, Δ)": SHARE, "A(Δ, α)": SHARE}

    def heading(self) -> str:
        """With the method."""
        return f"Saliency ({self.first.method}), {self.over_seeds}"

    def figure(self) -> Figure:
        """Δ, and α beside it, for one sentence."""
        seed = self.first
        panels = {"saliency Δ": seed.scores}
        if seed.weights is not None:
            panels["attention α"] = seed.weights
        how = "by gradient" if seed.method == "gradient" else "by integrated gradients"
        return draw_scores(
            "saliency",
            f"How much each source word bears on the log-probability of each target word ({how}),"
            f" for one sentence. {self.over_seeds}; the first is shown.",
            panels,
            seed.words,
        )


def _how(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """How saliency is to be recorded."""
    given = {"method": settings.get("method"), "steps": settings.get("steps")}
    return {"saliency": {name: value for name, value in given.items() if value is not None}}


@instrument(SaliencyResult, Recordings(also=_how, inputs="teacher", n=200))
def saliency(
    recording: Recording,
    method: Method | None = None,
    steps: int | None = None,
    top: float = 0.05,
) -> Salient:
    """How much each source word bears on each target word, and whether attention agrees.

    Reads `saliency`. Of a run it is recorded by `gradient` (Δ) by default, or by the stronger
    reference `integrated`, in 32 `steps` by default. The sign is checked by central differences
    on a few sentences, `finite differences` being the largest error relative to the largest Δ
    there; `completeness` is the error of the integrated sum.
    """
    recorded = {**DEFAULTS, **recording.metadata.also.get("saliency", {})}
    for name, wanted in (("method", method), ("steps", steps)):
        if wanted not in (None, recorded[name]):
            raise RegardError(
                f"This recording has saliency with {name}={recorded[name]}, not {wanted}. Record"
                f" once more with also={{'saliency': {{'{name}': {wanted!r}}}}}, or leave it out."
            )
    scores, weights = Scores.of_array(recording, "saliency"), read_attention(recording)
    found = {name: float(recorded[name]) for name in CHECKS if name in recorded}
    if weights is not None and not is_uniform(weights):
        found |= compare_scores(weights, scores, "A(α, Δ)", "Kendall τ", top)
        found["A(Δ, α)"] = float(agreement(scores, weights, top))
    return Salient(scores, weights, read_words(recording), found, str(recorded["method"]))
