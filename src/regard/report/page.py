"""The report: one HTML file that needs no network and no server."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.display import Figure
from regard.display.page import render_page
from regard.papers.framework.result import Result, estimate
from regard.report.markdown import ledger_table, plain
from regard.runs.files import write_whole

VERDICTS = {"reproduced": "good", "partly": "fair", "not reproduced": "poor", "not run": "none"}


def write_report(results: Sequence[Result], path: Path, title: str) -> Path:
    """Write the page for some results and say where it is."""
    write_whole(path, render(results, title).encode())
    return path


def write_ledger(rows: Sequence[dict[str, Any]], path: Path, title: str) -> Path:
    """Write the page of some rows of the ledger, rules included, and say where it is."""
    if path.suffix == ".md":
        text = f"# {plain(title)}\n\n{ledger_table(rows)}\n"
    else:
        text = render([], title, rows)
    write_whole(path, text.encode())
    return path


def render(
    results: Sequence[Result], title: str, rows: Sequence[dict[str, Any]] | None = None
) -> str:
    """The page as text. Everything that comes from data is escaped by the template."""
    if rows is None:
        rows = [row for result in results for row in result.claims]
    return render_page(
        "page.html",
        "regard.report",
        title=title,
        results=results,
        claims=[_claim(row) for row in rows],
        counts=Counter(row["verdict"] for row in rows),
        verdicts=VERDICTS,
        figures={
            f"{result.scale}-{f.name}": f.interactive()
            for result in results
            for f in result.figures
        },
        download=_download,
        settings=_settings,
    )


def _claim(row: dict[str, Any]) -> dict[str, Any]:
    found = estimate(row)
    return {**row, "shown": "–" if found is None else str(found)}


def _download(figure: Figure) -> str:
    """The vector version as a link that holds the file itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg().encode()).decode()


def _settings(result: Result) -> str:
    return json.dumps(result.settings, indent=1, ensure_ascii=False)
