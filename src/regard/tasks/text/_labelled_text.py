"""Reading texts and their labels from files that somebody else made, whatever their layout."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

from pydantic import Field

from regard.errors import RegardError
from regard.tasks.task import TaskConfig
from regard.tasks.text_files import AT_ONCE, BOM, NOT_UTF8, Faults, Meter, open_text, stream_lines

Format = Literal["auto", "tsv", "csv", "jsonl", "lines"]
Labelled = tuple[str, str]  # label, text
Fields = Mapping[str, str]  # by the number of the column, or by name
Line = tuple[int, str]  # its number, from 1, and its text
Rows = Iterator[tuple[int, Fields]]  # the number of their first line, and what is in them

MOST_CHARACTERS = 1_000_000  # a text may be long, but not a whole library
NOT_CSV = "lines that are not csv"
NOT_JSON = "lines that are not JSON"
NO_FIELD = "lines without a field that was named"
EMPTY = "empty texts"
SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip


class LayoutConfig(TaskConfig):
    """How the lines of a file are to be read.

    Columns are numbers from 1 (`2`, several `4,5`, or all from one on `2-`), or names: the keys of
    JSON, or those in the first line of a table.
    """

    format: Format = Field(
        "auto", description="auto: by the name of the file, else by its first line; lines: texts"
    )
    label_column: str | None = Field(
        None, description="where the label is: 1, or a name; none: 1, in jsonl `label`"
    )
    text_column: str | None = Field(
        None,
        description="where the text is: 2, `4,5` or `2-` joined, or a name; none: 2, in jsonl"
        " `text`",
    )
    quoted: bool = Field(False, description="fields of a tab-separated file may stand in quotes")

    @property
    def header(self) -> bool:
        """Whether the first line of a table names its columns."""
        parts = ",".join(filter(None, (self.label_column, self.text_column))).split(",")
        return any(part and not re.fullmatch(r"[0-9]+-?", part) for part in parts)


def stream_labelled(
    path: Path,
    layout: LayoutConfig,
    faults: Faults,
    label: str | None = None,
    meter: Meter | None = None,
) -> Iterator[Labelled]:
    """The texts of a file of any size with their labels; with `label`, all have this one."""
    name = str(path)
    kind = _choose_format(path, layout.format, label is not None)
    keyed = kind == "jsonl"
    labels = layout.label_column or ("label" if keyed else "1")
    texts = layout.text_column or ("text" if keyed else "1" if label is not None else "2")
    for number, fields in _read_rows(kind, path, faults, layout, meter):
        own = label if label is not None else _join_columns(fields, labels, name, number, faults)
        text = _join_columns(fields, texts, name, number, faults)
        if own is None or text is None:
            continue
        if not (own.strip() and text.strip()):
            what = "the text is empty" if own.strip() else "the label is empty"
            faults.add(EMPTY, name, number, what)
        else:
            yield own.strip(), text


def _choose_format(path: Path, wanted: Format, labelled: bool) -> Format:
    """The format that was asked for, or that the file's name or first line shows."""
    if wanted != "auto":
        return wanted
    name = path.name.removesuffix(".gz")
    if suffix := SUFFIXES.get(Path(name).suffix):
        return suffix
    with open_text(path) as file:
        first = file.readline(AT_ONCE).removeprefix(BOM).strip()
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


def _join_columns(
    fields: Fields, columns: str, name: str, number: int, faults: Faults
) -> str | None:
    """The fields of some columns with spaces between, or None and a fault."""
    found = []
    for column in columns.split(","):
        open_ended = column.endswith("-") and column[:-1].isdecimal()
        first = column[:-1] if open_ended else column
        if first not in fields:
            known = ", ".join(fields) or "none"
            faults.add(NO_FIELD, name, number, f"there is no column '{first}' (there is: {known})")
            return None
        later = [n for n in fields if n.isdecimal() and int(n) >= int(first)] if open_ended else []
        found += [fields[key] for key in later or [first]]
    return " ".join(found)


def _read_rows(
    kind: Format, path: Path, faults: Faults, layout: LayoutConfig, meter: Meter | None
) -> Rows:
    """The fields of every good row, by number or by name."""
    if kind == "csv" or (kind == "tsv" and layout.quoted):
        between = "," if kind == "csv" else "\t"
        return _name_fields(_parse_table(path, faults, between, meter), layout)
    rows = enumerate(stream_lines(path, faults, MOST_CHARACTERS, meter), start=1)
    lines = ((number, row) for number, row in rows if row is not None)
    if kind == "jsonl":
        return _parse_json(lines, str(path), faults)
    if kind == "tsv":
        return _name_fields(((number, row.split("\t")) for number, row in lines), layout)
    return ((number, {"1": row}) for number, row in lines)


def _name_fields(rows: Iterator[tuple[int, list[str]]], layout: LayoutConfig) -> Rows:
    """Fields by their numbers, or by the names in the first row."""
    names = next(rows, (0, []))[1] if layout.header else None
    for number, row in rows:
        keys = names or [str(place + 1) for place in range(len(row))]
        yield number, dict(zip(keys, row, strict=False))


def _parse_table(
    path: Path, faults: Faults, between: str, meter: Meter | None
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with quotes, each with the number of its first line."""
    with open_text(path, meter) as file:
        text = TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield from _parse_rows(text, str(path), faults, between)
        finally:
            text.detach()  # else it would close a file that others close


def _parse_rows(
    text: TextIOWrapper, name: str, faults: Faults, between: str
) -> Iterator[tuple[int, list[str]]]:
    lines = iter(partial(text.readline, AT_ONCE), "")
    reader = csv.reader(lines, delimiter=between, strict=True)
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


def _parse_json(lines: Iterator[Line], name: str, faults: Faults) -> Rows:
    for number, line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.add(NOT_JSON, name, number, f"this is not JSON ({error})")
            continue
        if not isinstance(found, dict):
            faults.add(NOT_JSON, name, number, "this is not an object in braces")
            continue
        said = {k: v for k, v in found.items() if v is not None}  # null is no text and no label
        yield number, {k: v if isinstance(v, str) else json.dumps(v) for k, v in said.items()}
