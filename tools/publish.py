"""Put measured results into the documentation.

    python tools/publish.py results/chapter36/full results/demo/quick

A paper's folder goes into docs/results/PAPER.md with figures and ledger rows: what was measured
replaces what was published of the same experiments, and everything else stays as it was published.
The demo's figures become docs/images. The rows of all pages, of what comes with the package, of the
README and of docs/results/index.md are written anew. Without folders, these alone are.
"""

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.display import Table
from regard.papers import EXPERIMENTS, Result, claims, ledger, load_folder
from regard.papers.framework.result import PUBLISHED, parts_path, published_rows
from regard.report.markdown import (
    code,
    join_page,
    plain,
    section,
    show_hours,
    table_text,
    write_figures,
)
from regard.runs.files import write_json

ROOT = Path(__file__).resolve().parent.parent
RESULTS, IMAGES = ROOT / "docs" / "results", ROOT / "docs" / "images"
# The rows of the README: two of each source.
SHOWN = (
    "c36.length", "c36.bidirectional", "ait.temporal-aed", "ait.breakdown",
    "baan.accuracy", "baan.prune", "snell.table2", "snell.keyword",
)  # fmt: skip
VERDICTS = ("reproduced", "partly", "not reproduced", "not run")


def main(folders: list[str]) -> None:
    """Publish each folder, then what rests on the whole ledger: it may have new rows."""
    for folder in map(Path, folders):
        paper = folder.resolve().parent.name
        if paper == "demo":
            IMAGES.mkdir(exist_ok=True)
            for figure in sorted((folder / "figures").glob("*.svg")):
                shutil.copy(figure, IMAGES / figure.name)
        else:
            merge_paper(load_folder(folder), paper)
    for page in sorted(RESULTS.glob("*.json")):
        merge_paper([], page.stem)
    published_rows.cache_clear()
    write_readme()
    write_index()


def merge_paper(results: Sequence[Result], paper: str, docs: Path = RESULTS) -> None:
    """A paper's page with what was measured in the place of what was published."""
    page = docs / f"{paper}.md"
    old = page.read_text(encoding="utf-8") if page.is_file() else ""
    known = json.loads(page.with_suffix(".json").read_text()) if old else []
    results = [result for result in results if not is_behind(result, known)]
    rows = merge_rows(known, results, paper)
    text = join_page(f"Results: {paper}", rows, merge_sections(old, results, paper))
    write_figures(results, docs / "figures")
    for lost in set(named_figures(old)) - set(named_figures(text)):
        (docs / "figures" / lost).unlink(missing_ok=True)
    page.write_text(text, encoding="utf-8")
    write_json(page.with_suffix(".json"), rows)
    if docs == RESULTS:
        shutil.copy(page.with_suffix(".json"), PUBLISHED / f"{paper}.json")
        for result in results:
            write_parts(result)


def write_parts(result: Result) -> None:
    """What each data set gave comes with the package, so that others can be measured elsewhere."""
    if result.parts and result.scale == "full":
        path = parts_path(result.experiment)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result.parts, ensure_ascii=False) + "\n", encoding="utf-8")


def is_behind(result: Result, known: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a quick look would replace what was published at full scale."""
    scales = {row["scale"] for row in known if row["experiment"] == result.experiment}
    return result.scale == "quick" and "full" in scales


def merge_rows(
    known: Sequence[Mapping[str, Any]], results: Sequence[Result], paper: str
) -> list[dict[str, Any]]:
    """Every claim of a paper: as measured now, else as published, else as not run."""
    rows = {row["id"]: dict(row) for row in known}
    rows |= {row["id"]: row for result in results for row in result.claims}
    every = [claim for claim in ledger().values() if claim.paper == paper]
    return [rows.get(claim.id) or claim.row(None, None) for claim in every]


def merge_sections(page: str, results: Sequence[Result], paper: str) -> list[str]:
    """The sections of a page in the order of the experiments, those measured now made anew."""
    found = {part.splitlines()[0]: part.rstrip() for part in page.split("\n## ")[1:]}
    found = {title: f"## {part}" for title, part in found.items()}
    found |= {plain(result.title): section(result) for result in results}
    order = [plain(EXPERIMENTS[name].title) for name in EXPERIMENTS.group(paper)]
    known = [title for title in order if title in found]
    return [found[title] for title in [*known, *(t for t in found if t not in known)]]


def named_figures(page: str) -> list[str]:
    """The files of figures that a page shows."""
    return re.findall(r"\]\(figures/([^)]+)\)", page)


def write_index() -> None:
    """The tables of the page of all results; what is said around them is written by hand."""
    index = RESULTS / "index.md"
    text = index.read_text(encoding="utf-8")
    every = claims(source="published")
    for paper in dict.fromkeys(row["paper"] for row in every):
        table = index_table([row for row in every if row["paper"] == paper])
        begin, end = f"<!-- {paper}:begin -->\n", f"<!-- {paper}:end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"
    index.write_text(text, encoding="utf-8")


def index_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row per claim: the verdict, and what it rests on."""
    cells = tuple(
        (
            code(row["id"]),
            f"**{plain(row['verdict'])}**" + (" (quick)" if row["scale"] == "quick" else ""),
            plain(show_measured(row)) if row["measured"] is not None else "–",
            str(row["seeds"]) if row["seeds"] else "–",
            plain(row["coverage"] or "–"),
            show_hours(row),
        )
        for row in rows
    )
    columns = ("claim", "verdict", "measured (mean, 95 % interval)", "n", "covers", "core hours")
    return table_text(Table("", columns, cells), raw=True)


def write_readme() -> None:
    """The README's rows: a few that stand for the rest, and a count of all verdicts."""
    every = claims(source="published")
    known = {row["id"]: row for row in every}
    head = "| claim | the source says | measured (mean, 95 % interval) | seeds | verdict |"
    rows = [line(known[name]) for name in SHOWN]
    counts = Counter(row["verdict"] for row in every)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    table = "\n".join(["<!-- results:begin -->", head, "|---|---|---|---|---|", *rows])
    text = f"{table}\n\nAll {len(every)} claims: {told}."
    readme = ROOT / "README.md"
    marked = r"<!-- results:begin -->.*(?=\n<!-- results:end -->)"
    readme.write_text(re.sub(marked, lambda _: text, readme.read_text(), flags=re.DOTALL))


def line(row: dict[str, Any]) -> str:
    """One row of the README's table."""
    if row["measured"] is None:
        return f"| `{row['id']}` | {row['expected']} | – | – | {row['verdict']} |"
    measured = show_measured(row)
    scale = "" if row["scale"] == "full" else f" ({row['scale']})"
    cells = [f"`{row['id']}`", row["expected"], measured, f"{row['seeds']}{scale}", row["verdict"]]
    return "| " + " | ".join(cells) + " |"


def show_measured(row: Mapping[str, Any]) -> str:
    """The headline number of a row with its interval."""
    measured = f"{row['headline']} {row['measured']:.3g}".replace("_", " ")
    if row["interval"]:
        low, high = row["interval"]
        measured += f" [{low:.3g}, {high:.3g}]"
    return measured


if __name__ == "__main__":
    main(sys.argv[1:])
