"""A sentence put to a model: what it says, how sure it is, and everything that passed inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.changing import find_reference, make_changes
from regard.explorer.recording_thing import RecordingThing
from regard.explorer.speaking import Alive, choose_words, read_batch
from regard.explorer.thing import to_array
from regard.explorer.things import Things
from regard.instruments.interventions._steering import Change, Sentence, find_reach, steer
from regard.models.seq2seq import Output
from regard.recordings import Recording
from regard.recordings.adapters._also import Pass
from regard.recordings.adapters.model import describe_site, run_model
from regard.recordings.site import Site
from regard.recordings.storage import Array

TOP = 8  # words shown at each step


@dataclass
class Look:
    """One sentence, as a model or a recording has it."""

    source: Array  # (source,), numbers of words
    fed: Array  # (target,)
    said: Array  # (target,): what comes out, forced words included
    sites: dict[str, Site]
    arrays: dict[str, Array]  # `SITE.weights` (head, target, source), `encoder.states` (time, unit)
    top: tuple[Array, Array] | None = None  # words and log-probabilities, (target, k) each
    sure: Array | None = None  # (target,): log-probability of what was said
    ended: bool = True
    reach: dict[str, int | None] = field(default_factory=dict)
    done: Pass | None = None  # what further questions need of the model

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in self.arrays.values())


def look(things: Things, question: ask.Question, alive: Alive) -> Look:
    """The answer to a question, from a recording or by running the model."""
    thing = things[question.thing]
    if isinstance(thing, RecordingThing):
        return look_up(thing.recording, question.sample or 0)
    live = things.live(question.thing)
    with live.lock:
        model = live.model(question.checkpoint)
        changes = make_changes(live, question, alive)
        batch = read_batch(live, question)
        sentence = Sentence(batch.source, reference=find_reference(live, question))
        with steer(model, changes, sentence), torch.no_grad():
            batch, ended = choose_words(live, model, batch, question, sentence, alive)
            sentence.begin()
            sentence.feed(batch.inputs)
            done = run_model(model, batch, "teacher", False)
    return describe(done, changes, ended, question.feed == "own")


def describe(done: Pass, changes: Sequence[Change], ended: bool, free: bool) -> Look:
    """What a pass over one row shows."""
    output, batch = done.output, done.batch
    chances = output.logits[0].log_softmax(dim=1)
    likely, words = chances.topk(min(TOP, chances.shape[1]), dim=1)
    sure = chances.gather(1, batch.target[0][:, None])[:, 0]
    sites = {name: describe_site(site) for name, site in output.sites.items()}
    kept = Output(output.logits[:, :0], output.encoder_states, output.decoder_states, output.sites)
    return Look(
        to_array(batch.source[0]), to_array(done.fed[0]), to_array(batch.target[0]),
        sites, read_arrays(output), (to_array(words), to_array(likely)), to_array(sure), ended,
        find_reach(sites, changes, free) if changes else {}, done._replace(output=kept),
    )  # fmt: skip


def read_arrays(output: Output) -> dict[str, Array]:
    """States and attentions of one row, by the names that recordings use."""
    arrays = {
        "encoder.states": output.encoder_states[0],
        "decoder.states": output.decoder_states[0],
    }
    for name, site in output.sites.items():
        heads = site.scores.shape[1]
        arrays[f"{name}.queries"] = site.queries[0]
        arrays[f"{name}.keys"] = site.keys[0].expand(heads, -1, -1)
        arrays[f"{name}.scores"] = site.scores[0]
        arrays[f"{name}.weights"] = site.weights[0]
    return {name: to_array(x) for name, x in arrays.items()}


def look_up(recording: Recording, sample: int) -> Look:
    """One sample of a recording, without its padding."""
    if not 0 <= sample < len(recording):
        raise RegardError(f"There is no sample {sample}: the recording has {len(recording)}.")
    names = [n for n in recording.names() if recording.axes(n)[0] == "sample"]
    found = recording.sample(sample, names)
    lengths = {"source": int(found["encoder.mask"].sum())}
    lengths["target"] = int(found["decoder.mask"].sum()) if "decoder.mask" in found else 0
    arrays = {}
    for name, array in found.items():
        axes = recording.axes(name)[1:]
        arrays[name] = array[tuple(slice(lengths.get(axis)) for axis in axes)]
    empty = np.zeros(0, dtype=np.int64)
    fed = arrays.get("decoder.words", empty)
    said = arrays.get("predictions", arrays.get("targets", fed))
    return Look(arrays["encoder.words"], fed, said, dict(recording.metadata.sites), arrays)


def spell(words: Sequence[str], numbers: Array) -> list[str]:
    """Words by their numbers."""
    return [words[int(number)] for number in numbers]


def to_json_numbers(values: Array, digits: int = 6) -> list[Any]:
    """Numbers that a page shows, short."""
    found: list[Any] = np.round(values.astype(np.float64), digits).tolist()
    return found
