"""The steps that a probe reads: one recorded vector each, a label, and ways to split them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from regard.errors import RegardError, unknown
from regard.models.layers.cells import CELLS
from regard.recordings.recording import Chunk, Recording
from regard.recordings.storage import Array

LIMIT = 5000  # steps, by default
HISTORY = 4  # words up to a step that are kept
TYPES = 10  # that a control task has at least for every class
Label = Literal["word", "position", "target", "prediction", "source", "attended"]
By = Literal["sample", "step", "distinct"]
# The arrays that labels of the decoder's steps are read from, and those of the source's words.
NEEDED = {"target": "targets", "prediction": "predictions", "attended": "alignment"}
OF_SOURCE = ("source", "attended")


@dataclass(frozen=True)
class Reading:
    """Which vectors of a recording, and which label of each."""

    quantity: str = "encoder.states"
    label: Label = "word"
    only: str | None = None
    head: int = 0
    limit: int = LIMIT


@dataclass(frozen=True)
class Splitting:
    """How often, and by what, steps are split at random into those to learn from and to test."""

    splits: int = 5
    test_share: float = 0.1
    by: By = "sample"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.splits < 1 or not 0 < self.test_share < 1:
            raise RegardError("splits is 1 or more, and test_share lies between 0 and 1.")


@dataclass(frozen=True)
class Steps:
    """Vectors, the class of each, and where they come from; the first axis is the step."""

    quantity: str  # its full name
    vectors: Array  # (step, unit)
    labels: Array  # (step,): the number of its class
    classes: tuple[str, ...]  # words by their names, positions by their numbers
    samples: Array  # (step,)
    words: Array  # (step, HISTORY): read or fed at the step, and before it; -1 before the first

    @classmethod
    def of(cls, recording: Recording, reading: Reading) -> Steps:
        """Gather the first `limit` steps whose label fits `only`, piece by piece."""
        name = find_quantity(recording, reading.quantity)
        side = find_side(recording, name)
        headed = _check_head(recording, name, reading.head)
        names = _class_names(recording, side, reading.label)
        wanted = np.array([reading.only is None or fnmatchcase(n, reading.only) for n in names])
        needed = [name, f"{side}.words", f"{side}.mask"]
        needed += ["encoder.words", "encoder.mask"] if reading.label in OF_SOURCE else []
        needed += [NEEDED[reading.label]] if reading.label in NEEDED else []
        found: list[tuple[Array, ...]] = []
        done = count = 0
        for chunk in recording.chunks(list(dict.fromkeys(needed))):
            words = chunk[f"{side}.words"]
            labels = _labels(chunk, side, reading.label)
            kept = chunk[f"{side}.mask"] & (labels >= 0)
            kept &= wanted[np.maximum(labels, 0)]
            rows, times = np.nonzero(kept)
            past = times[:, None] - np.arange(HISTORY)  # (step, HISTORY)
            read = np.where(past >= 0, words[rows[:, None], np.maximum(past, 0)], -1)
            values = chunk[name][:, reading.head] if headed else chunk[name]
            found.append((values[kept], labels[kept], done + rows, read))
            done += len(words)
            count += len(rows)
            if count >= reading.limit:
                break
        values, labels, samples, words = (
            np.concatenate(parts)[: reading.limit] for parts in zip(*found, strict=True)
        )
        _check_classes(labels, names, reading)
        used = np.unique(labels)
        if reading.label != "position":
            used = np.array(sorted(used, key=lambda number: names[number]))
        place = np.zeros(len(names), dtype=np.int64)
        place[used] = np.arange(len(used))
        classes = tuple(names[n] for n in used)
        return cls(name, values, place[labels], classes, samples, words)

    def __len__(self) -> int:
        return len(self.labels)

    def types(self, history: int = 0) -> Array:
        """(step,): what a control task gives a random label to: the last `history` words.

        0: as few words as make `TYPES` types for every class.
        """
        if not 0 <= history <= HISTORY:
            raise RegardError(f"history={history} does not fit: it is 0, or 1 to {HISTORY} words.")
        for span in [history] if history else range(1, HISTORY + 1):
            types = _number_rows(self.words[:, :span])
            if types.max() + 1 >= TYPES * len(self.classes):
                break
        return types

    @property
    def copies(self) -> Array:
        """(step,): the same number for vectors that are the same to the bit."""
        return _number_rows(self.vectors)

    def split(self, how: Splitting) -> Iterator[tuple[Array, Array]]:
        """Which steps to learn from and which to test, as numbers of steps; again and again."""
        ways = {"sample": lambda: self.samples, "distinct": lambda: self.copies}
        whole = ways[how.by]() if how.by in ways else np.arange(len(self))
        parts, members = np.unique(whole, return_inverse=True)
        if len(parts) < 2:
            raise RegardError(
                f"There is one {how.by} only, so nothing is left to test on. Record more samples."
            )
        rng = np.random.default_rng(how.seed)
        count = min(len(parts) - 1, int(np.ceil(how.test_share * len(parts))))
        for _ in range(how.splits):
            chosen = np.zeros(len(parts), dtype=np.bool_)
            chosen[rng.permutation(len(parts))[:count]] = True
            yield np.flatnonzero(~chosen[members]), np.flatnonzero(chosen[members])


def _number_rows(rows: Array) -> Array:
    """The same number for rows that are the same to the bit, from 0 on. (row, …) -> (row,)"""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    return np.unique(whole, return_inverse=True)[1]


def ask_for_gates(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What has to be recorded besides: gates or states of layers, where they are what is read."""
    gates = {"gates", *(gate for cell in CELLS.values() for gate in cell.gate_effects)}
    parts = set(settings.get("quantity", "").split("."))
    found: dict[str, dict[str, Any]] = {"gates": {}} if gates & parts else {}
    return {**found, **({"states": {}} if "layers" in parts else {})}


def find_quantity(recording: Recording, name: str) -> str:
    """A vector per step by its full name, or by some parts: `decoder.gates.update`, `keys`."""
    axes = {n: recording.axes(n) for n in recording.names()}
    vectors = [n for n, a in axes.items() if a[0] == "sample" and a[-1] in ("hidden", "features")]
    if name in vectors:
        return name
    fitting = [n for n in vectors if _is_among(name.split("."), n.split("."))]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise RegardError(f"'{name}' may be any of {', '.join(fitting)}. Say which.")
    hint = ""
    if "gates" in name and not any(".gates." in n for n in vectors):
        hint = " Record the gates, too: record(…, gates=True), or `regard record RUN --gates`."
    raise RegardError(unknown("quantity", name, vectors) + hint)


def _is_among(wanted: list[str], parts: list[str]) -> bool:
    """Whether all wanted parts are there, in their order."""
    left = iter(parts)
    return all(part in left for part in wanted)


def find_side(recording: Recording, name: str) -> str:
    """Whose steps a quantity has: `encoder` or `decoder`."""
    return "encoder" if recording.axes(name)[-2] == "source" else "decoder"


def _check_head(recording: Recording, name: str, head: int) -> bool:
    """Whether a quantity has heads; a head that it has not is refused."""
    headed = "head" in recording.axes(name)
    heads = recording.shape(name)[1] if headed else 1
    if not 0 <= head < heads:
        raise RegardError(f"'{name}' has the heads 0 to {heads - 1}, but no head {head}.")
    return headed


def _class_names(recording: Recording, side: str, label: Label) -> tuple[str, ...]:
    if side == "encoder" and label in NEEDED:
        raise RegardError(
            f"label={label} belongs to the decoder's steps. Take a quantity of the decoder, or"
            " label=word or label=position."
        )
    if label == "position":
        return tuple(str(n) for n in range(recording.shape(f"{side}.words")[1]))
    if label == "attended" and "alignment" not in recording:
        raise RegardError(
            "This recording has no alignment, so it does not say which word a step should attend"
            " to. label=source takes the source word of the same number."
        )
    return recording.words("encoder" if label in OF_SOURCE else side)


def _labels(chunk: Chunk, side: str, label: Label) -> Array:
    """(sample, time): the number of each step's label, -1 where there is none."""
    words = chunk[f"{side}.words"]
    if label == "position":
        return np.broadcast_to(np.arange(words.shape[1]), words.shape)
    if label in ("target", "prediction"):
        return chunk[NEEDED[label]]
    if label == "word":
        return words
    source = np.where(chunk["encoder.mask"], chunk["encoder.words"], -1)
    places = np.broadcast_to(np.arange(words.shape[1]), words.shape)
    if label == "attended":
        places = chunk["alignment"]
    inside = (places >= 0) & (places < source.shape[1])
    return np.where(inside, np.take_along_axis(source, np.where(inside, places, 0), axis=1), -1)


def _check_classes(labels: Array, names: tuple[str, ...], reading: Reading) -> None:
    used = np.unique(labels)
    if len(used) > 1:
        return
    what = f"all have the label '{names[used[0]]}'" if len(used) else "are none at all"
    only = f" that fit only={reading.only}" if reading.only else ""
    raise RegardError(
        f"Steps with a label ({reading.label}){only} {what}, so there is nothing to tell apart."
        " Record more samples, or choose another label."
    )
