"""What the experiments of aitken2021 have in common: recordings, pictures, numbers over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from regard.display import Figure, Heat, Panel
from regard.instruments import Decomposition, decompose
from regard.instruments.geometry import rank_correlation, softmax
from regard.instruments.instrument import Result, numbers
from regard.instruments.terms import PARTS
from regard.papers.experiment import Measures, Scale
from regard.recordings import Recording, record
from regard.recordings.storage import Array
from regard.runs import Run
from regard.statistics import Estimate

# Where lengths vary, only steps that half of the phrases have are compared over time.
REACH = 0.5
SAMPLES = 1000  # fresh phrases that every analysis looks at, as in the paper


def looked(
    runs: Sequence[Run], n: int = SAMPLES, checkpoint: str | int = "last"
) -> list[Decomposition]:
    """Each run recorded on the same fresh phrases and decomposed; checkpoint 0 is untrained."""
    return [decompose(record(run, n=n, checkpoint=checkpoint)) for run in runs]


def count(scale: Scale, quick: int = 2, full: int = 5) -> int:
    """How many seeds."""
    return quick if scale == "quick" else full


def taken(result: Result, **names: str) -> Measures:  # type: ignore[type-arg]
    """Some of a result's numbers under names that a rule can use."""
    found = result.estimates()
    return {name: found[value] for name, value in names.items()}


def measured(sources: Sequence[Decomposition], of: Callable[[Decomposition], float]) -> Estimate:
    """One number per seed."""
    return Estimate.of(of(source) for source in sources)


def accuracy(runs: Sequence[Run]) -> Estimate:
    """Word accuracy when the model runs freely, on the test split."""
    return Estimate.share(run.metrics["token_accuracy"] for run in runs)


def joined(name: str, caption: str, *figures: Figure, titles: Sequence[str] = ()) -> Figure:
    """The panels of several figures as one, with a word in front of each figure's titles."""
    panels = []
    for number, figure in enumerate(figures):
        front = f"{titles[number]}: " if titles else ""
        panels += [_titled(panel, front) for panel in figure.panels]
    return Figure(name, caption, tuple(panels))


def _titled(panel: Panel, front: str) -> Panel:

    return (
        replace(panel, title=front + panel.title[:1].lower() + panel.title[1:]) if front else panel
    )


def attention_right(recording: Recording) -> float:
    """Share of decoder steps whose most attended source position is the one they come from."""
    right = total = 0
    for chunk in recording.chunks(["attention.weights", "alignment", "decoder.mask"]):
        there = chunk["decoder.mask"] & (chunk["alignment"] >= 0)
        best = chunk["attention.weights"].argmax(axis=2)
        right += int((best == chunk["alignment"])[there].sum())
        total += int(there.sum())
    return right / max(total, 1)


def follows(recording: Recording) -> float:
    """Mean rank correlation of decoder step and most attended source step, over samples.

    1: in order, −1: backwards. The end token's step does not count.
    """
    found = []
    for chunk in recording.chunks(["attention.weights", "decoder.mask"]):
        best = chunk["attention.weights"].argmax(axis=2)
        for row, there in zip(best, chunk["decoder.mask"], strict=True):
            steps = int(there.sum()) - 1
            if steps > 2:
                found.append(rank_correlation(np.arange(steps), row[:steps]))
    return float(np.mean(found))


def attention_panel(recording: Recording, sample: int, title: str = "Attention") -> Panel:
    """One sample's attention with its words."""
    chunk = {
        name: recording.storage.read(name, sample, sample + 1)[0]
        for name in (
            "attention.weights",
            "encoder.words",
            "encoder.mask",
            "predictions",
            "decoder.mask",
        )
    }
    source, target = int(chunk["encoder.mask"].sum()), int(chunk["decoder.mask"].sum())
    ours, theirs = recording.words("decoder"), recording.words("encoder")
    heat = Heat(
        tuple(ours[n] for n in chunk["predictions"][:target]),
        tuple(theirs[n] for n in chunk["encoder.words"][:source]),
        tuple(numbers(row[:source]) for row in chunk["attention.weights"][:target]),
        "attention",
        numbers=False,
    )
    return Panel(title, "input", "output", (heat,))


def partial_attention(
    source: Decomposition, sample: int, pairs: Sequence[tuple[str, str]]
) -> Array:
    """Softmax of the sum of some of the nine terms, for one sample. -> (target, source)"""
    recording, parts = source.recording, source.site()
    read = {
        name: recording.storage.read(name, sample, sample + 1)
        for name in ("attention.queries", "attention.keys", "decoder.words", "encoder.words")
    }
    length = int(recording.storage.read("encoder.mask", sample, sample + 1).sum())
    steps = int(recording.storage.read("decoder.mask", sample, sample + 1).sum())
    ours = parts.queries[0].parts(read["attention.queries"], read["decoder.words"])
    theirs = parts.keys[0].parts(read["attention.keys"], read["encoder.words"])
    scores = sum(
        ours[PARTS.index(a)][0, :steps] @ theirs[PARTS.index(b)][0, :length].T for a, b in pairs
    )
    return softmax(np.asarray(scores))


def partial_panel(
    source: Decomposition, sample: int, title: str, pairs: Sequence[tuple[str, str]]
) -> Panel:
    """The attention that some terms alone would make."""
    values = partial_attention(source, sample, pairs)
    words = source.recording
    read = words.storage.read
    theirs = read("encoder.words", sample, sample + 1)[0][: values.shape[1]]
    ours = read("targets", sample, sample + 1)[0][: values.shape[0]]
    heat = Heat(
        tuple(words.words("decoder")[n] for n in ours),
        tuple(words.words("encoder")[n] for n in theirs),
        tuple(numbers(row) for row in values),
        "softmax of the terms",
        numbers=False,
    )
    return Panel(title, "input", "output", (heat,))


ALL_PAIRS = tuple((a, b) for a in PARTS for b in PARTS)
