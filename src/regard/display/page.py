"""Pages that need no network and no server: a template, its data, and the library that draws."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from regard.display.figure import Figure


def render_page(template: str, package: str = "regard.display", /, **values: Any) -> str:
    """A template of a package, filled with values; all that they hold is escaped.

    In a template `{{ plotly }}` is the library, and `value|script` is JSON for a script element.
    """
    from jinja2 import Environment
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["script"] = lambda data: Markup(script_json(data))
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return environment.from_string(text).render(plotly=Markup(get_plotlyjs()), **values)


def script_json(data: Any) -> str:
    """JSON for a script element; no character in it can end the element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def figure_page(title: str, figure: Figure) -> str:
    """One interactive figure with its caption."""
    return render_page(
        "figure.html", title=title, figure=figure.interactive(), caption=figure.caption
    )
