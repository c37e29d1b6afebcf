"""What stands beside a weight: β, saliency, and the alignment of IBM model 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import Look, spell
from regard.explorer.run_thing import RunThing
from regard.explorer.speaking import Alive
from regard.explorer.thing import to_array
from regard.explorer.views import Arrays, Views
from regard.instruments import inspect
from regard.instruments.words.ibm1 import IBM1
from regard.recordings.adapters._also import FURTHER, check_also
from regard.recordings.storage import Array

PAIRS = 10_000  # sentence pairs that IBM model 1 learns from


def show_beside(
    views: Views, question: ask.Question, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """β, saliency and the alignment of IBM model 1, (target, source) each; or why not."""
    found = views.look(question, alive)
    arrays: Arrays = {}
    why: dict[str, str] = {}
    for what in ("lexical", "saliency"):
        alive()
        try:
            arrays[what] = _further(views, question, found, what)
        except RegardError as error:
            why[what] = error.faults[0]
    lexicon = _lexicon(views, question.thing, alive)
    if isinstance(lexicon, IBM1):
        arrays["ibm1"] = _align(views, question.thing, lexicon, found)
    else:
        why["ibm1"] = lexicon
    return {"why": why}, {name: array.astype(np.float32) for name, array in arrays.items()}


def _further(views: Views, question: ask.Question, found: Look, what: str) -> Array:
    if found.done is None:
        if what in found.arrays:
            return found.arrays[what]
        raise RegardError(f"This recording has no {what}.")
    if question.changes:
        raise RegardError(f"{what} is that of the model as it is: take the changes away.")
    thing, done = views.things.live(question.thing), found.done
    check_also(done.model, {what: {}})
    with thing.lock:
        return to_array(FURTHER[what](done)[0])


def _lexicon(views: Views, name: str, alive: Alive) -> IBM1 | str:
    """Translation probabilities of the sentences that the run was trained on."""
    thing = views.things[name]
    if not isinstance(thing, RunThing):
        return "IBM model 1 learns from a task's sentences, and there is no task here."

    def learn() -> IBM1 | str:
        try:
            model: IBM1 = inspect(thing.task, "ibm1", n=PAIRS).first
            return model
        except RegardError as error:
            return error.faults[0]

    alive()
    return views.lexicons.get(str(thing.run.config.configuration), learn)


def _align(views: Views, name: str, lexicon: IBM1, found: Look) -> Array:
    """α of IBM model 1 at each pair of words; 0 at special words, which it never sees."""
    sides = views.things[name].vocabularies
    kept = [
        [k for k, word in enumerate(spell(side.words, numbers)) if word not in side.special]
        for side, numbers in zip(sides, (found.source, found.said), strict=True)
    ]
    texts = [
        [spell(side.words, numbers)[k] for k in places]
        for side, numbers, places in zip(sides, (found.source, found.said), kept, strict=True)
    ]
    whole = np.zeros((len(found.said), len(found.source)))
    if all(kept):
        alpha = lexicon.alpha([(texts[0], texts[1])]).values[0]
        whole[np.ix_(kept[1], kept[0])] = alpha[: len(kept[1]), : len(kept[0])]
    return whole
