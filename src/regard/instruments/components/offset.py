"""`offset`: where along the source time points to, against the data's (aitken2021, Fig. 5b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Heat, Line, Panel
from regard.instruments._geometry import mean_finite, rank_correlation, softmax, stack_padded
from regard.instruments._settings import Count
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SIZE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import HeadSums, StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Offsets(Measured):
    """μ_s·μ_t around the diagonal, and where the data would have the decoder look."""

    window: int
    profile: Array  # (step, offset): softmax over t, scaled to 0..1 in each row; NaN outside
    best: Array  # (step,): t − s of the largest
    data: Array  # (step,): mean offset in the data
    known: bool  # the data's offset comes from alignments, not from lengths

    def values(self) -> dict[str, float]:
        """Mean offset of both, how far they are apart, and how they go together over time."""
        both = np.isfinite(self.data)
        best, data = self.best[both], self.data[both]
        half = len(best) // 2
        return {
            "temporal offset": float(best.mean()),
            "data offset": float(data.mean()),
            "error": float(np.abs(best - data).mean()),
            "late minus early": float(best[half:].mean() - best[:half].mean()) if half else 0.0,
            "correlation": rank_correlation(best, data),
        }


class OffsetResult(Result[Offsets]):
    """Offsets over seeds."""

    ranges = {"error": SIZE, "correlation": CORRELATION}

    def figure(self) -> Figure:
        """The profile as a matrix, and the best offset against the data's."""
        seed = self.first
        profile = mean_finite([s.profile for s in self.seeds])
        offsets = range(-seed.window, seed.window + 1)
        heat = Heat(
            tuple(str(n + 1) for n in range(len(profile))),
            tuple(f"{n:+d}" if n else "0" for n in offsets),
            tuple(to_floats(row) for row in profile),
            "softmax(μ·μ), scaled by row",
            numbers=False,
        )
        best = stack_padded([s.best for s in self.seeds])  # phrases may have other lengths
        data = mean_finite([s.data for s in self.seeds])
        steps = to_floats(range(1, best.shape[1] + 1))
        lines = (
            Line(
                "largest μ·μ",
                steps,
                to_floats(np.nanmean(best, axis=0)),
                to_floats(np.nanmin(best, axis=0)) if self.n > 1 else None,
                to_floats(np.nanmax(best, axis=0)) if self.n > 1 else None,
                points=True,
            ),
            Line("data", steps, to_floats(data), colour=1, dashed=True),
        )
        source = "alignments" if seed.known else "mean lengths"
        return Figure(
            "offset",
            f"Temporal alignment against the offset t − s, {self.over_seeds} (band: lowest to"
            f" highest). The data's mean offset comes from its {source}.",
            (
                Panel("Temporal alignment", "offset t − s (steps)", "decoder step s", (heat,)),
                Panel("Where it is largest", "decoder step s", "offset t − s (steps)", lines),
            ),
        )


@dataclass(frozen=True)
class AlignedOffsets(Summed):
    """Σ(t − s) over the alignments of each of the first `steps` decoder steps, and how many."""

    steps: int

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`sums` and `counts` (step,)"""
        steps = self.steps
        sums, counts = np.zeros(steps), np.zeros(steps)
        for chunk in part.chunks(["alignment", "decoder.mask"]):
            places = chunk["alignment"][:, :steps]
            mask = chunk["decoder.mask"][:, :steps] & (places >= 0)
            sums += np.where(mask, places - np.arange(places.shape[1]), 0).sum(axis=0)
            counts += mask.sum(axis=0)
        return {"sums": sums, "counts": counts}


@dataclass(frozen=True)
class CountedWords(Summed):
    """How many words there are on each side."""

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`source` and `target` ()"""
        source = target = 0.0
        for chunk in part.chunks(["encoder.mask", "decoder.mask"]):
            source += float(chunk["encoder.mask"].sum())
            target += float(chunk["decoder.mask"].sum())
        return {"source": np.array(source), "target": np.array(target)}


@instrument(OffsetResult, sums=(StateSums, HeadSums, AlignedOffsets, CountedWords))
def offset(
    recording: Recording,
    window: Count = 5,
    site: str | None = None,
    head: int = 0,
    reach: float = 0.0,
    layer: int | None = None,
) -> Offsets:
    """softmax over t of μ_s·μ_t against t − s, scaled per row, with the data's mean offset.

    μ are the mean queries and keys of one `head` of one attention `site`.
    Where the recording has alignments, the data's offset is their mean per decoder step; where
    not, it is what mean lengths imply: s · (mean source length / mean target length) − s; within
    one side it is 0.
    Only decoder steps that at least a share `reach` of the samples have are looked at.
    """
    parts = recording.decomposition.site(recording.site(site, layer))
    steps = parts.head(head)[0].reached(reach)
    shares = softmax(parts.temporal(head, past=True)[:steps])  # (target, source)
    target, length = shares.shape
    low, high = shares.min(axis=1, keepdims=True), shares.max(axis=1, keepdims=True)
    scaled = (shares - low) / np.maximum(high - low, 1e-300)
    profile = np.full((target, 2 * window + 1), np.nan)
    for step in range(target):
        last = step if parts.site.causal else step + window  # nothing looks ahead
        for place in range(max(0, step - window), min(length, last + 1)):
            profile[step, place - step + window] = scaled[step, place]
    data, known = find_data_offset(recording, target)
    if parts.site.query_side == parts.site.key_side:  # no data says how far to look within a side
        data, known = np.zeros(target), False
    return Offsets(window, profile, shares.argmax(axis=1) - np.arange(target), data, known)


def find_data_offset(recording: Recording, steps: int) -> tuple[Array, bool]:
    """The data's mean offset t − s at each decoder step, and whether alignments gave it."""
    if "alignment" in recording:
        found = add_up(AlignedOffsets(steps), recording)
        sums, counts = found["sums"], found["counts"]
        if counts.any():
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), True
    words = add_up(CountedWords(), recording)
    source, target = float(words["source"]), float(words["target"])
    return np.arange(steps) * (source / max(target, 1.0) - 1), False
