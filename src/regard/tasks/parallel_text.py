"""Reading pairs of sentences from files that somebody else made: nothing in them is trusted."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regard.errors import RegardError, in_words

Pair = tuple[str, str]

MOST_CHARACTERS = 10_000  # a longer line is not a sentence but a broken file
SHOWN = 10  # faults told one by one

EMPTY = "empty lines"
NO_TAB = "lines without a tab"
NO_PARTNER = "lines without a partner"
NOT_UTF8 = "lines that are not UTF-8"


class Faults:
    """The faults found so far: how many of each kind, and a sentence about each of the first.

    `mend` says what to do about them.
    """

    def __init__(self, mend: str) -> None:
        self.mend = mend
        self.counts: Counter[str] = Counter()
        self.sentences: list[str] = []

    def add(self, kind: str, name: str, line: int, what: str, times: int = 1) -> None:
        """Note that `line` (counted from 1) of the file `name` has a fault."""
        self.counts[kind] += times
        if len(self.sentences) < SHOWN:
            self.sentences.append(f"{name}, line {line}: {what}.")

    def stop(self) -> None:
        """Raise what was found, if anything was."""
        if not self.counts:
            return
        more = sum(self.counts.values()) - len(self.sentences)
        hidden = f"{more} more lines are bad. " if more else ""
        raise RegardError(
            *self.sentences,
            f"{hidden}{self.mend}",
        )


def load(*paths: Path, named_by: str) -> list[bytes]:
    """What is in each file, unpacked where it is gzipped, whatever it is called.

    `named_by` are the settings to check where there is no such file.
    """
    faults = [fault for path in paths if (fault := _absent(path, named_by))]
    if faults:
        raise RegardError(*faults)
    return [_content(path) for path in paths]


def _absent(path: Path, named_by: str) -> str | None:
    """What is wrong with `path` as the name of a file to read, or None."""
    if path.is_dir():
        return f"{path} is a folder, and a text file is needed here: name a file in it."
    if not path.exists():
        return f"There is no file {path}. Check {named_by}."
    return None


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(
            f"{path} is gzipped but damaged ({error}), so nothing was read. Fetch it again."
        ) from None
    except OSError as error:
        raise RegardError(f"Could not read the sentences. {in_words(error)}") from None


def lines(
    content: bytes, name: str, faults: Faults, most: int = MOST_CHARACTERS
) -> list[str | None]:
    """The lines of a file in order, None in place of each that is bad: over `most` characters…"""
    rows = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not rows[-1]:
        rows.pop()  # what follows the last line break is no line
    return [_line(row, name, number, faults, most) for number, row in enumerate(rows, start=1)]


def _line(row: bytes, name: str, number: int, faults: Faults, most: int) -> str | None:
    try:
        text = row.decode().strip("\r\n ")  # a tab at the end still parts two columns
    except UnicodeDecodeError as error:
        faults.add(NOT_UTF8, name, number, f"byte {error.start + 1} is not UTF-8 text")
        return None
    if len(text) > most:
        what = f"{len(text)} characters are too many, {most} are allowed"
        faults.add(f"lines over {most} characters", name, number, what)
        return None
    if not text.strip():
        faults.add(EMPTY, name, number, "the line is empty")
        return None
    return text


def read_pairs(paths: Sequence[Path], faults: Faults, named_by: str) -> list[Pair]:
    """The pairs in one file of two columns, or line by line in two files."""
    contents, names = load(*paths, named_by=named_by), [str(path) for path in paths]
    sides = [lines(c, name, faults) for c, name in zip(contents, names, strict=True)]
    if len(sides) == 1:
        return columns(sides[0], names[0], faults)
    return side_by_side(sides[0], sides[1], (names[0], names[1]), faults)


def columns(rows: list[str | None], name: str, faults: Faults) -> list[Pair]:
    """The first two tab-separated columns of each line; further columns do not matter."""
    pairs = []
    for number, row in enumerate(rows, start=1):
        if row is None:
            continue
        source, *rest = row.split("\t", 2)
        if not rest:
            faults.add(NO_TAB, name, number, "there is no tab between two sentences")
        elif not (source.strip() and rest[0].strip()):
            faults.add(EMPTY, name, number, "one of the two sentences is empty")
        else:
            pairs.append((source, rest[0]))
    return pairs


def side_by_side(
    sources: list[str | None], targets: list[str | None], names: Pair, faults: Faults
) -> list[Pair]:
    """Line by line, a sentence of one file with that of the other; both must be good."""
    shorter = min(len(sources), len(targets))
    extra = abs(len(sources) - len(targets))
    if extra:
        longer, other = names if len(sources) > len(targets) else names[::-1]
        after = f", nor do the {extra - 1} after it" if extra > 1 else ""
        what = f"the line has no partner in {other}{after}"
        faults.add(NO_PARTNER, longer, shorter + 1, what, times=extra)
    both = zip(sources[:shorter], targets[:shorter], strict=True)
    return [(source, target) for source, target in both if source and target]
