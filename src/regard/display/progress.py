"""How far something long has come: a bar in a notebook, and in a script that asks for one."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

PATIENCE = 2.0  # seconds that nobody needs a bar for
INTERVAL = 0.2  # seconds between two pictures of it
WIDTH = 30  # characters of a bar of text


class Bar:
    """A bar that appears when something takes more than two seconds, and goes when it is done."""

    def __init__(self, what: str, notebook: bool):
        self.what, self.notebook = what, notebook
        self.began = self.drawn = time.monotonic()
        self.shown: Any = None

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """So much of it is done."""
        now, whole = time.monotonic(), done >= total
        if now - self.began < PATIENCE or (now - self.drawn < INTERVAL and not whole):
            return
        self.drawn = now
        share = min(1.0, done / total) if total else 0.0
        text = f"{self.what} {done:g}/{total:g} {note}".strip()
        if self.notebook:
            self._display(share, text)
        else:
            bar = "#" * round(share * WIDTH)
            end = "\n" if whole else ""
            print(f"\r{bar:-<{WIDTH}} {text}", end=end, file=sys.stderr, flush=True)

    def _display(self, share: float, text: str) -> None:
        from IPython.display import HTML, display

        picture = HTML(  # type: ignore[no-untyped-call, unused-ignore]
            '<div style="display:flex;gap:.8em;align-items:center">'
            '<div style="width:14em;height:.6em;border-radius:.3em;background:#8884">'
            f'<div style="width:{share:.1%};height:100%;border-radius:.3em;background:#0072b2">'
            f"</div></div><code>{escape(text)}</code></div>"
        )
        if self.shown is None:
            self.shown = display(picture, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            self.shown.update(picture)


def make_bar(what: str, wanted: bool | None = None) -> Bar | None:
    """A bar where one is wanted; by default in notebooks only."""
    notebook = in_notebook()
    return Bar(what, notebook) if (notebook if wanted is None else wanted) else None


def in_notebook() -> bool:
    """Whether this runs in a notebook, where pictures can be displayed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
