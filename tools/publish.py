"""Put measured results into the documentation.

    python tools/publish.py results/chapter36/full results/demo/quick

A paper's folder becomes docs/results/PAPER.md with figures and ledger rows; the demo's figures
become docs/images. What comes with the package, and the rows in the README, are written anew.
"""

import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from regard.papers import claims, load_folder
from regard.report import write_markdown

ROOT = Path(__file__).resolve().parent.parent
RESULTS, IMAGES = ROOT / "docs" / "results", ROOT / "docs" / "images"
PUBLISHED = ROOT / "src" / "regard" / "papers" / "published"  # what comes with the package
# The rows of the README: two of each source.
SHOWN = (
    "c36.length", "c36.bidirectional", "ait.temporal-aed", "ait.breakdown",
    "baan.accuracy", "baan.prune", "snell.table2", "snell.keyword",
)  # fmt: skip
VERDICTS = ("reproduced", "partly", "not reproduced", "not run")


def main(folders: list[str]) -> None:
    """Publish each folder, then the README's table."""
    for folder in map(Path, folders):
        paper = folder.resolve().parent.name
        if paper == "demo":
            IMAGES.mkdir(exist_ok=True)
            for figure in sorted((folder / "figures").glob("*.svg")):
                shutil.copy(figure, IMAGES / figure.name)
        else:
            write_markdown(load_folder(folder), RESULTS / f"{paper}.md", f"Results: {paper}")
            shutil.copy(RESULTS / f"{paper}.json", PUBLISHED / f"{paper}.json")
    write_readme()


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
    measured = f"{row['headline']} {row['measured']:.3g}".replace("_", " ")
    if row["interval"]:
        low, high = row["interval"]
        measured += f" [{low:.3g}, {high:.3g}]"
    scale = "" if row["scale"] == "full" else f" ({row['scale']})"
    cells = [f"`{row['id']}`", row["expected"], measured, f"{row['seeds']}{scale}", row["verdict"]]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main(sys.argv[1:])
