"""Put measured results into the documentation: docs/results, and the table in the README.

python tools/publish.py results/chapter36/full
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: str) -> None:
    """Write the page of one paper, and the README's table from all pages there are."""
    paper = Path(folder).resolve().parent.name
    page = ROOT / "docs" / "results" / f"{paper}.md"
    subprocess.run([sys.executable, "-m", "regard.cli.main", "report", folder, "--to", str(page)],
                   check=True)  # fmt: skip
    rows = [r for p in sorted(page.parent.glob("*.json")) for r in json.loads(p.read_text())]
    lines = ["| claim | the source says | measured (mean, 95 % interval) | seeds | verdict |"]
    lines += ["|---|---|---|---|---|", *map(line, rows)]
    readme = ROOT / "README.md"
    table = "<!-- results:begin -->\n" + "\n".join(lines) + "\n<!-- results:end -->"
    text = re.sub(r"<!-- results:begin -->.*<!-- results:end -->", lambda _: table,
                  readme.read_text(), flags=re.DOTALL)  # fmt: skip
    readme.write_text(text)


def line(row: dict[str, object]) -> str:
    """One row of the README's table."""
    measured = f"{row['headline']} {row['measured']:.3g}".replace("_", " ")
    if row["interval"]:
        low, high = row["interval"]  # type: ignore[misc]
        measured += f" [{low:.3g}, {high:.3g}]"
    scale = "" if row["scale"] == "full" else " (quick)"
    return (f"| `{row['id']}` | {row['expected']} | {measured} | {row['seeds']}{scale}"
            f" | {row['verdict']} |")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
