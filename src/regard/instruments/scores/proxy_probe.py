"""`proxy_probe`: what a bag of words knows of translating single words (snell2021, section 2.3)."""

from __future__ import annotations

from typing import Any

from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.scores._lexical import Probed, ProbeOfWords, describe_beta
from regard.instruments.scores._reading import compare_scores, read_words
from regard.instruments.scores._scores import Scores
from regard.instruments.scores.agreement import check_same_phrases
from regard.instruments.sources import Recordings
from regard.recordings.recording import Recording

PROXY = Recordings(also={"proxy": {}}, inputs="teacher", n=200)
LEXICAL = Recordings(also={"lexical": {}}, inputs="teacher", n=200)


class ProxyResult(ProbeOfWords):
    """The probe of a bag of words over seeds."""

    shown = "β^px, the probe of a bag of words"
    compared = "β of the other model"


@instrument(
    ProxyResult,
    PROXY,
    not_sum="Its result keeps the scores of all pairs of words, and shuffles them for chance.",
)
def proxy_probe(recording: Recording, against: Any = None, top: float = 0.05) -> Probed:
    """β^px: what a bag of words (model snell-proxy) knows of translating single words.

    With `against`, a run on the same task (or its folder, or a recording of the same sentences
    with `lexical`), also how well its β agrees.
    """
    scores = Scores.of_array(recording, "proxy")
    found, beside = describe_beta(scores), None
    if against is not None:
        other = _record_alike(against, recording)
        beside = Scores.of_array(other, "lexical")
        # As in the paper's program, the position is the proxy's and the top is the other's.
        found |= compare_scores(scores, beside, "A(β, β^px)", "Kendall τ of β and β^px", top)
    return Probed(scores, beside, read_words(recording), found)


def _record_alike(against: Any, recording: Recording) -> Recording:
    """β of another model on the same sentences."""
    against = LEXICAL.find(against)
    samples = dict(recording.metadata.origin.get("samples", {}))
    options = {} if isinstance(against, Recording) else {
        "n": len(recording), "split": samples.get("split"), "samples": samples.get("seed", 0)
    }  # fmt: skip
    other = LEXICAL.open(against, {}, {k: v for k, v in options.items() if v is not None})
    if any(other.words(side) != recording.words(side) for side in ("encoder", "decoder")):
        raise RegardError("The other model has other words. Compare runs of one task.")
    check_same_phrases(recording, other)
    return other
