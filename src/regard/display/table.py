"""A table that a terminal, a page and a program can all show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from regard.display.escaping import visible
from regard.statistics import Estimate, significant


@dataclass(frozen=True, repr=False)
class Table:
    """Named columns and rows of values (text, numbers, estimates)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, title: str, found: Mapping[str, Any], what: str = "what") -> Table:
        """One row per name: what was measured under it."""
        return cls(title, (what, "measured"), tuple(found.items()))

    @classmethod
    def of_columns(cls, title: str, what: str, columns: Mapping[str, Mapping[Any, Any]]) -> Table:
        """One row per name that the first column has: what each column has under it."""
        names = next(iter(columns.values()))
        rows = ((name, *(column[name] for column in columns.values())) for name in names)
        return cls(title, (what, *columns), tuple(rows))

    def cells(self) -> list[list[str]]:
        """Every value as text."""
        return [[shown(value) for value in row] for row in self.rows]

    @property
    def notes(self) -> list[str]:
        """Lines that a terminal shows below; mostly none."""
        return []

    def records(self) -> list[dict[str, Any]]:
        """A list of objects, one per row, for `--json`."""
        return [
            {name: _plain(value) for name, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]

    def rich(self) -> RichTable:
        """For a terminal. Content is shown as it is, never read as markup."""
        title = Text(visible(self.title))
        table = RichTable(title=title, title_justify="left", header_style="bold")
        for column in self.columns:
            table.add_column(Text(visible(column)), overflow="fold")
        for row in self.cells():
            table.add_row(*(Text(visible(cell)) for cell in row))
        return table

    def html(self) -> str:
        """For a notebook, light or dark: colours are those of the page, lines are half seen."""
        cell = "text-align:left;padding:.25em .9em .25em 0;border-bottom:1px solid #8884"
        head = "".join(f'<th dir="auto" style="{cell}">{escape(c)}</th>' for c in self.columns)
        rows = "".join(
            "<tr>"
            + "".join(f'<td dir="auto" style="{cell}">{escape(c)}</td>' for c in row)
            + "</tr>"
            for row in self.cells()
        )
        caption = 'style="text-align:left;font-weight:600;padding:.3em 0;caption-side:top"'
        title = f"<caption {caption}>{escape(self.title)}</caption>" if self.title else ""
        style = "border-collapse:collapse;color:inherit;background:transparent"
        return (
            f'<table style="{style}">{title}<thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<Table '{self.title}': {len(self.rows)} rows of {', '.join(self.columns)}>"

    def to_json(self) -> dict[str, Any]:
        """Title, columns and rows as text."""
        return {"title": self.title, "columns": list(self.columns), "rows": self.cells()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Table:
        """The inverse of `to_json`."""
        rows = tuple(tuple(row) for row in data["rows"])
        return cls(data["title"], tuple(data["columns"]), rows)


def shown(value: Any) -> str:
    """A value as text for people."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return significant(value)
    return str(value)


def _plain(value: Any) -> Any:
    return value.to_json() if isinstance(value, Estimate) else value
