"""What the instruments of scores read of a recording besides: words, uniform rows, agreements."""

from __future__ import annotations

import numpy as np

from regard.instruments.scores._agreement import agreement
from regard.instruments.scores._scores import Scores
from regard.recordings.recording import Recording


def read_attention(
    recording: Recording,
    site: str | None = None,
    head: int | None = None,
    layer: int | None = None,
) -> Scores | None:
    """α, or None where a model has no attention from target to source."""
    crossing = any(one.crosses for one in recording.metadata.sites.values())
    return Scores.of_attention(recording, site, head, layer) if crossing else None


def is_uniform(scores: Scores) -> bool:
    """Whether every row is all ties, up to rounding, so that no position is the best."""
    rows, mask = scores.rows()
    spread = np.where(mask, rows, -np.inf).max(axis=1) - np.where(mask, rows, np.inf).min(axis=1)
    return bool((spread < 1e-6).all())


def compare_scores(u: Scores, v: Scores, name: str, tau: str, top: float) -> dict[str, float]:
    """A(u, v) with its yardsticks, those that are numbers, by name."""
    agreed = agreement(u, v, top)
    found = {name: float(agreed), "shuffled": agreed.shuffled, tau: agreed.kendall}
    return {key: value for key, value in found.items() if np.isfinite(value)}


def read_words(recording: Recording, sample: int = 0) -> tuple[list[str], list[str]]:
    """The words of one sample, source and target."""
    names = ("encoder.words", "encoder.mask", "targets", "decoder.mask")
    words, read, targets, said = recording.sample(sample, names).values()
    return (
        recording.vocabulary("encoder").look_up(words[read].tolist()),
        recording.vocabulary("decoder").look_up(targets[said].tolist()),
    )
