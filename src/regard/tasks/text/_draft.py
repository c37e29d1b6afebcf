"""A corpus in pieces that are cut into words: made by all cores, gone on with where it was cut."""

from __future__ import annotations

import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.display.progress import in_notebook, make_bar
from regard.tasks.batch import Ints
from regard.tasks.corpus import choose_rows, refuse_held_out
from regard.tasks.order import draw_rows
from regard.tasks.text._counts import WordCounts
from regard.tasks.text._cut import Cut, cut_piece, group_rows
from regard.tasks.text._repeats import find_repeats
from regard.tasks.text_files import Faults, Meter

if TYPE_CHECKING:
    from regard.tasks.text._text_task import TextTask

ALONE = 2**23  # bytes of files that one process reads faster than several are started
MEGA = 2**20


class Draft:
    """The pieces of every part, and which rows of them are trained on and held out."""

    def __init__(self, task: TextTask, folder: Path):
        self.task, self.folder = task, folder
        faults = Faults()
        self.pieces = cut_parts(task, folder, faults)
        if task.config.bad_lines == "stop":
            faults.stop()
        self.skipped: Counter[str] = Counter(faults.counts)
        self.counts = {part: self._sum(paths) for part, paths in self.pieces.items()}
        task.check_parts(self.counts, self.skipped)
        self.repeated: NDArray[np.bool_] | None = None
        self.chosen: dict[str, Ints] = {}
        self._choose()

    def _sum(self, paths: list[Path]) -> int:
        """The rows in some pieces; what was left out there is noted."""
        count = 0
        for path in paths:
            cut = Cut.load(path)
            count += len(cut)
            self.skipped.update(cut.skipped)
        return count

    def _choose(self) -> None:
        for part, (most, key) in self.task.limits().items():
            if self.counts.get(part, 0) > most:
                (self.chosen[part],) = choose_rows(self.counts[part], [most], key)
        missing = [name for name in self.task.splits if name not in self.pieces]
        if not missing:
            return refuse_held_out(self.task.config.held_out)
        digests = (Cut.load(path).digests for path in self.pieces["train"])
        self.repeated = find_repeats(digests, self.counts["train"], self.folder)
        twice = int(np.count_nonzero(self.repeated))
        self.skipped[f"repeated {self.task.noun}"] += twice
        sizes = [self.task.config.held_out] * len(missing)
        held = choose_rows(self.counts["train"] - twice, sizes, "task.held_out")
        self.chosen |= dict(zip(missing, held, strict=True))
        return None

    def rows_of(self, name: str) -> Iterator[tuple[Cut, NDArray[np.bool_]]]:
        """The pieces that rows of a part are in, and which rows these are. (row,)"""
        home, row, rank = (name if name in self.pieces else "train"), 0, 0
        for path in self.pieces[home]:
            cut = Cut.load(path)
            once = np.ones(len(cut), bool)
            if home == "train" and self.repeated is not None:
                once = ~self.repeated[row : row + len(cut)]
            ranks = rank + np.cumsum(once) - once  # among rows that are there once
            yield cut, once & self._belong(name, ranks)
            row, rank = row + len(cut), rank + int(once.sum())

    def _belong(self, name: str, ranks: Ints) -> NDArray[np.bool_]:
        if name in self.chosen:
            return np.isin(ranks, self.chosen[name])
        if name != "train":
            return np.ones(len(ranks), bool)
        away = [rows for part, rows in self.chosen.items() if part not in self.pieces]
        return ~np.isin(ranks, np.concatenate([*away, np.zeros(0, np.int64)]))

    def count_words(self, name: str, side: int) -> WordCounts:
        """How often each word occurs in a part, on one side."""
        found = WordCounts(self.folder, f"{name}{side}")
        for cut, mask in self.rows_of(name):
            numbers = cut.numbers[side][np.repeat(mask, cut.lengths[side])]
            found.add(cut.words[side], np.bincount(numbers, minlength=len(cut.words[side])))
        return found

    def texts(self, name: str, most: int | None = None) -> Iterator[tuple[list[str], list[str]]]:
        """The words of each row of a part, in order; of `most` rows by a fixed draw, if more."""
        total = sum(int(mask.sum()) for _, mask in self.rows_of(name))
        drawn = None if most is None or total <= most else draw_rows(total, most, total)
        before = 0
        for cut, mask in self.rows_of(name):
            places = np.flatnonzero(mask)
            if drawn is not None:
                inside = drawn[(drawn >= before) & (drawn < before + len(places))] - before
                before, places = before + len(places), places[inside]
            yield from spell(cut, places)


def spell(cut: Cut, places: Ints) -> Iterator[tuple[list[str], list[str]]]:
    """The words of some rows of a piece."""
    ends = [np.cumsum(lengths) for lengths in cut.lengths]
    for place in places:
        found = []
        for side in (0, 1):
            stop = int(ends[side][place])
            numbers = cut.numbers[side][stop - int(cut.lengths[side][place]) : stop]
            found.append([cut.words[side][number] for number in numbers])
        yield found[0], found[1]


def cut_parts(task: TextTask, folder: Path, faults: Faults) -> dict[str, list[Path]]:
    """Cut all files of a task into words, but for pieces that are there already."""
    from joblib import Parallel, cpu_count, delayed

    meter = Meter(*task.config.files())
    found: dict[str, list[Path]] = {}

    def work() -> Iterator[Any]:
        for part in task.find_parts():
            paths = found.setdefault(part, [])
            for rows in group_rows(task.stream(part, faults, meter)):
                paths.append(folder / f"{part}-{len(paths):06d}.npz")
                if not _is_whole(paths[-1]):
                    yield delayed(cut_piece)(rows, task.cutter(), paths[-1])

    jobs = 1 if meter.total < ALONE else cpu_count()
    show = make_bar("MB of text read", wanted=in_notebook() or sys.stderr.isatty())
    for _ in Parallel(jobs, return_as="generator", pre_dispatch=jobs + 1)(work()):
        if show:
            show(round(meter.done / MEGA), round(meter.total / MEGA))
    return found


def _is_whole(path: Path) -> bool:
    """Whether a piece of an earlier attempt is there and undamaged."""
    try:
        Cut.load(path)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True
