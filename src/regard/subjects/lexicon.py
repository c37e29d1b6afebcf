"""The words of one side of a subject, by the numbers that its own tokenizer gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, unknown
from regard.tasks.vocabulary import EOS, PAD, SOS, Vocabulary

Array = NDArray[Any]
# How a piece shows where words begin: by what stands at its start, or at its end.
STARTS, CONTINUES = ("▁", "Ġ"), ("##",)
GOES_ON, ENDS = ("@@", "￭"), ("</w>",)
MARKERS = (*STARTS, *CONTINUES, *ENDS, *GOES_ON)
# Words that are none in most tokenizers. An unknown word is a word.
USUAL = frozenset(
    ("<s>", "</s>", "<pad>", "<PAD>", "<SOS>", "<EOS>", "<bos>", "<eos>", "[CLS]", "[SEP]",
     "[PAD]", "<blank>", "<|endoftext|>", "<|startoftext|>")
)  # fmt: skip


@dataclass(frozen=True)
class Lexicon:
    """Words by number, which of them are special, and how pieces of words are marked."""

    words: Sequence[str]
    pad: int | None = PAD
    start: int | None = SOS  # what the decoder is fed first
    end: int | None = EOS
    special: frozenset[int] = field(default_factory=frozenset)  # further ones, such as languages
    marker: str = ""  # one of `MARKERS`; "": every piece is a word

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Lexicon:
        """That of a vocabulary of Regard's."""
        return cls(vocabulary.words, end=EOS if vocabulary.ends else None)

    @classmethod
    def from_conventions(cls, words: Sequence[str], said: Mapping[str, Any]) -> Lexicon:
        """The inverse of `conventions`."""
        known = {name: said.get(name) for name in ("pad", "start", "end")}
        return cls(words, **known, special=frozenset(said.get("special", ())),
                   marker=said.get("pieces", ""))  # fmt: skip

    def __len__(self) -> int:
        return len(self.words)

    @property
    def conventions(self) -> dict[str, Any]:
        """What a recording has to say of it, beside the words; nothing where all is as usual."""
        if not self.special and not self.marker and (self.pad, self.start) == (PAD, SOS):
            return {} if self.end in (EOS, None) else {"pad": PAD, "start": SOS, "end": self.end}
        return {
            "pad": self.pad, "start": self.start, "end": self.end,
            "special": sorted(self.special), "pieces": self.marker,
        }  # fmt: skip

    @cached_property
    def unspoken(self) -> frozenset[int]:
        """The numbers that are no words: padding, start, end, languages."""
        return frozenset(
            {*self.special, *(n for n in (self.pad, self.start, self.end) if n is not None)}
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """The numbers of words; one that is not here is an error that names it."""
        words = list(words)
        strange = [word for word in words if word not in self.numbers]
        if strange:
            raise RegardError(unknown("word", strange[0], list(self.words[:500])))
        return [self.numbers[word] for word in words]

    def look_up(self, numbers: Iterable[int]) -> list[str]:
        """The words of some numbers."""
        return [self.words[number] for number in numbers]

    def check_numbers(self, numbers: Sequence[int]) -> None:
        """Refuse numbers that no word has."""
        strange = [n for n in numbers if not 0 <= n < len(self.words)]
        if strange:
            raise RegardError(
                f"Word number {strange[0]} does not fit: there are {len(self.words)} words,"
                " numbered from 0."
            )

    def number_words(self, numbers: Array, mask: Array | None = None) -> Array:
        """Which word each piece belongs to, from 0; −1 for what is no word. (sample, position)"""
        numbers = np.asarray(numbers)
        if numbers.ndim != 2:
            raise RegardError("number_words takes sentences: numbers are (sample, position).")
        mask = np.ones(numbers.shape, np.bool_) if mask is None else mask
        kinds, places = np.unique(numbers, return_inverse=True)
        names = [self.words[n] for n in kinds]
        plain = np.array([int(n) not in self.unspoken for n in kinds], np.bool_)
        places = places.reshape(numbers.shape)
        return number_pieces(places, mask & plain[places], names, self.marker)

    def spell(self, numbers: Sequence[int]) -> list[str]:
        """Pieces put together to words, without markers and special words."""
        row = np.asarray(numbers)[None]
        found: dict[int, str] = {}
        for number, word in zip(numbers, self.number_words(row)[0], strict=True):
            if word >= 0:
                found[int(word)] = found.get(int(word), "") + strip(self.words[number], self.marker)
        return [join_bytes(word) for word in found.values()]


def show_bytes(names: Sequence[str]) -> tuple[str, ...]:
    """Pieces of bytes, as byte-level tokenizers write them, as text: `Ã¼` is `ü`.

    What is no whole letter stays as bytes, `<0xC3>`; the mark of a word's beginning stays. A name
    with a letter that stands for no byte is not such a piece, and stays.
    """
    table = {letter: value for value, letter in enumerate(BYTES)}
    return tuple(_show(name, table) for name in names)


def _show(name: str, table: Mapping[str, int]) -> str:
    mark = "Ġ" if name.startswith("Ġ") else ""
    rest = name.removeprefix("Ġ")
    if rest.isascii() or any(letter not in table for letter in rest):
        return name
    held = bytes(table[letter] for letter in rest)
    try:
        return mark + held.decode("utf-8")
    except UnicodeDecodeError:
        return mark + "".join(f"<0x{value:02X}>" for value in held)


def join_bytes(word: str) -> str:
    """A word with its single bytes, `<0xE4><0xBD><0xA0>`, as the letters that they are."""

    def decode(found: re.Match[str]) -> str:
        held = bytes(int(value, 16) for value in re.findall("<0x(..)>", found[0]))
        return held.decode("utf-8", "replace")

    return re.sub("(<0x[0-9A-F]{2}>)+", decode, word)


def _list_bytes() -> str:
    """The letter of each byte in byte-level tokenizers: itself where it can be seen."""
    seen = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return "".join(chr(value if value in seen else next(hidden)) for value in range(256))


BYTES = _list_bytes()


def strip(piece: str, marker: str) -> str:
    """A piece without the mark of where words begin."""
    if marker in (*STARTS, *CONTINUES):
        return piece.removeprefix(marker)
    return piece.removesuffix(marker) if marker else piece


def find_marker(words: Iterable[str]) -> str:
    """The marker that a list of pieces uses, or none."""
    counts = dict.fromkeys(MARKERS, 0)
    for word in words:
        for marker in MARKERS:
            ends = marker in (*GOES_ON, *ENDS)
            counts[marker] += word.endswith(marker) if ends else word.startswith(marker)
    best = max(counts, key=lambda marker: counts[marker])
    return best if counts[best] else ""


def check_marker(marker: str) -> str:
    """A marker that is known, or the error that lists them."""
    if marker and marker not in MARKERS:
        raise RegardError(unknown("marker of pieces", marker, MARKERS))
    return marker


def number_pieces(places: Array, mask: Array, names: Sequence[str], marker: str) -> Array:
    """The word of each piece, from 0, −1 where the mask is false. (sample, position)

    `places` are indices into `names`. A piece begins a word as its own mark says (`▁`, `Ġ`; without
    `##`) or as that of the piece before does (it has no `@@`, or has `</w>`).
    """
    flags = np.array([_has(name, marker) for name in names], np.bool_)
    marked = flags[places] & mask if len(flags) else mask
    if marker in STARTS:
        starts = marked
    elif marker in CONTINUES:
        starts = ~marked
    else:
        starts = np.ones(places.shape, np.bool_)
        starts[:, 1:] = marked[:, :-1] if marker in ENDS else ~marked[:, :-1]
    first = mask & (np.cumsum(mask, axis=1) == 1)
    found: Array = np.cumsum((starts | first) & mask, axis=1) - 1
    return np.where(mask, found, -1)


def _has(name: str, marker: str) -> bool:
    if not marker:
        return False
    return name.startswith(marker) if marker in (*STARTS, *CONTINUES) else name.endswith(marker)
