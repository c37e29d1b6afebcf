"""Units and gates along a sentence, and what a probe reads off each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import Look, spell
from regard.explorer.speaking import Alive
from regard.explorer.thing import to_array
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
        about["reading"] = _read(views, question, look, alive)
    return about, arrays


def _read(views: Views, question: ask.UnitsQuestion, look: Look, alive: Alive) -> dict[str, Any]:
    """What the probe reads off each step, and whether that is what stands there."""
    thing = views.things[question.thing]
    stamp = thing.stamp(question.checkpoint)
    key = (question.thing, question.checkpoint, stamp, question.side, question.label)
    recording = thing.reference(question.checkpoint)
    alive()
    reader = views.readers.get(
        key, lambda: learn_to_read(recording.compact, f"{question.side}.states", question.label)
    )
    read = reader.read(look.arrays[f"{question.side}.states"])
    numbers = look.source if question.side == "encoder" else look.fed
    words = spell(thing.vocabularies[question.side == "decoder"].words, numbers)
    truth = words if question.label == "word" else [str(n) for n in range(len(read))]
    return {
        "label": question.label,
        "words": read,
        "right": [float(a == b) for a, b in zip(read, truth, strict=True)],
        "accuracy": reader.accuracy,
        "steps": reader.steps,
    }
