"""Pieces of words that a unigram model finds in a text (Kudo 2018), by SentencePiece."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from types import ModuleType
from typing import Any

from regard.cache import cache_folder
from regard.errors import RegardError
from regard.tasks.text._words import UNKNOWN
from regard.tasks.vocabulary import EOS, PAD, SOS, SPECIAL, Vocabulary

MOST = 8000  # pieces, by default (snell2021)
TOO_MANY = re.compile(r"Please set it to a value <= (\d+)")
TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class Pieces:
    """A trained model: from sentences to the numbers of their pieces, and back."""

    def __init__(self, proto: bytes):
        self.proto = proto
        self.processor: Any = _package().SentencePieceProcessor(model_proto=proto)
        size = self.processor.get_piece_size()
        self.vocabulary = Vocabulary(tuple(self.processor.id_to_piece(n) for n in range(size)))

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The numbers of the pieces of each sentence, nothing before or behind them.

        Word by word, as no piece reaches over a space: of splits that are equally likely the same
        one is then taken wherever a word stands.
        """
        rows = [sentence.split(" ") for sentence in sentences]
        words = list(dict.fromkeys(chain.from_iterable(rows)))
        found = dict(zip(words, self.processor.encode(words), strict=True))
        return [[number for word in row for number in found[word]] for row in rows]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of numbers up to its `<EOS>`."""
        texts = []
        for row in map(list, rows):
            whole = row[: row.index(EOS)] if EOS in row else row
            texts.append(self.processor.decode([n for n in whole if n not in (PAD, SOS)]))
        return texts


SEAL = 32  # bytes of the hash in front of a model that is kept


def find_pieces(sentences: Sequence[str], size: int | None = None) -> Pieces:
    """The model of `size` pieces, special ones counted, that these sentences give.

    Without a size, 8,000 pieces, or as many as a small text has.

    The same sentences in the same order give the same model. It is kept in the folder
    `$REGARD_CACHE` (else in the user's cache), as training it takes seconds.
    """
    digest = sha256(f"{_package().__version__} {size}\n".encode())
    for sentence in sentences:
        digest.update(sentence.encode() + b"\n")
    path = cache_folder() / "pieces" / f"{digest.hexdigest()[:32]}.model"
    with suppress(OSError, RuntimeError):  # what cannot be read, or is something else, is made anew
        kept = path.read_bytes()
        whole = sha256(kept[SEAL:]).digest() == kept[:SEAL]  # else other pieces would go unnoticed
        found = load_pieces(kept[SEAL:]) if whole else None
        if found and size in (None, len(found.vocabulary)):
            return found
    proto = train(sentences, size)
    with suppress(OSError):  # without a place to keep it, it is made again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_bytes(sha256(proto).digest() + proto)
        part.replace(path)
    return load_pieces(proto)


@lru_cache(maxsize=4)
def load_pieces(proto: bytes) -> Pieces:
    """The model of what SentencePiece stores."""
    return Pieces(proto)


def train(sentences: Sequence[str], size: int | None) -> bytes:
    """The model as SentencePiece stores it: of `size` pieces, or of as many as there are."""
    try:
        return _train(sentences, size or MOST)
    except RuntimeError as error:
        found = TOO_MANY.search(str(error))
        if found and size is None:
            return train(sentences, int(found[1]))
        raise RegardError(_explain(str(error), size or MOST)) from None


def _train(sentences: Sequence[str], size: int) -> bytes:
    """One thread, as more would not add up alike."""
    numbers = {"pad": PAD, "bos": SOS, "eos": EOS, "unk": len(SPECIAL)}
    names = zip(numbers, (*SPECIAL, UNKNOWN), strict=True)
    model = io.BytesIO()
    _package().SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type="unigram",
        vocab_size=size,
        num_threads=1,
        minloglevel=2,
        **{f"{kind}_id": number for kind, number in numbers.items()},
        **{f"{kind}_piece": name for kind, name in names},
    )
    return model.getvalue()


def _explain(message: str, size: int) -> str:
    """What SentencePiece complains of, and what to do about it."""
    if found := TOO_MANY.search(message):
        return (
            f"The training text is too small for task.pieces={size}: it has {found[1]} pieces."
            f" Set task.pieces={found[1]} or less, or give more text."
        )
    if found := TOO_FEW.search(message):
        return (
            f"task.pieces={size} is too few: the letters of the training text and the special"
            f" words are {found[1]}. Set task.pieces to more than that."
        )
    return f"SentencePiece could not be trained on the training text ({message})."


def _package() -> ModuleType:
    try:
        import sentencepiece
    except ImportError:
        raise RegardError(
            "The task translation needs SentencePiece. Install it: pip install 'regard[text]'."
        ) from None
    package: ModuleType = sentencepiece
    return package
