"""The questions that the page may put, by name, and what answers each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from regard.errors import RegardError, unknown
from regard.explorer import (
    beside,
    doors,
    finders,
    heads,
    inner_units,
    saving,
    saying,
    seeds,
    spaces,
    splitting,
    trees,
)
from regard.explorer import questions as ask
from regard.explorer.speaking import Alive
from regard.explorer.views import Views

QUICK, SLOW = 60.0, 600.0


class Nothing(ask.Strict):
    """A question without settings."""


class OfThing(ask.Strict):
    """A question about one thing as a whole."""

    thing: ask.Name
    checkpoint: ask.Checkpoint = "reported"
    most: int = Field(300, ge=1, le=2000)


@dataclass(frozen=True)
class Answer:
    """How a question is read, what computes the answer, and how long it may take."""

    question: type[ask.Strict]
    compute: Callable[[Views, Any, Alive], Any]
    seconds: float = QUICK


ANSWERS: dict[str, Answer] = {
    "things": Answer(Nothing, lambda views, _, alive: views.list_things()),
    "describe": Answer(OfThing, lambda views, asked, alive: views.describe(asked.thing)),
    "say": Answer(ask.Question, saying.say),
    "thumbnails": Answer(ask.Question, heads.show_thumbnails),
    "head": Answer(ask.HeadQuestion, heads.show_head),
    "difference": Answer(ask.HeadQuestion, heads.show_difference),
    "apart": Answer(ask.ApartQuestion, heads.measure_apart),
    "terms": Answer(ask.HeadQuestion, splitting.split_head, SLOW),
    "beside": Answer(ask.Question, beside.show_beside, SLOW),
    "beam": Answer(ask.BeamQuestion, trees.grow_tree),
    "spaces": Answer(ask.Question, spaces.show_spaces, SLOW),
    "neighbours": Answer(ask.NearQuestion, spaces.find_neighbours, SLOW),
    "units": Answer(ask.UnitsQuestion, inner_units.show_units, SLOW),
    "curves": Answer(OfThing, doors.read_curves),
    "heads": Answer(OfThing, finders.find_heads, SLOW),
    "sentences": Answer(OfThing, finders.find_sentences, SLOW),
    "instruments": Answer(Nothing, doors.list_instruments),
    "inspect": Answer(ask.InspectQuestion, doors.put_instrument, SLOW),
    "claims": Answer(Nothing, doors.read_ledger),
    "export": Answer(ask.ExportQuestion, saving.save_view),
}
# What can be asked of all seeds at once. Axes and units of one run are not those of another.
POOLED = (
    "say", "thumbnails", "head", "difference", "apart", "terms", "beside", "units", "curves",
    "heads", "sentences",
)  # fmt: skip


def ask_seeds(views: Views, question: ask.SeedsQuestion, alive: Alive) -> Any:
    """One of the others over all seeds, see `seeds.py`."""
    if question.name not in POOLED:
        raise RegardError(unknown("question over seeds", question.name[:60], POOLED))
    one = ANSWERS[question.name]
    asked = ask.check_question(one.question, question.question)
    return seeds.ask_seeds(views, one.compute, asked, question.things, alive)


ANSWERS["over"] = Answer(ask.SeedsQuestion, ask_seeds, SLOW)
