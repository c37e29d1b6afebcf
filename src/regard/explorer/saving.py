"""What is seen, as a file: a figure, a table, one page, or the lines of Python that give it."""

from __future__ import annotations

import csv
import io

import numpy as np
from starlette.responses import Response

from regard.display import Bars, Figure, Heat, Panel
from regard.display.page import figure_page
from regard.explorer import questions as ask
from regard.explorer.heads import show_head
from regard.explorer.look import Look, spell
from regard.explorer.speaking import Alive
from regard.explorer.splitting import split_head
from regard.explorer.views import Views
from regard.explorer.writing import write_python
from regard.instruments.components._terms import TERMS
from regard.recordings.storage import Array

TYPES = {
    "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8",
    "python": "text/x-python; charset=utf-8",
}  # fmt: skip


def save_view(views: Views, question: ask.ExportQuestion, alive: Alive) -> Response:
    """One head's weights, the terms of a cell where one is chosen, and what was said."""
    look = views.look(question, alive)
    weights = show_head(views, question, alive)[1]["weights"]
    if question.form == "python":
        text = write_python(views, question, look)
    elif question.form == "csv":
        text = write_csv(views, question, look, weights)
    else:
        figure = draw(views, question, look, weights, alive)
        text = figure.svg() if question.form == "svg" else figure_page("Regard explorer", figure)
    name = {"python": "py"}.get(question.form, question.form)
    headers = {"content-disposition": f'attachment; filename="regard.{name}"'}
    return Response(text, media_type=TYPES[question.form], headers=headers)


def sides(views: Views, question: ask.ExportQuestion, look: Look) -> tuple[list[str], list[str]]:
    """The words at the rows and at the columns of a head."""
    source, target = views.things[question.thing].vocabularies
    site = look.sites[question.site]
    said = spell(target.words, look.said if site.crosses else look.fed)
    read = spell(source.words, look.source)
    rows = said if site.query_side == "decoder" else read
    return rows, (read if site.key_side == "encoder" else said)


def draw(
    views: Views, question: ask.ExportQuestion, look: Look, weights: Array, alive: Alive
) -> Figure:
    """The figure, as plain data that is drawn as vector graphics or as a page."""
    rows, columns = (number(words) for words in sides(views, question, look))
    values = tuple(tuple(float(v) for v in row) for row in weights)
    heat = Heat(rows, columns, values, "attention weight", numbers=weights.size <= 200)
    panels = [Panel(f"{question.site}, head {question.head}", "key", "query", (heat,))]
    if question.step is not None and question.source_step is not None:
        about, arrays = split_head(views, question, alive)
        row = 0 if about["step"] is not None else question.step
        here = arrays["terms"][:, row, question.source_step]
        bars = Bars("", TERMS, tuple(map(float, here)))
        panels.append(Panel("Nine terms of the score", "decoder-encoder", "term", (bars,)))
    if look.sure is not None:
        sure = tuple(map(float, np.exp(look.sure)))
        target = views.things[question.thing].vocabularies[1]
        said = Bars("", number(spell(target.words, look.said)), sure, colour=2)
        panels.append(Panel("What it says", "step", "probability", (said,), (0, 1), wide=True))
    about_it = f"{question.thing}, checkpoint {question.checkpoint}: {question.source[:200]}"
    changed = f" Under {len(question.changes)} changes." if question.changes else ""
    return Figure("explorer", f"{about_it}. One run.{changed}", tuple(panels))


def number(words: list[str]) -> tuple[str, ...]:
    """Words that differ: the same word twice is two rows."""
    return tuple(f"{word} {n + 1}" for n, word in enumerate(words))


def write_csv(views: Views, question: ask.ExportQuestion, look: Look, weights: Array) -> str:
    """A line per cell; words that a spreadsheet would run as a formula begin with a quote."""
    rows, columns = sides(views, question, look)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["row", "query", "column", "key", "weight"])
    for r, word in enumerate(rows):
        for c, other in enumerate(columns):
            writer.writerow([r, tame(word), c, tame(other), repr(float(weights[r, c]))])
    return out.getvalue()


def tame(word: str) -> str:
    """Text that no spreadsheet runs."""
    return f"'{word}" if word[:1] in ("=", "+", "-", "@", "\t", "\r") else word
