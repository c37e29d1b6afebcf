"""What a model says, freely and fed with a target, and how likely the rivals of each word are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from regard.explorer import questions as ask
from regard.explorer.changing import explain_changes
from regard.explorer.look import Look, spell, to_json_numbers
from regard.explorer.speaking import Alive
from regard.explorer.thing import LiveThing, Thing
from regard.explorer.views import Views
from regard.recordings.storage import Array
from regard.subjects.lexicon import strip


def say(views: Views, question: ask.Question, alive: Alive) -> dict[str, Any]:
    """What the model says: freely, and where there is a target, fed with it."""
    thing = views.things[question.thing]
    found = views.look(question.model_copy(update={"feed": "own"}), alive)
    forced = None
    if (question.target or "").strip() and isinstance(thing, LiveThing):
        asked = question.model_copy(update={"feed": "target", "forced": {}})
        forced = views.look(asked, alive)
    return {
        "source": mark_words(thing, found.source, 0),
        "free": _strip(thing, found),
        "forced": None if forced is None else _strip(thing, forced),
        "fixed": explain_changes(thing, found.sites),
        "sites": [
            {"name": name, **asdict(site), "exact": site.bilinear, "crosses": site.crosses,
             "causal": site.causal}
            for name, site in found.sites.items()
        ],
        "reach": (forced if question.feed == "target" and forced else found).reach,
        "units": {side: int(found.arrays[f"{side}.states"].shape[1])
                  for side in ("encoder", "decoder") if f"{side}.states" in found.arrays},
    }  # fmt: skip


def mark_words(thing: Thing, numbers: Array, side: int) -> list[dict[str, Any]]:
    """Words, which of them are special, which pieces are one word, and how each is shown.

    A piece is shown without its tokenizer's mark; one that goes on with a word begins with `+`.
    """
    special, lexicon = thing.special(side), thing.lexicon(side)
    groups = lexicon.number_words(numbers[None])[0].tolist()
    found: list[dict[str, Any]] = []
    for word, group in zip(spell(lexicon.words, numbers), groups, strict=True):
        entry = {"word": word, "special": word in special, "group": group}
        if lexicon.marker and group >= 0:
            goes_on = bool(found) and found[-1]["group"] == group
            entry["shown"] = "+" * goes_on + strip(word, lexicon.marker) or "␣"
        found.append(entry)
    return found


def _strip(thing: Thing, found: Look) -> dict[str, Any]:
    """The words of an output, and the likeliest ones at each step."""
    steps: list[dict[str, Any]] = []
    said, target = mark_words(thing, found.said, 1), thing.vocabularies[1]
    for step, word in enumerate(said):
        entry: dict[str, Any] = dict(word)
        if found.top is not None and found.sure is not None:
            words, chances = found.top
            entry["p"] = float(np.exp(found.sure[step]))
            names = spell(target.words, words[step])
            entry["first"] = float(names[0] == entry["word"])  # whether it would say so itself
            entry["top"] = list(zip(names, to_json_numbers(np.exp(chances[step]), 8), strict=True))
        steps.append(entry)
    return {"fed": mark_words(thing, found.fed, 1), "steps": steps, "ended": found.ended}
