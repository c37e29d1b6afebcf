"""Arrays in pieces that are gone through again and again: in memory, or in files if too many."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regard.recordings.storage import Array

MOST = 2**28  # bytes in memory; what comes later goes to a folder for temporary files


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

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Piece by piece; files are mapped into memory as long as a piece is held."""
        return self._open("r")

    def changing(self) -> Iterator[dict[str, Array]]:
        """Piece by piece, to be written into."""
        return self._open("r+")

    def _open(self, mode: str) -> Iterator[dict[str, Array]]:
        for piece in self.pieces:
            yield {
                name: np.load(kept, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
                if isinstance(kept, Path)
                else kept
                for name, kept in piece.items()
            }

    def drop(self, name: str) -> None:
        """Forget one of the arrays."""
        for piece in self.pieces:
            kept = piece.pop(name)
            if isinstance(kept, Path):
                kept.unlink()
