"""What experiments of aitken2021 record, and what recordings show of attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from regard.display import Heat, Panel
from regard.instruments._geometry import rank_correlation, softmax
from regard.instruments.components._terms import PARTS
from regard.instruments.result import to_floats
from regard.recordings.record import record
from regard.recordings.recording import Chunk, Recording
from regard.recordings.storage import Array
from regard.runs import Run

# Where lengths vary, only steps that half of the phrases have are compared over time.
REACH = 0.5
ALL_PAIRS = tuple((a, b) for a in PARTS for b in PARTS)
WORDS = "token_accuracy"  # when the model runs freely, on the test split
FORCED = "forced_token_accuracy"  # when the teacher's words are fed
CHOSEN = ("encoder.words", "alignment", "decoder.mask")  # what `choose` is given
SAMPLES = 1000  # fresh phrases that every analysis looks at, as in the paper


def record_runs(
    runs: Sequence[Run], n: int = SAMPLES, checkpoint: str | int = "last"
) -> list[Recording]:
    """Each run recorded on the same fresh phrases; checkpoint 0 is untrained."""
    return [record(run, n=n, checkpoint=checkpoint) for run in runs]


def share_attended(recording: Recording, choose: Callable[[Chunk], tuple[Array, Array]]) -> float:
    """Share of decoder steps whose most attended source position is the one wanted.

    `choose` says which one is wanted, and a mask of the steps that count. (sample, target) each
    """
    right = total = 0
    for chunk in recording.chunks([*CHOSEN, "attention.weights"]):
        wanted, mask = choose(chunk)
        mask = mask & chunk["decoder.mask"] & (chunk["alignment"] >= 0)
        best = chunk["attention.weights"][:, 0].argmax(axis=2)
        right += int((best == wanted)[mask].sum())
        total += int(mask.sum())
    return right / max(total, 1)


def share_right(recording: Recording) -> float:
    """Share of decoder steps whose most attended source position is the one they come from."""
    return share_attended(recording, lambda chunk: (chunk["alignment"], chunk["decoder.mask"]))


def correlate_order(recording: Recording) -> float:
    """Mean rank correlation of decoder step and most attended source step, over samples.

    1: in order, −1: backwards. The end token's step does not count.
    """
    found = []
    for chunk in recording.chunks(["attention.weights", "decoder.mask"]):
        best = chunk["attention.weights"][:, 0].argmax(axis=2)
        for row, mask in zip(best, chunk["decoder.mask"], strict=True):
            steps = int(mask.sum()) - 1
            if steps > 2:
                found.append(rank_correlation(np.arange(steps), row[:steps]))
    return float(np.mean(found))


def draw_attention(recording: Recording, sample: int, title: str = "Attention") -> Panel:
    """One sample's attention with its words."""
    names = ("attention.weights", "encoder.mask", "predictions", "decoder.mask")
    read = recording.sample(sample, names)
    source, target = int(read["encoder.mask"].sum()), int(read["decoder.mask"].sum())
    weights = read["attention.weights"][0, :target, :source]
    return _draw(recording, sample, title, weights, read["predictions"], "attention")


def draw_terms(recording: Recording, sample: int, title: str, *pairs: tuple[str, str]) -> Panel:
    """The attention that some terms alone would make."""
    weights = attend_by_terms(recording, sample, pairs)
    targets = recording.sample(sample, ["targets"])["targets"]
    return _draw(recording, sample, title, weights, targets, "softmax of the terms")


def attend_by_terms(recording: Recording, sample: int, pairs: Sequence[tuple[str, str]]) -> Array:
    """Softmax of the sum of some of the nine terms, for one sample. -> (target, source)"""
    parts = recording.decomposition.site()
    sides = [f"{side}.{what}" for side in ("encoder", "decoder") for what in ("words", "mask")]
    read = recording.sample(sample, ["attention.queries", "attention.keys", *sides])
    length, steps = int(read["encoder.mask"].sum()), int(read["decoder.mask"].sum())
    ours = parts.queries[0].parts(read["attention.queries"][:1], read["decoder.words"][None])
    theirs = parts.keys[0].parts(read["attention.keys"][:1], read["encoder.words"][None])
    scores = sum(
        ours[PARTS.index(a)][0, :steps] @ theirs[PARTS.index(b)][0, :length].T for a, b in pairs
    )
    return softmax(np.asarray(scores))


def _draw(
    recording: Recording, sample: int, title: str, weights: Array, outputs: Array, label: str
) -> Panel:
    """Weights (target, source) as colours, beside the words of a sample."""
    inputs = recording.sample(sample, ["encoder.words"])["encoder.words"]
    ours, theirs = recording.words("decoder"), recording.words("encoder")
    heat = Heat(
        tuple(ours[n] for n in outputs[: weights.shape[0]]),
        tuple(theirs[n] for n in inputs[: weights.shape[1]]),
        tuple(map(to_floats, weights)),
        label,
        numbers=False,
    )
    return Panel(title, "input", "output", (heat,))
