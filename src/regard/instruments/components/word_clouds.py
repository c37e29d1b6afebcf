"""`word_clouds`: input components, clouds and readouts (aitken2021, Figs. 2b-f, 3c, 3f)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Line, Points
from regard.instruments._geometry import Axes, rank_frequent
from regard.instruments.components.dictionary import reads_projected_values
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import Components, StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

SHOWN = 8  # words that get a colour of their own: the most frequent ones
CLOUD = 80  # points of each word's cloud in the figure


@dataclass(frozen=True)
class Clouds(Measured):
    """χ of the most frequent words, samples of χ + Δ, and the readout vectors."""

    words: tuple[str, ...]
    axes: Axes
    chi: Array  # (word, features)
    clouds: tuple[Array, ...]  # per word (point, features): χ + Δ of the encoder
    readouts: dict[str, Array]  # target word -> (features,), where the sizes agree
    delta: dict[str, float]  # side -> E‖Δ‖² / E‖χ + Δ‖²
    input_delta: dict[str, float]  # side -> E‖χ + Δ‖² / E‖h‖²
    decoder: Array  # (point, features): χ + Δ of the decoder; none where its space is another

    def values(self) -> dict[str, float]:
        """Explained variance, and how much the delta components spread the clouds."""
        return {
            "explained 2": self.axes.share(2),
            "explained 3": self.axes.share(3),
            **{f"{side} delta share": share for side, share in self.delta.items()},
            **{f"{side} input-delta size": share for side, share in self.input_delta.items()},
        }


class WordCloudsResult(Result[Clouds]):
    """The input components of each seed; the figure shows the first."""

    within = SIZE
    ranges = dict.fromkeys(("explained 2", "explained 3"), SHARE)

    def figure(self) -> Figure:
        """Clouds, χ as crosses, readouts as lines from the middle."""
        seed = self.first
        marks: list[Line | Points] = []
        reach = float(np.abs(seed.axes.project(seed.chi)).max()) if len(seed.chi) else 1.0
        for colour, cloud in enumerate(seed.clouds):
            marks.append(seed.axes.draw_points("", cloud, colour, faint=True))
        if len(seed.decoder):
            marks.append(seed.axes.draw_points("decoder", seed.decoder, 7, size=0.6, faint=True))
        for word, vector in seed.readouts.items():
            tip = seed.axes.turn(vector[None])[0]
            length = max(float(np.linalg.norm(tip)), 1e-12)
            tip = tip / length * reach * 1.3
            marks.append(Line("", (0.0, float(tip[0])), (0.0, float(tip[1])), colour=7))
            marks.append(Points("", (float(tip[0]),), (float(tip[1]),), 7, size=0.1, names=(word,)))
        for colour, word in enumerate(seed.words):
            chi, cross = seed.chi[colour][None], {"shape": "cross", "size": 1.4}
            marks.append(seed.axes.draw_points(word, chi, colour, **cross))
        return Figure(
            "word_clouds",
            "Encoder states without their temporal component (dots; grey: the decoder's), the"
            " encoder's input components χ (crosses), and the directions of the readout vectors"
            " (lines, by output word), in the principal components of χ."
            f" First of {self.over_seeds};"
            f" {seed.axes.share(2):.0%} of the variance of χ is in the two components shown.",
            (seed.axes.draw_panel("Input components", marks),),
        )


@dataclass(frozen=True)
class CloudSums(Summed):
    """Σ‖Δ‖², Σ‖χ + Δ‖² and Σ‖h‖² of each side, and the first points of some words' clouds."""

    words: tuple[int, ...]
    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """By side (3,); under `cloud NUMBER` and `other` (point, features)."""
        parts = whole.decomposition
        encoder, features = parts.encoder, parts.encoder.input.shape[1]
        empty = np.zeros((0, features), np.float32)
        clouds: dict[int, list[Array]] = {n: [empty] for n in self.words}
        other: list[Array] = [np.zeros((0, features))]
        sums = {side: np.zeros(3) for side in ("encoder", "decoder") if f"{side}.states" in part}
        names = [f"{side}.{what}" for side in sums for what in ("states", "words", "mask")]
        for chunk in part.chunks(names):
            for side in sums:
                components = encoder if side == "encoder" else parts.decoding
                words, mask = chunk[f"{side}.words"], chunk[f"{side}.mask"]
                split = components.parts(chunk[f"{side}.states"], words)
                free = (split.input + split.delta).numpy()
                delta = split.delta.numpy()
                for number, values in enumerate((delta, free, chunk[f"{side}.states"])):
                    sums[side][number] += float(np.square(values[mask], dtype=np.float64).sum())
                if side == "decoder" and free.shape[2] == features and len(other) == 1:
                    other.append(free[mask][:: max(1, int(mask.sum()) // (2 * CLOUD))])
                if side == "encoder":
                    for number, cloud in clouds.items():
                        if sum(map(len, cloud)) < CLOUD:
                            cloud.append(free[(words == number) & mask][:CLOUD])
        points = {f"cloud {n}": np.concatenate(cloud)[:CLOUD] for n, cloud in clouds.items()}
        return {**sums, **points, "other": np.concatenate(other)}

    def merge(self, one: Stats, other: Stats) -> Stats:
        """Sums add up; of points the first are kept."""
        points = [name for name in one if name.startswith("cloud ")]
        first = {n: np.concatenate([one[n], other[n]])[:CLOUD] for n in points}
        sums = {n: one[n] + other[n] for n in one if n in ("encoder", "decoder")}
        return {**sums, **first, "other": one["other"]}


@dataclass(frozen=True)
class TargetCounts(Summed):
    """How often each word is a target."""

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`counts` (word,)"""
        counts = np.zeros(len(part.words("decoder")))
        for chunk in part.chunks(["targets", "decoder.mask"]):
            counts += np.bincount(chunk["targets"][chunk["decoder.mask"]], minlength=len(counts))
        return {"counts": counts}


@instrument(WordCloudsResult, sums=(StateSums, CloudSums, TargetCounts))
def word_clouds(recording: Recording) -> Clouds:
    """Input components χ, clouds of χ + Δ and readouts in the principal components of χ."""
    encoder = recording.decomposition.encoder
    vocabulary = recording.words("encoder")
    shown = find_frequent(encoder, vocabulary, SHOWN)
    found = add_up(CloudSums(tuple(map(int, shown))), recording)
    sums = {side: found[side] for side in ("encoder", "decoder") if side in found}
    return Clouds(
        tuple(vocabulary[n] for n in shown),
        Axes.of(encoder.input[encoder.seen]),
        encoder.input[shown],
        tuple(found[f"cloud {n}"] for n in shown),
        _readouts(recording),
        {side: total[0] / max(total[1], 1e-300) for side, total in sums.items()},
        {side: total[1] / max(total[2], 1e-300) for side, total in sums.items()},
        found["other"],
    )


def find_frequent(components: Components, words: tuple[str, ...], count: int) -> list[int]:
    """The numbers of the most frequent words."""
    order = rank_frequent(components.counts.sum(axis=1))[:count]
    return sorted(order, key=lambda number: words[number])


def _readouts(recording: Recording) -> dict[str, Array]:
    """The readout vectors of frequent output words that live in the space of the encoder's χ."""
    part = "context" if "context" in recording.metadata.readout else "state"
    if "readout" not in recording or part not in recording.metadata.readout:
        return {}
    if part == "context" and reads_projected_values(recording):
        return {}
    vectors = recording.readout(part)
    if (
        vectors.shape[1] != recording.decomposition.encoder.input.shape[1]
        or "targets" not in recording
    ):
        return {}
    counts = add_up(TargetCounts(), recording)["counts"][: len(vectors)]
    order = rank_frequent(counts)[:SHOWN]
    return {recording.words("decoder")[number]: vectors[number] for number in order}
