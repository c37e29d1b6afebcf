"""Sentences as words, and the words that are frequent enough to have a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from heapq import nsmallest
from unicodedata import category, normalize

from regard.tasks.vocabulary import EOS, SPECIAL, Vocabulary

UNKNOWN = "<UNK>"
JOINERS = "'’‐‑-"  # they hold a word together: aujourd'hui, peut-être
PICTURES = "\U0001f000-\U0001faff"  # emoji and other symbols beyond the basic plane, as a range


def split_words(text: str, lowercase: bool, letters: str = "") -> tuple[str, ...]:
    """`text` in words, with punctuation split off at their ends, one mark each.

    `letters` are marks that count as letters, such as `_`.

    >>> split_words("L'ami (de Zoé) va-t-il bien?", lowercase=True)
    ("l'ami", '(', 'de', 'zoé', ')', 'va-t-il', 'bien', '?')
    """
    text = text if text.isascii() else normalize("NFC", text)
    return tuple(_pattern(letters).findall(text.lower() if lowercase else text))


@cache
def _pattern(letters: str) -> re.Pattern[str]:
    """Words or single marks; a mark is what Unicode calls punctuation or a symbol."""
    # Single characters beyond the basic plane would make the pattern fifty times slower.
    basic = (c for c in map(chr, range(0x10000)) if category(c)[0] in "PS")
    marks = re.escape("".join(c for c in basic if c not in letters))
    mark, letter = f"[{marks}{PICTURES}]", f"[^\\s{marks}{PICTURES}]"
    return re.compile(f"{letter}+(?:[{re.escape(JOINERS)}]{letter}+)*|{mark}")


def build_vocabulary(
    counts: Iterable[tuple[str, int]],
    size: int | None = None,
    minimum: int = 1,
    end: str | None = SPECIAL[EOS],
) -> Vocabulary:
    """The `size` most frequent words, behind `<UNK>`; of equally frequent ones by alphabet.

    `counts` has each word once, with how often it occurs. Words that occur less than `minimum`
    times are not among them; `end` as in `Vocabulary.of`.
    """
    often = ((-count, word) for word, count in counts if count >= minimum and word != UNKNOWN)
    ranked = sorted(often) if size is None else nsmallest(size, often)
    return Vocabulary.of([UNKNOWN, *(word for _, word in ranked)], end)


def number_words(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Iterator[list[int]]:
    """The numbers of each sentence's words, that of `<UNK>` for one that has none; then `<EOS>`.

    Where the vocabulary has no end, there is none here.
    """
    number, end = known_or_not(vocabulary), [EOS] if vocabulary.ends else []
    return ([*map(number, sentence), *end] for sentence in sentences)


def known_or_not(vocabulary: Vocabulary) -> Callable[[str], int]:
    """The number of a word, that of `<UNK>` for one that has none."""
    return _Numbers(vocabulary.numbers).__getitem__


class _Numbers(dict[str, int]):
    """Numbers of words, that of `<UNK>` for all others: half the time of `get` with a default."""

    def __missing__(self, word: str) -> int:
        return self[UNKNOWN]
