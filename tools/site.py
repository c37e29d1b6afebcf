"""What the docs site needs besides its pages: notebooks as pages, and equations that are typeset.

mkdocs calls these functions (see `hooks` in mkdocs.yml). Nothing is fetched from anywhere.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

# A line that stands alone and says that something equals something, with subscripts or Greek.
EQUATION = re.compile(
    r"(?m)(?<=\n\n)(?P<left>[^\n`|#*<>]{1,60}) = (?P<right>[^\n`|#*]{1,120})(?=\n\n)"
)
MATHS = re.compile(r"[_^]|[μχΔαβξΣσ]")
SUBSCRIPT = re.compile(r"([A-Za-zμχΔαβξσΣ̂])_(\{[^}]*\}|[A-Za-z0-9]+)")


def on_files(files: Any, config: Any) -> Any:
    """Each notebook as a page beside it."""
    from mkdocs.structure.files import File

    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = to_markdown(json.loads(Path(file.abs_src_path).read_text(encoding="utf-8")))
            name = file.src_uri.removesuffix(".ipynb") + ".md"
            files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Equations that stand alone, typeset."""
    return typeset(markdown)


def to_markdown(notebook: dict[str, Any]) -> str:
    """Text as it is, code as blocks."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def typeset(markdown: str) -> str:
    """Equations as HTML: variables slanted, subscripts below the line."""

    def replace(match: re.Match[str]) -> str:
        text = match.group(0)
        if not MATHS.search(text):
            return text
        return f'<p class="equation">{to_html(text)}</p>'

    return EQUATION.sub(replace, markdown)


def to_html(text: str) -> str:
    """`a_st = v · tanh(q)` with what is below the line below it."""
    safe = html.escape(text, quote=False)
    lowered = SUBSCRIPT.sub(lambda m: f"<i>{m[1]}</i><sub>{m[2].strip('{}')}</sub>", safe)
    return re.sub(r"(?<![A-Za-z<>/&;])([a-zμχαβξσ])(?![A-Za-z<>/;])", r"<i>\1</i>", lowered)
