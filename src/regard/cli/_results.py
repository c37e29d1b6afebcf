"""What becomes of results on disk: the ledger for a terminal, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.display import Table
from regard.papers.framework.result import estimate, load_folder


def claims_table(rows: list[dict[str, Any]]) -> Table:
    """One row per claim: what the source says, what was measured, the verdict."""
    columns = ("id", "what the source says", "measured", "scale", "verdict")
    cells = []
    for row in rows:
        found = estimate(row)
        measured = found and f"{row['headline']} {found}"
        cells.append((row["id"], row["statement"], measured, row["scale"], row["verdict"]))
    return Table("The ledger", columns, tuple(cells))


def write_report(folder: Path, to: Path | None = None) -> Path:
    """The report of a folder of results, as HTML or Markdown."""
    from regard import report

    results, path = load_folder(folder), to or folder / "report.html"
    papers = dict.fromkeys(result.experiment.split("/")[0] for result in results)
    write = report.write_markdown if path.suffix == ".md" else report.write_report
    return write(results, path, f"Regard: {', '.join(papers)}")
