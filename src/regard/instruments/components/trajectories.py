"""`trajectories`: temporal components in principal components (aitken2021, Figs. 2a-g, 3b, 3e)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Heat, Line, Panel, Points
from regard.errors import RegardError
from regard.instruments._geometry import Axes, rank_correlation, softmax, take_path
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SHARE, SIZE, Measured, Result, to_floats
from regard.recordings.decomposition import HeadSums, StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Trajectories(Measured):
    """Where the mean states go, and which source step each decoder step is nearest to."""

    axes: Axes
    encoder: Array  # (source, features)
    decoder: Array  # (target, features)
    attention: Array  # (target, source): softmax over source steps of the score of μ_s and μ_t

    @property
    def best(self) -> Array:
        """The source step with the largest μ_s·μ_t, for each decoder step. (target,)"""
        return np.asarray(self.attention.argmax(axis=1))

    def values(self) -> dict[str, float]:
        """Explained variance, how diagonal softmax(μ·μ) is, and how the paths join.

        `diagonal`: share of decoder steps whose best source step is the same step.
        `direction`: rank correlation of decoder step and best source step, −1 where reversed.
        `turns`: how many times the encoder's path goes round its middle, in two components.
        `adjacent`: share of steps whose nearest other step on the path is a neighbour in time.
        `joint`: distance from the encoder's last to the decoder's first mean state, in units of
        the mean step along the paths (small where the decoder goes on from the encoder).
        `joint step`: which encoder step the decoder's first mean state is nearest to, 0 the first
        and 1 the last (near 1 where the decoder goes on from where the encoder stopped).
        """
        moves = [np.linalg.norm(np.diff(p, axis=0), axis=1) for p in (self.encoder, self.decoder)]
        gap = float(np.linalg.norm(self.encoder[-1] - self.decoder[0]))
        near = np.linalg.norm(self.encoder - self.decoder[0], axis=1).argmin()
        best = self.best
        return {
            "explained 2": self.axes.share(2),
            "explained 3": self.axes.share(3),
            "diagonal": float((best == np.arange(len(best))).mean()),
            "direction": rank_correlation(np.arange(len(best)), best),
            "turns": turns(self.axes.project(self.encoder)),
            "joint": gap / max(float(np.concatenate(moves).sum()), 1e-12) * sum(map(len, moves)),
            "joint step": float(near / max(len(self.encoder) - 1, 1)),
            "adjacent": float(np.mean([_adjacent(p) for p in (self.encoder, self.decoder)])),
        }


def turns(flat: Array) -> float:
    """How many times a path in the plane goes round its middle. (step, 2)"""
    centred = flat - flat.mean(axis=0)
    angles = np.unwrap(np.arctan2(centred[:, 1], centred[:, 0]))
    return float(abs(angles[-1] - angles[0]) / (2 * np.pi))


def _adjacent(points: Array) -> float:
    """Share of steps whose nearest other step is the one before or after."""
    if len(points) < 3:
        return 1.0
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argmin(axis=1)
    return float((np.abs(nearest - np.arange(len(points))) == 1).mean())


class TrajectoriesResult(Result[Trajectories]):
    """The paths of each seed; the figure shows the first."""

    ranges = {
        **dict.fromkeys(
            ("explained 2", "explained 3", "diagonal", "adjacent", "joint step"), SHARE
        ),
        **dict.fromkeys(("turns", "joint"), SIZE),
        "direction": CORRELATION,
    }

    def figure(self) -> Figure:
        """Encoder and decoder paths in two components, and softmax(μ·μ)."""
        seed = self.first
        marks: list[Line | Points] = []
        for colour, (side, points) in enumerate(
            (("decoder", seed.decoder), ("encoder", seed.encoder))
        ):
            flat = seed.axes.project(points)
            x, y = to_floats(flat[:, 0]), to_floats(flat[:, 1])
            marks.append(Line(side, x, y, colour=colour, points=True))
            marks.append(Points("", x[:1], y[:1], colour, "square", 1.3))
            marks.append(Points("", x[-1:], y[-1:], colour, "star", 1.3))
        target, source = seed.attention.shape
        heat = Heat(
            tuple(str(n + 1) for n in range(target)),
            tuple(str(n + 1) for n in range(source)),
            tuple(to_floats(row) for row in seed.attention),
            "softmax over t of μ_s·μ_t",
            numbers=False,
        )
        explained = f"{seed.axes.share(2):.0%} of the variance in two components, "
        return Figure(
            "trajectories",
            "Mean states over time (square: first step, star: last)."
            f" {explained}{seed.axes.share(3):.0%} in three, first of {self.over_seeds}.",
            (
                seed.axes.draw_panel("Temporal components", marks),
                Panel("softmax(μ·μ)", "source step", "decoder step", (heat,)),
            ),
        )


@instrument(TrajectoriesResult, sums=(StateSums, HeadSums))
def trajectories(
    recording: Recording,
    site: str | None = None,
    head: int = 0,
    reach: float = 0.0,
    layer: int | None = None,
) -> Trajectories:
    """Temporal components μ of both sides in their common principal components.

    Only steps that at least a share `reach` of the samples have are looked at: the last steps are
    means over few samples, and mostly of their end token.

    softmax(μ·μ) is that of the mean queries and keys of one `head` of one attention `site`; where
    there is no attention, that of the mean states.
    """
    parts = recording.decomposition
    steps, words = (_reached(recording, side, reach) for side in ("decoder", "encoder"))
    encoder, decoder = take_path(parts.encoder), take_path(parts.decoding)
    one_space = encoder.shape[1] == decoder.shape[1]
    if (site, layer) != (None, None) or recording.metadata.sites:
        attention = parts.site(recording.site(site, layer))
        steps, words = (
            _reached(recording, side, reach)
            for side in (attention.site.query_side, attention.site.key_side)
        )
        scores = attention.temporal(head, past=True)
        if not one_space:
            queries, keys = attention.head(head)
            encoder, decoder = take_path(keys), take_path(queries)
    elif one_space:
        scores = decoder @ encoder.T
    else:
        raise RegardError(
            f"The encoder's states have {encoder.shape[1]} features, the decoder's"
            f" {decoder.shape[1]}, and there is no attention: their paths are in two spaces."
        )
    encoder, decoder = (
        path[: _reached(recording, side, reach)]
        for path, side in ((encoder, "encoder"), (decoder, "decoder"))
    )
    axes = Axes.of(np.concatenate([encoder, decoder]))
    return Trajectories(axes, encoder, decoder, softmax(scores[:steps, :words]))


def _reached(recording: Recording, side: str, reach: float) -> int:
    """How many steps of a side a share of the samples have."""
    parts = recording.decomposition
    return (parts.encoder if side == "encoder" else parts.decoding).reached(reach)
