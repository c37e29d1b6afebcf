"""Units and gates along a sentence, and what a probe reads off each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import Alive
from regard.explorer.things import to_array
from regard.explorer.views import Arrays, Views
from regard.instruments.units._readout import learn_to_read
from regard.recordings.adapters.model import run_model


def show_units(
    views: Views, question: ask.UnitsQuestion, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """States and gates of one side, (step, unit) each, and a label read off every step."""
    look = views.look(question, alive)
    name = f"{question.side}.states"
    if name not in look.arrays:
        raise RegardError(f"There are no states of the {question.side} here.")
    arrays = {"states": look.arrays[name].astype(np.float32)}
    effects: dict[str, str] = {}
    if look.done is not None and look.done.model.cells():
        live, model = views.things.live(question.thing), look.done.model
        with live.lock, torch.no_grad():
            gates = run_model(model, look.done.batch, "teacher", True).output.gates
        effects = model.gate_effects()
        own = {n: g for n, g in gates.items() if n.startswith(question.side)}
        arrays |= {n: to_array(g[0]).astype(np.float32) for n, g in own.items()}
    about: dict[str, Any] = {"effects": effects}
    if question.label != "none":
        about["reading"] = _read(views, question, look.arrays[name], alive)
    return about, arrays


def _read(views: Views, question: ask.UnitsQuestion, states: Any, alive: Alive) -> dict[str, Any]:
    thing = views.things[question.thing]
    stamp = thing.stamp(question.checkpoint)
    key = (question.thing, question.checkpoint, stamp, question.side, question.label)
    recording = thing.reference(question.checkpoint)
    alive()
    reader = views.readers.get(
        key, lambda: learn_to_read(recording, f"{question.side}.states", question.label)
    )
    return {
        "label": question.label,
        "words": reader.read(states),
        "accuracy": reader.accuracy,
        "steps": reader.steps,
    }
