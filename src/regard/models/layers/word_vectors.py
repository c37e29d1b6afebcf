"""Word vectors that somebody else learned, such as GloVe's, as a model's first embedding."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.memory import require_memory
from regard.tasks.vocabulary import PAD

LONGEST = 2**20  # characters of a line: a word and some thousands of numbers
MEND = "Give GloVe's text format (a word and its numbers on each line), or npz with words, vectors."


def load_word_vectors(table: Tensor, words: Sequence[str], path: Path) -> int:
    """Replace the vectors of all words that a file has; the others stay as they were drawn.

    table (word, size): an embedding's weights. Returns how many words were found; a file without
    any of them is refused.
    """
    found = 0
    numbers = {word: number for number, word in enumerate(words) if number != PAD}
    with torch.no_grad():
        for word, vector in read_vectors(path):
            if not np.isfinite(vector).all():
                raise RegardError(
                    f"{path}: the vector of {word!r} has entries that are not numbers."
                )
            if len(vector) != table.shape[1]:
                raise RegardError(
                    f"{path} has vectors of {len(vector)} numbers, the model has"
                    f" model.embedding={table.shape[1]}. Set model.embedding={len(vector)}."
                )
            if word in numbers:
                table[numbers[word]] = torch.from_numpy(np.array(vector, np.float32))
                found += 1
    if not found:
        raise RegardError(
            f"{path} has a vector for none of the task's {len(words)} words. Check model.vectors,"
            " and whether both spell their words alike (task.lowercase)."
        )
    return found


def read_vectors(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Words and vectors of a file, plain, gzipped, or npz."""
    if not path.is_file():
        raise RegardError(f"There is no file of word vectors {path} (model.vectors).")
    try:
        if zipfile.is_zipfile(path):
            yield from _npz(path)
        else:
            yield from _text(path)
    except (OSError, EOFError, KeyError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise RegardError(f"{path} cannot be read as word vectors ({error}). {MEND}") from None


def _npz(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    with zipfile.ZipFile(path) as packed:
        size = sum(entry.file_size for entry in packed.infolist())
    require_memory(size, f"What {path} unpacks to", "Give a smaller file.")
    with np.load(path, allow_pickle=False) as data:
        words, vectors = data["words"], data["vectors"]
    vectors = vectors.astype(np.float32)
    if words.ndim != 1 or vectors.ndim != 2 or len(words) != len(vectors):
        raise RegardError(f"{path}: words {words.shape} and vectors {vectors.shape} do not fit.")
    yield from zip(map(str, words), vectors, strict=True)


def _lines(file: IO[str], path: Path) -> Iterator[str]:
    """Lines, none of them without end."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise RegardError(f"{path} has a line of more than {LONGEST} characters. {MEND}")
        yield line


def _text(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as file:
        size = 0
        for number, line in enumerate(_lines(file, path), start=1):
            # A few of GloVe's words have spaces in them, so the numbers are counted from the end.
            parts = line.rstrip("\n").split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                continue  # word2vec's text format begins with two sizes
            size = size or len(parts) - 1
            try:
                vector = np.array(parts[-size:], dtype=np.float32)
            except ValueError:
                raise RegardError(f"{path}, line {number}: no word and {size} numbers.") from None
            if size < 1 or len(parts) <= size:
                raise RegardError(f"{path}, line {number}: no word and {size} numbers. {MEND}")
            yield " ".join(parts[:-size]), vector
