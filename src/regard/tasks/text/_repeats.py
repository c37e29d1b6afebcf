"""Rows that a corpus has already had, found in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 2**20  # rows that are compared in memory
MOST = 500  # files that are open at a time


def find_repeats(digests: Iterable[NDArray[Any]], total: int, folder: Path) -> NDArray[np.bool_]:
    """Which of `total` rows were there before, by their digests, (row, 2) piece by piece.

    Rows are dealt out by their digest, so that equal ones meet in one file. The answer is a file
    in the folder, too, mapped into memory. (total,)
    """
    files = [folder / f"digests-{n}" for n in range(min(MOST, -(-total // AT_ONCE)))]
    row = 0
    with ExitStack() as stack:
        opened = [stack.enter_context(path.open("wb")) for path in files]
        for piece in digests:
            rows = np.arange(row, row + len(piece), dtype=np.uint64)
            entries = np.column_stack([piece, rows])
            home = piece[:, 0] % np.uint64(len(files))
            for number, file in enumerate(opened):
                file.write(entries[home == number].tobytes())
            row += len(piece)
    repeated = np.memmap(folder / "repeated", np.bool_, "w+", shape=(max(1, total),))
    for path in files:
        found = np.fromfile(path, np.uint64).reshape(-1, 3)
        found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
        same = (found[1:, :2] == found[:-1, :2]).all(axis=1)
        repeated[found[1:][same][:, 2].astype(np.int64)] = True
        path.unlink()
    return repeated[:total]
