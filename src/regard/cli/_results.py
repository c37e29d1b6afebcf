"""What becomes of results on disk: the ledger for a terminal, and the report."""

from __future__ import annotations

from pathlib import Path

from regard.papers.framework.result import claims, load_folder


def write_published(to: Path) -> Path:
    """The page of the results that come with Regard, from which nothing has to be run."""
    from regard import report

    rows = [row for row in claims(source="published") if row["source"]]
    return report.write_ledger(rows, to, "Regard: published results")


def write_report(folder: Path, to: Path | None = None) -> Path:
    """The report of a folder of results, as HTML or Markdown."""
    from regard import report

    results, path = load_folder(folder), to or folder / "report.html"
    papers = dict.fromkeys(result.experiment.split("/")[0] for result in results)
    write = report.write_markdown if path.suffix == ".md" else report.write_report
    return write(results, path, f"Regard: {', '.join(papers)}")
