"""`saliency`: how much each source word bears on each target word, by gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE
from regard.instruments.scores._agreement import agreement
from regard.instruments.scores._picture import Pictured, PicturedResult
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
class Salient(Pictured):
    """Δ of one model, its attention, and how well the numbers can be trusted."""

    method: str
    described = ("method",)

    @property
    def weights(self) -> Scores | None:
        """α, where the model has attention."""
        return self.beside

    @property
    def how(self) -> str:
        """The method, in words."""
        return "by gradient" if self.method == "gradient" else "by integrated gradients"


class SaliencyResult(PicturedResult[Salient]):
    """Saliency over seeds."""

    title = "Saliency ({first.method})"
    shown, compared = "saliency Δ", "attention α"
    caption = (
        "How much each source word bears on the log-probability of each target word ({first.how}),"
        " for one sentence."
    )
    ranges = {"A(α, Δ)": SHARE, "A(Δ, α)": SHARE}


def _how(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """How saliency is to be recorded."""
    given = {"method": settings.get("method"), "steps": settings.get("steps")}
    return {"saliency": {name: value for name, value in given.items() if value is not None}}


@instrument(
    SaliencyResult,
    Recordings(also=_how, inputs="teacher", n=200),
    not_sum="Its result keeps the scores of all pairs of words, and shuffles them for chance.",
)
def saliency(
    recording: Recording,
    method: Method | None = None,
    steps: int | None = None,
    top: float = 0.05,
    site: str | None = None,
    head: int | None = None,
    layer: int | None = None,
) -> Salient:
    """How much each source word bears on each target word, and whether attention agrees.

    Reads `saliency`. Of a run it is recorded by `gradient` (Δ) by default, or by the stronger
    reference `integrated`, in 32 `steps` by default. The sign is checked by central differences
    on a few sentences, `finite differences` being the largest error relative to the largest Δ
    there; `completeness` is the error of the integrated sum. Attention is that of one `site` or
    `layer`, by default the last, and of one `head` or the mean over heads.
    """
    recorded = {**DEFAULTS, **recording.metadata.also.get("saliency", {})}
    for name, wanted in (("method", method), ("steps", steps)):
        if wanted not in (None, recorded[name]):
            raise RegardError(
                f"This recording has saliency with {name}={recorded[name]}, not {wanted}. Record"
                f" once more with also={{'saliency': {{'{name}': {wanted!r}}}}}, or leave it out."
            )
    scores = Scores.of_array(recording, "saliency")
    weights = read_attention(recording, site, head, layer)
    found = {name: float(recorded[name]) for name in CHECKS if name in recorded}
    if weights is not None and not is_uniform(weights):
        found |= compare_scores(weights, scores, "A(α, Δ)", "Kendall τ", top)
        found["A(Δ, α)"] = float(agreement(scores, weights, top))
    return Salient(scores, weights, read_words(recording), found, str(recorded["method"]))
