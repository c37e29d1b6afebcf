"""Changes that a question asks for, as a model takes them; or why it takes none."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.speaking import Alive, choose_words
from regard.explorer.thing import LiveThing, Thing
from regard.instruments.interventions._changes import (
    PutState,
    RemoveHead,
    RemovePart,
    RemoveUnit,
    ScaleTerms,
    SetWeight,
)
from regard.instruments.interventions._steering import Change, Sentence
from regard.recordings import Recording
from regard.recordings.adapters.model import run_model
from regard.recordings.site import Site
from regard.tasks.batch import Batch

BY_MEANS = (ask.Terms, ask.NoPart)  # changes that need averages over a recording
# The hook points that each kind of change needs, of one attention or of the states.
NEEDED = {
    "weight": ("weights",), "head": ("weights",), "terms": ("scores",),
    "part": ("queries", "keys", "values"),
}  # fmt: skip
OF_STATES = ("encoder.states", "decoder.states")


def explain_changes(thing: Thing, sites: Mapping[str, Site]) -> dict[str, str]:
    """Why a kind of change cannot be made here, in a sentence; kinds that can are not there."""
    if not isinstance(thing, LiveThing):
        why = "A recording shows what a model did; nothing runs, so nothing can be changed."
        return dict.fromkeys((*NEEDED, "unit", "state"), why)
    points = thing.model("reported").hook_points()
    found = {}
    for kind, parts in NEEDED.items():
        missing = [s for s in sites for part in parts if f"{s}.{part}" not in points]
        if not sites:
            found[kind] = "There is no attention."
        elif len({*missing}) == len(sites):
            found[kind] = f"This model does not let anybody change its {' or '.join(parts)}."
    for kind in ("unit", "state"):
        if not any(point in points for point in OF_STATES):
            found[kind] = "This model does not let anybody change its states."
    if sites and not any(site.bilinear for site in sites.values()):
        found["terms"] = "Scores are not products of queries and keys, so terms do not add up."
    if thing.lacks_means:
        found |= {kind: found.get(kind, thing.lacks_means) for kind in ("terms", "part")}
    return found


def find_reference(live: LiveThing, question: ask.Question) -> Recording | None:
    """The recording whose averages the changes need, if any does."""
    needed = any(isinstance(one, BY_MEANS) for one in question.changes)
    return live.reference(question.checkpoint) if needed else None


def make_changes(live: LiveThing, question: ask.Question, alive: Alive) -> list[Change]:
    """All changes of a question."""
    return [make_change(live, question, one, alive) for one in question.changes]


def make_change(live: LiveThing, question: ask.Question, one: ask.Changed, alive: Alive) -> Change:
    """A change as the model takes it; components are those of the reference recording."""
    alive()
    if isinstance(one, ask.Weight):
        return SetWeight(one.site, one.step, one.source, one.weight, one.head)
    if isinstance(one, ask.NoHead):
        return RemoveHead(one.site, one.head)
    if isinstance(one, ask.NoUnit):
        return RemoveUnit(one.side, one.unit)
    if isinstance(one, ask.OtherState):
        return PutState(one.side, one.step, find_state(live, question, one))
    parts = live.reference(question.checkpoint).decomposition
    if isinstance(one, ask.Terms):
        return ScaleTerms(parts.site(one.site), one.factors, one.head)
    site = parts.site(one.site)
    mixed = one.where == "context"
    values = parts.heads(f"{site.name}.values", site.site.key_side) if mixed else ()
    return RemovePart(site, values, one.part, one.where)


def read_other(live: LiveThing, question: ask.Question, one: ask.OtherState) -> Batch:
    """Another sentence with what the model says to it freely, unchanged."""
    model = live.model(question.checkpoint)
    batch = live.read(one.sentence, None)
    other = ask.Question(thing=question.thing, source=one.sentence)
    with torch.no_grad():
        return choose_words(live, model, batch, other, Sentence(batch.source), lambda: None)[0]


def find_state(live: LiveThing, question: ask.Question, one: ask.OtherState) -> tuple[float, ...]:
    """A state of another sentence, as the model has it when it runs freely."""
    batch = read_other(live, question, one)
    with torch.no_grad():
        output = run_model(live.model(question.checkpoint), batch, "teacher", False).output
    states = output.encoder_states if one.side == "encoder" else output.decoder_states
    if one.other >= states.shape[1]:
        raise RegardError(
            f"The other sentence has {states.shape[1]} steps there, so there is no step"
            f" {one.other}."
        )
    return tuple(states[0, one.other].tolist())
