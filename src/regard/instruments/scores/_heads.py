"""What single heads and single sentences of a recording measure, to find some among many."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.instruments.scores._agreement import TOP, agree_by_row
from regard.instruments.scores._scores import pairs_of
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


def entropies(weights: Array) -> Array:
    """Entropy over the last axis, in nats: 0 where one position has all weight."""
    safe = np.where(weights > 0, weights, 1.0)
    found: Array = -(weights * np.log(safe)).sum(axis=-1)
    return found


def describe_heads(recording: Recording) -> list[dict[str, Any]]:
    """Every head: mean entropy (nats), how much weight lies on the diagonal, on the largest
    position, and on the recorded alignment, where there is one."""
    rows = []
    for name, site in recording.metadata.sites.items():
        mask = recording[f"{site.query_side}.mask"]
        for head in range(site.heads):
            weights = recording[f"{name}.weights"][:, head].astype(np.float64)
            row: dict[str, Any] = {"site": name, "head": head, "layer": site.layer}
            row["entropy"] = float(entropies(weights)[mask].mean())
            row["diagonal"] = float(_take(weights, _diagonal(weights))[mask].mean())
            row["peak"] = float(weights.max(axis=2)[mask].mean())
            if site.crosses and "alignment" in recording:
                places = recording["alignment"]
                there = mask & (places >= 0)
                aligned = _take(weights, np.maximum(places, 0))[there]
                row["alignment"] = float(aligned.mean()) if there.any() else None
            if site.crosses and "lexical" in recording:
                row["agreement"] = _agree(weights, recording)
            rows.append(row)
    return rows


def _diagonal(weights: Array) -> Array:
    """The position of the same number as the step, or the last."""
    samples, steps, width = weights.shape
    return np.broadcast_to(np.minimum(np.arange(steps), width - 1), (samples, steps))


def _take(weights: Array, places: Array) -> Array:
    """The weight at one position of each row. (sample, step)"""
    found: Array = np.take_along_axis(weights, places[:, :, None], axis=2)[:, :, 0]
    return found


def _agree(weights: Array, recording: Recording) -> float:
    """A(α, β) of snell2021, eq. 10."""
    pairs = pairs_of(recording)
    kept = pairs.any(axis=2)
    rows = agree_by_row(weights[kept], recording["lexical"][kept], pairs[kept], TOP)
    return float(rows.mean())


def describe_sentences(recording: Recording) -> list[dict[str, Any]]:
    """Every sample: its words, its length, the share of wrong words, the entropy of its attention
    to the source, and how often that agrees with the lexical probe."""
    source, target = recording.vocabulary("encoder"), recording.vocabulary("decoder")
    words, mask = recording["encoder.words"], recording["encoder.mask"]
    rows: list[dict[str, Any]] = [
        {"sample": n, "source": " ".join(source.decode(row[m].tolist())), "length": int(m.sum())}
        for n, (row, m) in enumerate(zip(words, mask, strict=True))
    ]
    there = None
    if "decoder.mask" in recording:
        there = recording["decoder.mask"]
    if there is not None and "predictions" in recording and "targets" in recording:
        said, right = recording["predictions"], recording["targets"]
        for row, s, t, m in zip(rows, said, right, there, strict=True):
            row["error"] = float((s != t)[m].mean()) if m.any() else None
            row["said"], row["target"] = (" ".join(target.decode(x[m].tolist())) for x in (s, t))
    crossing = [name for name, site in recording.metadata.sites.items() if site.crosses]
    if crossing and there is not None:
        weights = recording[f"{crossing[-1]}.weights"].astype(np.float64)
        each = entropies(weights).mean(axis=1)
        for row, values, m in zip(rows, each, there, strict=True):
            row["entropy"] = float(values[m].mean()) if m.any() else None
        if "lexical" in recording:
            pairs, mean = pairs_of(recording), weights.mean(axis=1)
            for n, row in enumerate(rows):
                kept = pairs[n].any(axis=1)
                found = agree_by_row(
                    mean[n][kept], recording["lexical"][n][kept], pairs[n][kept], TOP
                )
                row["agreement"] = float(found.mean()) if len(found) else None
    return rows
