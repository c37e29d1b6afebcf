"""Rows of words with attention targets, and the tab-separated files that others publish them in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.tasks.batch import Batch, collate
from regard.tasks.text_files import Faults, read_lines
from regard.tasks.vocabulary import EOS, Vocabulary

STOP = "."  # ends every source in the files
COLUMNS = 3  # source, target, attention targets
ENDINGS = (".tsv", ".tsv.gz")
BAD = "bad rows"
MEND = "Mend the lines, or fetch the files again."


@dataclass(frozen=True)
class Row:
    """A source and a target without end tokens, and the source position for each decoder step.

    The end of the source has a position, too: the number of its words.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int, ...]


def make_batch(rows: Sequence[Row], source: Vocabulary, target: Vocabulary, ends: bool) -> Batch:
    """Rows as a batch, sources with an end token, targets with one where asked."""
    end = [EOS] if ends else []
    return collate(
        [[*source.encode(row.source), EOS] for row in rows],
        [[*target.encode(row.target), *end] for row in rows],
        [row.alignment for row in rows],
    )


def find_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Where the file of each name is, plain or gzipped; the plain one where there is neither."""
    found = {}
    for name in names:
        options = [folder / f"{name}{ending}" for ending in ENDINGS]
        found[name] = next((path for path in options if path.is_file()), options[0])
    return found


def read_rows(
    folder: Path, names: Sequence[str], optional: Sequence[str], ends: bool
) -> dict[str, list[Row]]:
    """The rows of each named file in a folder, and of those optional ones that are there.

    With `ends`, the last attention target of a row is that of an end token; without, a row may
    have one all the same, which is left out. Row `n` of a file is its line `n + 1`.
    """
    if not folder.is_dir():
        raise RegardError(f"There is no folder {folder}. Check task.data.")
    paths = find_files(folder, [*names, *optional])
    missing = [name for name in names if not paths[name].is_file()]
    if missing:
        raise RegardError(
            f"{folder} has no {', '.join(f'{name}.tsv' for name in missing)}. The folder should"
            f" hold {', '.join(f'{name}.tsv' for name in names)}, each plain or as .tsv.gz."
        )
    faults = Faults(MEND)
    rows = {name: _parse_file(path, ends, faults) for name, path in paths.items() if path.is_file()}
    faults.stop()
    return rows


def _parse_file(path: Path, ends: bool, faults: Faults) -> list[Row]:
    texts = read_lines(path, faults, named_by="task.data")
    if not texts:
        faults.add(BAD, str(path), 1, "the file is empty")
    rows = []
    for number, text in enumerate(texts, start=1):
        row = None if text is None else _parse_line(text, ends)
        if isinstance(row, str):
            faults.add(BAD, str(path), number, row)
        elif row is not None:
            rows.append(row)
    return rows


def _parse_line(text: str, ends: bool) -> Row | str:
    """The row in a line, or what is wrong with it."""
    columns = text.split("\t")
    if len(columns) != COLUMNS:
        return (
            f"{len(columns)} columns instead of {COLUMNS}"
            " (source, target and attention targets, parted by tabs)"
        )
    source, target, given = (column.split() for column in columns)
    if len(source) < 2 or source[-1] != STOP:
        return f"the source is not words and then '{STOP}'"
    if not target:
        return "the target is empty"
    strange = [word for word in given if not word.isdecimal()]
    if strange:
        return f"the attention target '{strange[0]}' is not a whole number from 0 on"
    alignment = tuple(int(word) for word in given)
    if not ends and len(alignment) == len(target) + 1:
        alignment = alignment[:-1]  # the official files have one more, for the end
    if len(alignment) != len(target) + ends:
        end = " and its end" if ends else ""
        return f"{len(alignment)} attention targets for {len(target)} words of the target{end}"
    if max(alignment) >= len(source):
        return (
            f"the attention target {max(alignment)} is outside the source,"
            f" whose positions are 0 to {len(source) - 1}"
        )
    return Row(tuple(source[:-1]), tuple(target), alignment)
