"""Results as Markdown with figures beside it, for documentation and repositories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from regard.display import Figure, Table
from regard.display.escaping import visible
from regard.papers.framework.claims import ledger
from regard.papers.framework.result import Result, estimate
from regard.runs.files import write_json, write_whole
from regard.runs.places import require_name


def write_markdown(results: Sequence[Result], path: Path, title: str) -> Path:
    """Write the page, its figures next to it, and the ledger's rows as JSON of the same name."""
    write_figures(results, path.parent / "figures")
    rows = all_rows(results)
    write_json(path.with_suffix(".json"), rows)
    write_whole(path, join_page(title, rows, map(section, results)).encode())
    return path


def write_figures(results: Sequence[Result], folder: Path) -> None:
    """Every figure of some results as a file of its own."""
    for result in results:
        for figure in result.figures:
            write_whole(folder / _file(result, figure), figure.svg().encode())


def join_page(title: str, rows: Sequence[dict[str, Any]], sections: Iterable[str]) -> str:
    """A page: the ledger's rows, then a section per experiment."""
    return "\n\n".join([f"# {plain(title)}", ledger_table(rows), *sections]) + "\n"


def section(result: Result) -> str:
    """What one experiment found, as a section of a page."""
    parts = [f"## {plain(result.title)}", plain(result.about)]
    parts += [f"**{plain(sentence)}**" for sentence in result.found]
    parts += [
        f"![{plain(f.caption)}]({quote(f'figures/{_file(result, f)}')})" for f in result.figures
    ]
    parts += [f"*{plain(f.caption)}*" for f in result.figures]
    parts += [table_text(table) for table in result.tables]
    parts += [
        f"{code(row['id'])} ({plain(row['verdict'])}): {plain(row['rule'])}."
        for row in result.claims
    ]
    parts += [f"Covers {plain(result.coverage)}."] if result.coverage else []
    parts += [f"It took {result.core_hours:.2g} core hours."] if result.core_hours else []
    settings = {name: _short(entry) for name, entry in result.settings.items()}
    origin = {k: result.provenance[k] for k in ("regard", "commit", "torch", "started")}
    text = json.dumps({"runs": settings, "provenance": origin}, indent=1)
    parts.append(
        f"<details><summary>Settings ({plain(result.scale)} scale)</summary>\n\n```json\n"
        + text.replace("`", "\\u0060")  # no text can end the block
        + "\n```\n\n</details>"
    )
    return "\n\n".join(parts)


def all_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The ledger's rows of the papers that have results; what was not run is said so."""
    found = {row["id"]: row for result in results for row in result.claims}
    papers = {ledger()[claim].paper for claim in found if claim in ledger()}
    every = [claim for claim in ledger().values() if claim.paper in papers]
    known = [found.get(claim.id) or claim.row(None, None) for claim in every]
    return known + [row for claim, row in found.items() if claim not in ledger()]


def ledger_table(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger: what the source says, what was measured, the verdict."""
    cells = tuple(
        (
            code(row["id"]),
            plain(row["statement"]),
            plain(f"{row['headline']} = {estimate(row) or '–'}"),
            plain(row["scale"] or "–"),
            plain(row.get("coverage") or "–"),
            show_hours(row),
            f"**{plain(row['verdict'])}**",
        )
        for row in rows
    )
    columns = "claim", "the source says", "measured", "scale", "covers", "core hours", "verdict"
    return table_text(Table("", columns, cells), raw=True)


def show_hours(row: Mapping[str, Any]) -> str:
    """The core hours of a row of the ledger; about so many where they were not measured."""
    hours = row.get("core_hours")
    about = "~" if row.get("core_hours_from") == "timed" else ""
    return f"{about}{hours:.2g}" if hours else "–"


def table_text(table: Table, raw: bool = False) -> str:
    """A table in Markdown; `raw` cells may carry markup of their own."""
    cells = table.cells()
    lines = [table.columns, ["---"] * len(table.columns), *cells]
    text = "\n".join(
        "| " + " | ".join(c if raw else plain(c) for c in line) + " |" for line in lines
    )
    return f"**{plain(table.title)}**\n\n{text}" if table.title else text


def code(text: str) -> str:
    """A name in type of its own; one that could end it is plain."""
    return f"`{text}`" if re.fullmatch(r"[\w./:+-]+", text) else plain(text)


def plain(text: str) -> str:
    """Text in which nothing is read as markup."""
    text = escape(visible(text), quote=False).replace("\n", " ")
    for character in "\\`*_[]|#":
        text = text.replace(character, "\\" + character)
    return text


def _file(result: Result, figure: Figure) -> str:
    return require_name(f"{figure.name}-{result.scale}.svg")


def _short(entry: dict[str, Any]) -> dict[str, Any]:
    """A condition's configuration with its seeds as they are."""
    return {"seeds": entry["seeds"], **{k: entry[k] for k in ("task", "model", "training")}}
