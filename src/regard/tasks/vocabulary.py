"""A vocabulary: the words of one side of a task, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from regard.errors import RegardError

PAD, SOS, EOS = 0, 1, 2
SPECIAL = ("<PAD>", "<SOS>", "<EOS>")
SHOWN = 50  # words in a message


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their numbers; the first three are `<PAD>`, `<SOS>`, `<EOS>`.

    The end token may be spelt otherwise, such as `.`; its number stays. Where `ends` is false
    there is none, and the third word is a word like any other. `further` are other words that
    mean nothing, such as a tokenizer's names of languages.
    """

    words: tuple[str, ...]
    ends: bool = True
    further: frozenset[str] = frozenset()

    @classmethod
    def of(cls, words: Iterable[str], end: str | None = SPECIAL[EOS]) -> Vocabulary:
        """The vocabulary of `words`, with the special ones put before them; `end=None`: no end."""
        special = SPECIAL[:EOS] if end is None else (*SPECIAL[:EOS], end)
        return cls((*special, *words), end is not None)

    @property
    def first(self) -> int:
        """The number of the first word that is not special."""
        return EOS + self.ends

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def special(self) -> frozenset[str]:
        """The words that mean nothing: `<PAD>`, `<SOS>`, and the end token, however it is spelt."""
        known = self.ends and self.words[:EOS] == SPECIAL[:EOS]
        end = self.words[EOS : EOS + 1] if known else ()
        return frozenset((*SPECIAL, *end, *self.further))

    def encode(self, words: Iterable[str]) -> list[int]:
        """The numbers of `words`; a word that is not here is an error that names it."""
        words = list(words)
        strange = sorted({word for word in words if word not in self.numbers})
        if strange:
            known = " ".join(self.words[:SHOWN]) + (" and more" if len(self) > SHOWN else "")
            raise RegardError(f"The words {strange} are not in the vocabulary. Known: {known}.")
        return [self.numbers[word] for word in words]

    def look_up(self, numbers: Iterable[int]) -> list[str]:
        """The words of all numbers, special ones too."""
        return [self.words[number] for number in numbers]

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """The words up to the first `<EOS>`, where there is one, without special ones."""
        before_end = takewhile(lambda number: not self.ends or number != EOS, numbers)
        return [self.words[number] for number in before_end if number not in (PAD, SOS)]
