"""Sentences as words, and the words that are frequent enough to have a number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from unicodedata import category, normalize

from regard.tasks.vocabulary import EOS, SPECIAL, Vocabulary

UNKNOWN = "<UNK>"
UNK = len(SPECIAL)  # its number
JOINERS = "'’‐‑-"  # they hold a word together: aujourd'hui, peut-être
PICTURES = "\U0001f000-\U0001faff"  # emoji and other symbols beyond the basic plane, as a range


def words(text: str, lowercase: bool) -> tuple[str, ...]:
    """`text` in words, with punctuation split off at their ends, one mark each.

    >>> words("L'ami (de Zoé) va-t-il bien?", lowercase=True)
    ("l'ami", '(', 'de', 'zoé', ')', 'va-t-il', 'bien', '?')
    """
    text = text if text.isascii() else normalize("NFC", text)
    return tuple(_pattern().findall(text.lower() if lowercase else text))


@cache
def _pattern() -> re.Pattern[str]:
    """Words or single marks; a mark is what Unicode calls punctuation or a symbol."""
    # Single characters beyond the basic plane would make the pattern fifty times slower.
    marks = re.escape("".join(c for c in map(chr, range(0x10000)) if category(c)[0] in "PS"))
    mark, letter = f"[{marks}{PICTURES}]", f"[^\\s{marks}{PICTURES}]"
    return re.compile(f"{letter}+(?:[{re.escape(JOINERS)}]{letter}+)*|{mark}")


def frequent(sentences: Iterable[Sequence[str]], size: int) -> Vocabulary:
    """The `size` most frequent words, behind `<UNK>`; of equally frequent ones by alphabet."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary.of([UNKNOWN, *ranked[:size]])


def numbered(sentence: Sequence[str], vocabulary: Vocabulary) -> list[int]:
    """The numbers of the words, that of `<UNK>` for one that has none, and `<EOS>`."""
    numbers = vocabulary.numbers
    return [*[numbers.get(word, UNK) for word in sentence], EOS]
