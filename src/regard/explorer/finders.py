"""Finders: heads by a measured quantity, and the sentences of a recording by theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.explorer.speaking import Alive
from regard.explorer.thing import LiveThing, Thing
from regard.explorer.views import Views
from regard.instruments.interventions._changes import RemoveHead
from regard.instruments.interventions._steering import Sentence, steer
from regard.instruments.scores._heads import describe_heads, describe_sentences
from regard.recordings import Recording
from regard.recordings.storage import InMemory
from regard.tasks.batch import Batch

TRIED = 64  # sentences that a head is taken out on
MOST = 1000  # sentences of a long recording that are measured


def find_heads(views: Views, question: Any, alive: Alive) -> dict[str, Any]:
    """Every head with what it was measured at, over the reference recording."""
    thing = views.things[question.thing]
    key = ("heads", question.thing, question.checkpoint, thing.stamp(question.checkpoint))
    reference = take_samples(thing.reference(question.checkpoint))
    rows = views.rows.get(key, lambda: _measure_heads(thing, question.checkpoint, reference, alive))
    return {"rows": rows, "samples": len(reference), "tried": min(TRIED, len(reference))}


def _measure_heads(
    thing: Thing, checkpoint: str | int, reference: Recording, alive: Alive
) -> list[dict[str, Any]]:
    rows = describe_heads(reference)
    if not isinstance(thing, LiveThing):
        return rows
    batch = take_batch(reference, TRIED, thing.start)
    with thing.lock, torch.no_grad():
        model = thing.model(checkpoint)

        def measure(changes: list[RemoveHead]) -> float:
            alive()
            sentence = Sentence(batch.source, batch.inputs)
            with steer(model, changes, sentence):
                sentence.begin()
                logits = model(batch.source, batch.source_lengths, batch.inputs).logits
            right = (logits.argmax(dim=2) == batch.target) & batch.target_mask
            return float(right.sum() / batch.target_mask.sum())

        whole = measure([])
        for row in rows:
            row["lost"] = whole - measure([RemoveHead(row["site"], row["head"])])
    return rows


def take_samples(recording: Recording, most: int = MOST) -> Recording:
    """The first samples of a long recording, in memory; a short one as it is."""
    if len(recording) <= most:
        return recording
    arrays = {
        name: recording.storage.read(name, 0, most)
        if recording.axes(name)[0] == "sample"
        else recording[name]
        for name in recording.names()
    }
    return Recording(InMemory(arrays), recording.metadata)


def take_batch(recording: Recording, most: int, start: int) -> Batch:
    """The first samples of a recording as a batch, with their targets; `start` is fed first."""
    source, target = recording["encoder.words"][:most], recording["targets"][:most]
    lengths = [recording[f"{side}.mask"][:most].sum(axis=1) for side in ("encoder", "decoder")]
    fed = np.concatenate([np.full_like(target[:, :1], start), target[:, :-1]], axis=1)
    parts = (source, lengths[0], target, lengths[1])
    whole = (np.ascontiguousarray(part, dtype=np.int64) for part in parts)
    return Batch.of(*whole, None, np.ascontiguousarray(fed, dtype=np.int64))


def find_sentences(views: Views, question: Any, alive: Alive) -> dict[str, Any]:
    """The sentences of the reference recording, each with its numbers."""
    thing = views.things[question.thing]
    reference = take_samples(thing.reference(question.checkpoint))
    key = ("sentences", question.thing, question.checkpoint, thing.stamp(question.checkpoint))
    rows = views.rows.get(key, lambda: _measure_sentences(thing, reference))
    return {"rows": rows[: question.most], "samples": len(reference)}


def _measure_sentences(thing: Thing, reference: Recording) -> list[dict[str, Any]]:
    """What was measured, with sentences as one would type them."""
    rows = describe_sentences(reference.compact)
    names = {"source": ("encoder", 0), "said": ("decoder", 1), "target": ("decoder", 1)}
    arrays = {"source": "encoder.words", "said": "predictions", "target": "targets"}
    for what, (side, number) in names.items():
        if arrays[what] not in reference:
            continue
        words, mask = reference[arrays[what]], reference[f"{side}.mask"]
        for row, numbers, there in zip(rows, words, mask, strict=True):
            row[what] = thing.spell(numbers[there].tolist(), number)
    return rows
