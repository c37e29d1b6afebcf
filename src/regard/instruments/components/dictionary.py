"""`dictionary`: do readouts and input components spell a dictionary (aitken2021, Figs. 4c, 5d)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Figure, Heat, Panel, Table
from regard.errors import RegardError
from regard.instruments._geometry import rank_frequent
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.tasks.vocabulary import SPECIAL

SHOWN = 14
NEVER = ("<PAD>", "<SOS>")  # neither read nor put out


@dataclass(frozen=True)
class Dictionary(Measured):
    """Dot products of readouts and χ, and the translation that they imply."""

    outputs: tuple[str, ...]  # by how often they occur
    inputs: tuple[str, ...]
    dots: Array  # (output, input)
    truth: tuple[str, ...]  # the input word that each output word goes with in the data
    known: bool  # the truth comes from alignments, not from co-occurrence
    sizes: dict[str, float]  # mean length of each part of the readout

    @property
    def found(self) -> tuple[str, ...]:
        """The input word whose χ each readout is most aligned with."""
        return tuple(self.inputs[n] for n in self.dots.argmax(axis=1))

    def maximal(self, word: str) -> int:
        """For how many words' readouts an input word's component is the largest."""
        pairs = zip(self.found, self.outputs, strict=True)
        return sum(found == word and output not in SPECIAL for found, output in pairs)

    def values(self) -> dict[str, float]:
        """Dictionary accuracy over words, over all with the end token, and the mean lengths of the
        readout's parts."""
        right = [a == b for a, b in zip(self.found, self.truth, strict=True)]
        words = [ok for ok, word in zip(right, self.outputs, strict=True) if word not in SPECIAL]
        lengths = {f"length of {part} readout": size for part, size in self.sizes.items()}
        return {
            "dictionary": float(np.mean(words)),
            "with end token": float(np.mean(right)),
        } | lengths


class DictionaryResult(Result[Dictionary]):
    """Dictionaries over seeds."""

    within = SIZE
    ranges = dict.fromkeys(("dictionary", "with end token"), SHARE)

    def figure(self) -> Figure:
        """The dot products, most frequent words first, columns in the order of their outputs."""
        seed = self.first
        outputs = list(range(min(SHOWN, len(seed.outputs))))
        wanted = [seed.inputs.index(seed.truth[n]) for n in outputs if seed.truth[n] in seed.inputs]
        columns = list(dict.fromkeys([*wanted, *range(len(seed.inputs))]))[:SHOWN]
        dots = seed.dots[outputs][:, columns]
        scale = np.abs(dots).max(axis=1, keepdims=True)
        heat = Heat(
            tuple(seed.outputs[n] for n in outputs),
            tuple(seed.inputs[n] for n in columns),
            tuple(to_floats(row) for row in dots / np.maximum(scale, 1e-300)),
            "readout · χ, by row",
            -1.0,
            1.0,
        )
        truth = "its alignments" if seed.known else "which words occur together"
        return Figure(
            "dictionary",
            "Dot products of readout vectors (rows) with input components (columns), each row"
            f" divided by its largest; first of {self.over_seeds}. Dictionary accuracy against"
            f" {truth}: {self.estimates()['dictionary']}.",
            (Panel("The dictionary", "input word", "output word", (heat,)),),
        )

    def spell(self) -> Table:
        """Each output word, what the readout says, and what the data says."""
        seed = self.first
        rows = tuple(zip(seed.outputs, seed.found, seed.truth, strict=True))
        return Table("Dictionary, first seed", ("output", "largest χ", "in the data"), rows)

    def to_json(self) -> dict[str, Any]:
        """The estimates, and the dictionary of the first seed."""
        return {**super().to_json(), "dictionary": self.spell().records()}


@dataclass(frozen=True)
class WordPairs(Summed):
    """How often output and input words are aligned, or share a sentence where nothing is."""

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`pairs` (output, input), `totals` and `outputs` (output,), `inputs` (input,)"""
        shape = len(part.words("decoder")), len(part.words("encoder"))
        pairs, totals = np.zeros(shape), np.zeros(shape[0])
        known = "alignment" in part
        names = ["targets", "encoder.words", "encoder.mask", "decoder.mask"]
        spread = [np.zeros(shape[0]), np.zeros(shape[1])]
        for chunk in part.chunks([*names, *(["alignment"] if known else [])]):
            targets, words = chunk["targets"], chunk["encoder.words"]
            mask = chunk["decoder.mask"]
            totals += np.bincount(targets[mask], minlength=shape[0])
            if known:
                places = chunk["alignment"]
                mask = mask & (places >= 0)
                aligned = np.take_along_axis(words, np.maximum(places, 0), axis=1)
                np.add.at(pairs, (targets[mask], aligned[mask]), 1)
                continue
            for row, (target, source) in enumerate(zip(targets, words, strict=True)):
                ours = np.unique(target[mask[row]])
                theirs = np.unique(source[chunk["encoder.mask"][row]])
                pairs[np.ix_(ours, theirs)] += 1
                spread[0][ours] += 1
                spread[1][theirs] += 1
        return {"pairs": pairs, "totals": totals, "outputs": spread[0], "inputs": spread[1]}


@instrument(DictionaryResult, sums=(StateSums, WordPairs))
def dictionary(recording: Recording, part: str = "", least: int = 5) -> Dictionary:
    """Dot products of the readouts with the encoder's input components, as a dictionary.

    `part` is `context` or `state`; the default is the context where the readout sees one. An
    output word's true input is the one it is aligned with most often; without alignments, the
    one it shares most sentences with (Dice coefficient). Words seen fewer than `least` times, and
    output words that are aligned with nothing, are left out.
    """
    encoder = recording.decomposition.encoder
    parts = recording.metadata.readout
    part = part or ("context" if "context" in parts else "state")
    vectors = recording.readout(part)
    if reads_projected_values(recording):
        raise RegardError(
            "The context here is a mixture of V·h, a learned map of the encoder's states, so the"
            " readouts and the input components are not in one space."
        )
    if vectors.shape[1] != encoder.input.shape[1]:
        raise RegardError(
            f"The readout of the {part} has {vectors.shape[1]} columns, the encoder's states"
            f" {encoder.input.shape[1]}: they are not in one space."
        )
    pairs, totals, known = count_pairs(recording)
    seen = encoder.counts.sum(axis=1)
    ours, theirs = recording.words("decoder"), recording.words("encoder")
    inputs = _list_frequent(seen, theirs, least)
    outputs = [n for n in _list_frequent(totals, ours, least) if pairs[n].any()]
    if not inputs or not outputs:
        raise RegardError(
            f"No word was seen {least} times on both sides. Record more samples, or give a"
            " smaller least."
        )
    dots = vectors[outputs] @ encoder.input[inputs].T
    truth = [theirs[int(pairs[n].argmax())] for n in outputs]
    sizes = {
        name: float(np.linalg.norm(recording.readout(name)[outputs], axis=1).mean())
        for name in parts
    }
    return Dictionary(
        tuple(ours[n] for n in outputs),
        tuple(theirs[n] for n in inputs),
        dots,
        tuple(truth),
        known,
        sizes,
    )


def _list_frequent(counts: Array, words: tuple[str, ...], least: int) -> list[int]:
    """The numbers of the words seen often enough, the most frequent first."""
    return [n for n in rank_frequent(counts, max(least, 1)) if words[n] not in NEVER]


def reads_projected_values(recording: Recording) -> bool:
    """Whether what attention mixes is a learned map of the encoder's states."""
    sites = recording.metadata.sites
    return bool(sites) and sites[recording.site()].projected


def count_pairs(recording: Recording) -> tuple[Array, Array, bool]:
    """How strongly output and input words go together. -> (output, input), (output,), aligned?"""
    found = add_up(WordPairs(), recording)
    pairs, known = found["pairs"], "alignment" in recording
    if not known:
        both = found["outputs"][:, None] + found["inputs"][None]
        pairs = 2 * pairs / np.maximum(both, 1)
    return pairs, found["totals"], known
