"""A recording as instruments read it: words numbered by what was seen, special ones first.

Other people's vocabularies have 250,000 words and their own numbers for padding, start and end.
Recordings keep those numbers. Instruments get a view in which `<PAD>`, `<SOS>` and the end token
are 0, 1 and 2, and only words that occur have a number, so that no table has a row for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.recordings.recording import Recording
from regard.recordings.storage import Array, Shape, Storage
from regard.tasks.vocabulary import EOS, PAD, SOS, SPECIAL

LARGE = 50_000  # vocabularies from this size on are renumbered, whoever made them
SIDES = {"encoder": ("encoder.words",), "decoder": ("decoder.words", "targets", "predictions")}
MASKS = {"encoder.words": "encoder.mask"}  # of all others: the decoder's
BY_WORD = ("readout", "readout.bias")  # arrays with a row per target word


@dataclass(frozen=True)
class Numbering:
    """The words of one side that occur, in the order of their own numbers."""

    seen: Array  # (word,), without the end token
    start: int | None
    end: int | None

    @property
    def first(self) -> int:
        """The number of the first word that is not special."""
        return EOS + (self.end is not None)

    @property
    def theirs(self) -> Array:
        """Their number of each of ours; −1 for padding and start."""
        end = [] if self.end is None else [self.end]
        return np.array([-1, -1, *end, *self.seen], dtype=np.int64)

    def renumber(self, numbers: Array, mask: Array, fed: bool) -> Array:
        """Their numbers as ours; the start word is one only where it is fed first."""
        found = np.searchsorted(self.seen, numbers) + self.first
        if self.end is not None:
            found = np.where(numbers == self.end, EOS, found)
        if fed and self.start is not None:
            found[:, :1] = np.where(numbers[:, :1] == self.start, SOS, found[:, :1])
        return np.where(mask, found, PAD).astype(np.int32)


class Renumbered:
    """A storage whose words have other numbers, and whose tables have rows for these only."""

    def __init__(self, storage: Storage, sides: Mapping[str, Numbering], rows: Array | None):
        self.storage, self.rows = storage, rows
        self.numberings = {name: sides[side] for side in sides for name in SIDES[side]}

    def names(self) -> list[str]:
        """The arrays that are there."""
        hidden = () if self.rows is not None else BY_WORD
        return [n for n in self.storage.names() if n not in (*hidden, "readout.words")]

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        shape = self.storage.shape(name)
        return (len(self.rows), *shape[1:]) if name in BY_WORD and self.rows is not None else shape

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, or all of it."""
        if name in BY_WORD and self.rows is not None:
            return self._by_word(name)[start:stop]
        values = self.storage.read(name, start, stop)
        if name not in self.numberings:
            return values
        mask = self.storage.read(MASKS.get(name, "decoder.mask"), start, stop)
        return self.numberings[name].renumber(values, mask, name == "decoder.words")

    def renumber(self, name: str, numbers: Array, mask: Array) -> Array:
        """Their numbers of an array's words as ours. (sample, time) each"""
        return self.numberings[name].renumber(numbers, mask, name == "decoder.words")

    def _by_word(self, name: str) -> Array:
        """The rows of our words, one by one where they are few; zeros where there is none."""
        assert self.rows is not None
        whole = self.storage.shape(name)
        found = np.zeros((len(self.rows), *whole[1:]), np.float32)
        kept = np.flatnonzero(self.rows >= 0)
        found[kept] = self.storage.read(name)[self.rows[kept]]
        return found


def renumber(recording: Recording, name: str, numbers: Array, mask: Array) -> Array:
    """Word numbers of a recording's source as instruments have them, given its compact view."""
    storage = recording.storage
    return storage.renumber(name, numbers, mask) if isinstance(storage, Renumbered) else numbers


def number_seen(recording: Recording, side: str, numbers: Array) -> Array:
    """Words by the numbers that a recording's decomposition has; `<PAD>` for one it never saw.

    The components of `<PAD>` are 0, as those of a word that never occurred are. (sample, time)
    """
    storage = recording.compact.storage
    if not isinstance(storage, Renumbered):
        return numbers
    one = storage.numberings[f"{side}.words"]
    known = np.isin(numbers, one.seen) | (numbers == (-1 if one.end is None else one.end))
    if side == "decoder" and one.start is not None:
        known[:, :1] |= numbers[:, :1] == one.start
    return one.renumber(numbers, known, side == "decoder")


def compact(recording: Recording) -> Recording | None:
    """The view of a recording with words by what was seen, or None where it needs none."""
    meta = recording.metadata
    large = max(len(meta.source_words), len(meta.target_words)) >= LARGE
    if not meta.conventions and not large:
        return None
    sides = {
        side: _number(recording, side, meta.conventions.get(side, {"start": SOS, "end": EOS}))
        for side in SIDES
        if f"{side}.words" in recording
    }
    words = {side: _name(recording, side, one) for side, one in sides.items()}
    further = tuple(sorted({w for side in sides for w in _unspoken(recording, side)}))
    source, target = (words.get(side, SPECIAL) for side in SIDES)
    ends = tuple(side not in sides or sides[side].end is not None for side in SIDES)
    rows = _rows(recording, sides["decoder"]) if "decoder" in sides else None
    metadata = replace(
        meta, source_words=source, target_words=target, ends=(ends[0], ends[1]), further=further,
        conventions={side: {"pieces": meta.conventions.get(side, {}).get("pieces", "")}
                     for side in meta.conventions}, compact=True,
    )  # fmt: skip
    return replace(recording, storage=Renumbered(recording.storage, sides, rows), metadata=metadata)


def _number(recording: Recording, side: str, said: Mapping[str, Any]) -> Numbering:
    """What occurs on one side, in one pass over the words."""
    found = np.zeros(0, np.int64)
    names = [name for name in SIDES[side] if name in recording]
    for chunk in recording.chunks([*names, f"{side}.mask"]):
        mask = chunk[f"{side}.mask"]
        found = np.unique(np.concatenate([found, *(chunk[name][mask] for name in names)]))
    end = said.get("end")
    return Numbering(found if end is None else found[found != end], said.get("start"), end)


def _name(recording: Recording, side: str, numbering: Numbering) -> tuple[str, ...]:
    words = recording.words(side)
    return (*SPECIAL[: SOS + 1], *(words[n] for n in numbering.theirs[SOS + 1 :]))


def _unspoken(recording: Recording, side: str) -> list[str]:
    """The names of further special words."""
    said = recording.metadata.conventions.get(side, {})
    known = [*said.get("special", ()), *(said.get(name) for name in ("pad", "start"))]
    return [recording.words(side)[n] for n in known if n is not None]


def _rows(recording: Recording, numbering: Numbering) -> Array | None:
    """The row of the readout that each of our words has, −1 for none."""
    if "readout" not in recording:
        return None
    theirs = numbering.theirs
    if "readout.words" not in recording:
        return np.where(theirs < recording.shape("readout")[0], theirs, -1)
    known = recording["readout.words"]
    places = np.clip(np.searchsorted(known, theirs), 0, len(known) - 1)
    return np.where(known[places] == theirs, places, -1)
