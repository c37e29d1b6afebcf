"""Reading text files that somebody else made, line by line: nothing in them is trusted."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from pathlib import Path

from regard.errors import RegardError, in_words

MOST_CHARACTERS = 10_000  # a longer line is not a sentence but a broken file
AT_ONCE = 2**20  # bytes read at a time
MOST_BYTES = 4 * 2**30  # in one file, unpacked: more would be a gzip bomb
SHOWN = 10  # faults told one by one
MEND = "Mend the lines, or set task.bad_lines=skip to leave them out."

EMPTY = "empty lines"
NOT_UTF8 = "lines that are not UTF-8"


class Faults:
    """The faults found so far: how many of each kind, and a sentence about each of the first.

    `mend` says what to do about them.
    """

    def __init__(self, mend: str = MEND) -> None:
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
        if self.counts:
            more = self.counts.total() - len(self.sentences)
            hidden = f"{more} more lines are bad. " if more else ""
            raise RegardError(*self.sentences, f"{hidden}{self.mend}")


def load(*paths: Path, named_by: str) -> list[bytes]:
    """What is in each file, unpacked where it is gzipped, whatever it is called.

    `named_by` are the settings to check where there is no such file.
    """
    faults = [
        f"{path} is a folder, and a text file is needed here: name a file in it."
        if path.is_dir()
        else f"There is no file {path}. Check {named_by}."
        for path in paths
        if path.is_dir() or not path.exists()
    ]
    if faults:
        raise RegardError(*faults)
    return [_unpack(path) for path in paths]


def _unpack(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            content = bytearray()  # `read(limit)` would ask for as much memory at once
            while len(content) <= MOST_BYTES and (piece := file.read(AT_ONCE)):
                content += piece
        if len(content) > MOST_BYTES:
            raise RegardError(
                f"{path} holds more than {MOST_BYTES / 2**30:g} GiB of text"
                f"{' when it is unpacked' if packed else ''}, which is the limit. Split the file."
            )
        return bytes(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(
            f"{path} is gzipped but damaged ({error}), so nothing was read. Fetch it again."
        ) from None
    except OSError as error:
        raise RegardError(f"Could not read the sentences. {in_words(error)}") from None


def read_lines(path: Path, faults: Faults, named_by: str) -> list[str | None]:
    """The lines of one file in order, None in place of each that is bad."""
    return split_lines(load(path, named_by=named_by)[0], str(path), faults)


def split_lines(
    content: bytes, name: str, faults: Faults, most: int = MOST_CHARACTERS
) -> list[str | None]:
    """The lines of a file's content, None in place of each that is bad: over `most` characters…"""
    rows = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not rows[-1]:
        rows.pop()  # what follows the last line break is no line
    return [_decode(row, name, number, faults, most) for number, row in enumerate(rows, start=1)]


def _decode(row: bytes, name: str, number: int, faults: Faults, most: int) -> str | None:
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
