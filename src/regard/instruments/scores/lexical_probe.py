"""`lexical_probe`: what a model knows of translating single words (snell2021, section 2.2).

The probe β is the probability of the right word if attention were all at one source position.
Before attention is learned, it is learned already.
"""

from __future__ import annotations

import numpy as np

from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.scores._lexical import Probed, ProbeOfWords, describe_beta
from regard.instruments.scores._reading import (
    compare_scores,
    is_uniform,
    read_attention,
    read_words,
)
from regard.instruments.scores._scores import Scores
from regard.instruments.sources import Recordings
from regard.recordings.recording import Recording


class LexicalResult(ProbeOfWords):
    """The lexical probe over seeds."""

    shown = "β, the lexical probe"
    compared = "attention α"


@instrument(
    LexicalResult,
    Recordings(also={"lexical": {}}, inputs="teacher", n=200),
    not_sum="Its result keeps the scores of all pairs of words, and shuffles them for chance.",
)
def lexical_probe(
    recording: Recording,
    top: float = 0.05,
    site: str | None = None,
    head: int | None = None,
    layer: int | None = None,
) -> Probed:
    """How likely each target word is, were all attention at one source word (β), against α.

    Reads `lexical`. Recurrent encoder-decoders and classifiers whose output reads the context
    are asked at once, in one pass of the output network over all pairs of words; of Transformers
    and of models that attend before the step, attention is moved, one decoder pass for each pair.
    `site`, `layer` and `head` choose the attention α.
    """
    scores = Scores.of_array(recording, "lexical")
    weights = read_attention(recording, site, head, layer)
    if weights is None:
        raise RegardError("This recording has no attention to compare with. Set model.attention.")
    found = describe_beta(scores)
    if not is_uniform(weights):  # uniform attention has no favourite to agree with
        rows, mask = scores.rows()
        best = np.where(mask, weights.rows()[0], -1).argmax(axis=1)
        chosen = rows[np.arange(len(rows)), best]
        found["mean β where α is highest"] = float(np.exp(chosen).mean())
        found |= compare_scores(weights, scores, "A(α, β)", "Kendall τ of α and β", top)
    return Probed(scores, weights, read_words(recording), found)
