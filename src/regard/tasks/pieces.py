"""Pieces of words that a unigram model finds in a text (Kudo 2018), by SentencePiece."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from regard.errors import RegardError
from regard.tasks.parallel_words import UNKNOWN
from regard.tasks.vocabulary import EOS, PAD, SOS, SPECIAL, Vocabulary

TOO_MANY = re.compile(r"Please set it to a value <= (\d+)")
COUNTED = re.compile(r"it has (\d+) pieces")
TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class Pieces:
    """A trained model: from sentences to the numbers of their pieces, and back."""

    def __init__(self, proto: bytes):
        self.processor: Any = _package().SentencePieceProcessor(model_proto=proto)
        size = self.processor.get_piece_size()
        self.vocabulary = Vocabulary(tuple(self.processor.id_to_piece(n) for n in range(size)))

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The numbers of the pieces of each sentence, nothing before or behind them."""
        found: list[list[int]] = self.processor.encode(list(sentences))
        return found

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of numbers up to its `<EOS>`."""
        texts = []
        for row in map(list, rows):
            whole = row[: row.index(EOS)] if EOS in row else row
            texts.append(self.processor.decode([n for n in whole if n not in (PAD, SOS)]))
        return texts


MOST = 8000  # pieces, unless told otherwise (snell2021)


def pieces_of(sentences: Sequence[str], size: int | None = None) -> Pieces:
    """The model of `size` pieces, special ones counted, that these sentences give.

    Without a size, 8,000 pieces, or as many as a small text has.

    The same sentences in the same order give the same model. It is kept in the folder
    `$REGARD_CACHE` (else in the user's cache), as training it takes seconds.
    """
    about = f"{_package().__version__} {size}\n"
    digest = sha256(about.encode())
    for sentence in sentences:
        digest.update(sentence.encode() + b"\n")
    name = digest.hexdigest()[:32]
    return _kept(name, size) or _made(name, sentences, size)


def most(sentences: Sequence[str]) -> bytes:
    """The model of `MOST` pieces, or of as many as the sentences have."""
    try:
        return train(sentences, MOST)
    except RegardError as error:
        found = COUNTED.search(str(error))
        if found is None:
            raise
        return train(sentences, int(found[1]))


def cache_folder() -> Path:
    """Where models are kept: `$REGARD_CACHE`, else `regard` in the user's cache."""
    if named := os.environ.get("REGARD_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "regard")


def _path(name: str) -> Path:
    return cache_folder() / "pieces" / f"{name}.model"


def _kept(name: str, size: int | None) -> Pieces | None:
    """The model from disk; what cannot be read, or is something else, is made anew."""
    try:
        found = _loaded(_path(name).read_bytes())
    except (OSError, RuntimeError):
        return None
    return found if size in (None, len(found.vocabulary)) else None


@lru_cache(maxsize=4)
def _loaded(proto: bytes) -> Pieces:
    return Pieces(proto)


def _made(name: str, sentences: Sequence[str], size: int | None) -> Pieces:
    proto = most(sentences) if size is None else train(sentences, size)
    path = _path(name)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with suppress(OSError):  # without a place to keep it, it is made again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(proto)
        part.replace(path)
    return _loaded(proto)


def train(sentences: Sequence[str], size: int) -> bytes:
    """The model as SentencePiece stores it; one thread, as more would not add up alike."""
    numbers = {"pad": PAD, "bos": SOS, "eos": EOS, "unk": len(SPECIAL)}
    names = zip(numbers, (*SPECIAL, UNKNOWN), strict=True)
    model = io.BytesIO()
    try:
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
    except RuntimeError as error:
        raise RegardError(_why(str(error), size)) from None
    return model.getvalue()


def _why(message: str, size: int) -> str:
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
