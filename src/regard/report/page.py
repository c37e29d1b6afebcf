"""The report: one HTML file that needs no network and no server."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.display import Figure
from regard.display.page import render_page
from regard.papers.framework.result import Result, estimate
from regard.runs.files import write_whole

VERDICTS = {"reproduced": "good", "partly": "fair", "not reproduced": "poor", "not run": "none"}


def write_report(results: Sequence[Result], path: Path, title: str) -> Path:
    """Write the page for some results and say where it is."""
    write_whole(path, render(results, title).encode())
    return path


def render(results: Sequence[Result], title: str) -> str:
    """The page as text. Everything that comes from data is escaped by the template."""
    return render_page(
        "page.html",
        "regard.report",
        title=title,
        results=results,
        claims=[_claim(row) for result in results for row in result.claims],
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
