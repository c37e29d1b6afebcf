"""Arrays in pieces that are gone through again and again: in memory, or in files if too many."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from regard.recordings.storage import Array

MOST = 2**28  # bytes in memory; what comes later goes to a folder for temporary files


class Piece:
    """Arrays by name; one that is in a file is mapped into memory when it is asked for."""

    def __init__(self, kept: dict[str, Array | Path], mode: Literal["r", "r+"]):
        self.kept, self.mode = kept, mode

    def __getitem__(self, name: str) -> Array:
        kept = self.kept[name]
        if not isinstance(kept, Path):
            return kept
        found: Array = np.load(kept, mmap_mode=self.mode, allow_pickle=False)
        return found


class Spool:
    """Named arrays by pieces. Files are removed with the object, or when the process ends."""

    def __init__(self) -> None:
        self.pieces: list[dict[str, Array | Path]] = []
        self.size = 0
        self.folder: Path | None = None

    def append(self, **arrays: Array) -> None:
        """One more piece."""
        self.size += sum(array.nbytes for array in arrays.values())
        if self.size <= MOST:
            self.pieces.append({**arrays})
            return
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="regard-words-"))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        kept: dict[str, Array | Path] = {}
        for name, array in arrays.items():
            path = self.folder / f"{len(self.pieces)}-{name}.npy"
            np.save(path, array, allow_pickle=False)
            kept[name] = path
        self.pieces.append(kept)

    def __iter__(self) -> Iterator[Piece]:
        """Piece by piece."""
        return (Piece(kept, "r") for kept in self.pieces)

    def changing(self) -> Iterator[Piece]:
        """Piece by piece, to be written into."""
        return (Piece(kept, "r+") for kept in self.pieces)

    def drop(self, name: str) -> None:
        """Forget one of the arrays."""
        for piece in self.pieces:
            kept = piece.pop(name)
            if isinstance(kept, Path):
                kept.unlink()
