"""Reading text files that somebody else made, line by line: nothing in them is trusted."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from regard.errors import RegardError, in_words

MOST_CHARACTERS = 10_000  # a longer line is not a sentence but a broken file
AT_ONCE = 2**20  # bytes read at a time
MOST_BYTES = 4 * 2**30  # in a gzipped file, unpacked: more would be a bomb
BOM = b"\xef\xbb\xbf"
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


def require_files(paths: Sequence[Path], named_by: str) -> None:
    """Refuse what is no file; `named_by` are the settings to check."""
    faults = [
        f"{path} is a folder, and a text file is needed here: name a file in it."
        if path.is_dir()
        else f"There is no file {path}. Check {named_by}."
        for path in paths
        if path.is_dir() or not path.exists()
    ]
    if faults:
        raise RegardError(*faults)


@contextmanager
def open_text(path: Path, meter: Meter | None = None) -> Iterator[BinaryIO]:
    """A file to be read from its start, unpacked where it is gzipped, whatever it is called."""
    try:
        with path.open("rb") as raw, (meter or Meter()).watching(raw):
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            yield io.BufferedReader(_Unpacked(raw, path), AT_ONCE) if packed else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RegardError(
            f"{path} is gzipped but damaged ({error}), so nothing was read. Fetch it again."
        ) from None
    except OSError as error:
        raise RegardError(f"Could not read the sentences. {in_words(error)}") from None


class _Unpacked(io.RawIOBase):
    """What is in a gzipped file, up to the limit."""

    def __init__(self, raw: BinaryIO, path: Path):
        self.content, self.path, self.size = gzip.GzipFile(fileobj=raw), path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.content.readinto(buffer)
        self.size += count
        if self.size > MOST_BYTES:
            raise RegardError(
                f"{self.path} holds more than {MOST_BYTES / 2**30:g} GiB of text when it is"
                " unpacked, which is the limit of gzipped files. Unpack or split the file."
            )
        return count


class Meter:
    """How many bytes of some files have been read."""

    def __init__(self, *paths: Path):
        self.total = sum(path.stat().st_size for path in paths)
        self.before = 0
        self.open: list[BinaryIO] = []

    @contextmanager
    def watching(self, raw: BinaryIO) -> Iterator[None]:
        """Count what is read of one more file."""
        self.open.append(raw)
        try:
            yield
        finally:
            self.open.remove(raw)
            self.before += raw.tell()

    @property
    def done(self) -> int:
        """Bytes so far, packed where a file is packed."""
        return self.before + sum(raw.tell() for raw in self.open)


def read_lines(path: Path, faults: Faults, named_by: str) -> list[str | None]:
    """The lines of one file in order, None in place of each that is bad."""
    require_files([path], named_by)
    return list(stream_lines(path, faults))


def stream_lines(
    path: Path, faults: Faults, most: int = MOST_CHARACTERS, meter: Meter | None = None
) -> Iterator[str | None]:
    """The lines of a file of any size one by one, None in place of each that is bad.

    Bad are those over `most` characters, empty ones, and those that are not UTF-8.
    """
    longest = 4 * (most + 1)  # bytes: as many have more characters than that
    with open_text(path, meter) as file:
        for number in count(1):
            row = file.readline(longest)
            if number == 1:
                row = row.removeprefix(BOM)
            if not row:
                return
            cut = len(row) == longest and not row.endswith(b"\n")
            while cut and (rest := file.readline(AT_ONCE)) and not rest.endswith(b"\n"):
                pass
            yield _decode(row, str(path), number, faults, most, cut)


def _decode(row: bytes, name: str, number: int, faults: Faults, most: int, cut: bool) -> str | None:
    try:
        text = row.decode(errors="ignore" if cut else "strict").strip("\r\n ")
    except UnicodeDecodeError as error:
        faults.add(NOT_UTF8, name, number, f"byte {error.start + 1} is not UTF-8 text")
        return None
    if cut or len(text) > most:
        size = f"over {most}" if cut else len(text)
        what = f"{size} characters are too many, {most} are allowed"
        faults.add(f"lines over {most} characters", name, number, what)
        return None
    if not text.strip():
        faults.add(EMPTY, name, number, "the line is empty")
        return None
    return text  # without spaces around it, but a tab at the end still parts two columns
