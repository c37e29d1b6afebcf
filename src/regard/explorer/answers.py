"""The questions that the page may put, by name, and what answers each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from regard.explorer import doors, finders, inner_units, saving, spaces, trees
from regard.explorer import questions as ask
from regard.explorer.look import Alive
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
    "say": Answer(ask.Question, Views.say),
    "thumbnails": Answer(ask.Question, Views.thumbnails),
    "head": Answer(ask.HeadQuestion, Views.head),
    "terms": Answer(ask.HeadQuestion, Views.terms, SLOW),
    "beside": Answer(ask.Question, Views.beside, SLOW),
    "seeds": Answer(ask.SeedsQuestion, Views.over_seeds),
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
