"""Reading texts and their labels from files that somebody else made, whatever their layout."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from regard.errors import RegardError
from regard.tasks.parallel_text import NOT_UTF8, Faults, lines, load

Format = Literal["auto", "tsv", "csv", "jsonl", "lines"]
Labelled = tuple[str, str]  # label, text
Fields = Mapping[str, str]  # by the number of the column, or by name

MOST_CHARACTERS = 1_000_000  # a text may be long, but not a whole library
NOT_CSV = "lines that are not csv"
NOT_JSON = "lines that are not JSON"
NO_FIELD = "lines without a field that was named"
EMPTY = "empty texts"
SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are to be read.

    Columns are numbers from 1 (`2`, several `4,5`, or all from one on `2-`), or names: the keys of
    JSON, or those in the first line of a table.
    """

    format: Format = "auto"
    label: str | None = None
    text: str | None = None
    quoted: bool = False  # fields of a tab-separated file may stand in quotes

    @property
    def header(self) -> bool:
        """Whether the first line of a table names its columns."""
        parts = ",".join(filter(None, (self.label, self.text))).split(",")
        return any(part and not re.fullmatch(r"[0-9]+-?", part) for part in parts)


def read_labelled(
    path: Path, layout: Layout, faults: Faults, named_by: str, label: str | None = None
) -> list[Labelled]:
    """The texts of a file with their labels; with `label`, all of them have this one."""
    content, name = load(path, named_by=named_by)[0], str(path)
    kind = _format(path, content, layout.format, label is not None)
    keyed = kind == "jsonl"
    labels = layout.label or ("label" if keyed else "1")
    texts = layout.text or ("text" if keyed else "1" if label is not None else "2")
    found = []
    for number, fields in READERS[kind](content, name, faults, layout):
        own = label if label is not None else _joined(fields, labels, name, number, faults)
        text = _joined(fields, texts, name, number, faults)
        if own is None or text is None:
            continue
        if not (own.strip() and text.strip()):
            what = "the text is empty" if own.strip() else "the label is empty"
            faults.add(EMPTY, name, number, what)
        else:
            found.append((own.strip(), text))
    return found


def _format(path: Path, content: bytes, wanted: Format, labelled: bool) -> Format:
    """The format that was asked for, or that the file's name or first line shows."""
    if wanted != "auto":
        return wanted
    name = path.name.removesuffix(".gz")
    if suffix := SUFFIXES.get(Path(name).suffix):
        return suffix
    first = content.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    if first.startswith(b"{"):
        return "jsonl"
    if labelled:
        return "lines"
    if b"\t" in first:
        return "tsv"
    if first.startswith(b'"') or b"," in first:
        return "csv"
    raise RegardError(
        f"{path}, line 1: neither its name nor this line shows how labels and texts are parted."
        " Set task.format, or, where a file has texts of one label only, name it in task.labels."
    )


def _joined(fields: Fields, columns: str, name: str, number: int, faults: Faults) -> str | None:
    """The fields of some columns with spaces between, or None and a fault."""
    found = []
    for column in columns.split(","):
        open_ended = column.endswith("-") and column[:-1].isdecimal()
        first = column[:-1] if open_ended else column
        if first not in fields:
            there = ", ".join(fields) or "none"
            faults.add(NO_FIELD, name, number, f"there is no column '{first}' (there is: {there})")
            return None
        later = [n for n in fields if n.isdecimal() and int(n) >= int(first)] if open_ended else []
        wanted = later or [first]
        found += [fields[key] for key in wanted]
    return " ".join(found)


def _tables(
    rows: Iterator[tuple[int, list[str]]], layout: Layout
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows as fields by number, or by the names in the first of them."""
    names = next(rows, (0, []))[1] if layout.header else None
    for number, row in rows:
        keys = names or [str(place + 1) for place in range(len(row))]
        yield number, dict(zip(keys, row, strict=False))


def _tsv(content: bytes, name: str, faults: Faults, layout: Layout) -> Iterator[tuple[int, Any]]:
    if layout.quoted:
        return _tables(_parsed(content, name, faults, "\t"), layout)
    rows = enumerate(lines(content, name, faults, MOST_CHARACTERS), start=1)
    return _tables(((n, row.split("\t")) for n, row in rows if row is not None), layout)


def _csv(content: bytes, name: str, faults: Faults, layout: Layout) -> Iterator[tuple[int, Any]]:
    return _tables(_parsed(content, name, faults, ","), layout)


def _parsed(
    content: bytes, name: str, faults: Faults, between: str
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with quotes, each with the number of its first line."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    reader = csv.reader(StringIO(text, newline=""), delimiter=between, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.add(NOT_CSV, name, number, f"this is not csv ({error})")
            continue
        if any("\udc80" <= letter <= "\udcff" for field in row for letter in field):
            faults.add(NOT_UTF8, name, number, "this is not UTF-8 text")
        elif not row:
            faults.add(EMPTY, name, number, "the line is empty")
        else:
            yield number, row


def _jsonl(content: bytes, name: str, faults: Faults, layout: Layout) -> Iterator[tuple[int, Any]]:
    for number, row in enumerate(lines(content, name, faults, MOST_CHARACTERS), start=1):
        if row is None:
            continue
        try:
            found = json.loads(row)
        except (ValueError, RecursionError) as error:
            faults.add(NOT_JSON, name, number, f"this is not JSON ({error})")
            continue
        if not isinstance(found, dict):
            faults.add(NOT_JSON, name, number, "this is not an object in braces")
            continue
        said = {k: v for k, v in found.items() if v is not None}  # null is no text and no label
        yield number, {k: v if isinstance(v, str) else json.dumps(v) for k, v in said.items()}


def _lines(content: bytes, name: str, faults: Faults, layout: Layout) -> Iterator[tuple[int, Any]]:
    for number, row in enumerate(lines(content, name, faults, MOST_CHARACTERS), start=1):
        if row is not None:
            yield number, {"1": row}


Reader = Callable[[bytes, str, Faults, Layout], Iterator[tuple[int, Any]]]
READERS: dict[str, Reader] = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl, "lines": _lines}
