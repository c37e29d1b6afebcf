"""Spaces: fixed principal components, the sentence drawn through them, and its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import spell, to_json_numbers
from regard.explorer.speaking import Alive
from regard.explorer.views import Views
from regard.instruments._geometry import Axes
from regard.instruments.components.trajectories import Trajectories
from regard.instruments.components.word_clouds import Clouds
from regard.recordings import Recording
from regard.recordings.storage import Array

SHOWN = 3  # components that are sent
WORDS = 60  # input components with a name


def show_spaces(views: Views, question: ask.Question, alive: Alive) -> dict[str, Any]:
    """Temporal paths and input components, each in its own axes, with the sentence in both."""
    reference = views.things[question.thing].reference(question.checkpoint)
    alive()
    found: dict[str, Any] = {"samples": len(reference)}
    for name, draw in (("paths", _draw_paths), ("words", _draw_words)):
        try:
            found[name] = draw(views, question, reference, alive)
        except RegardError as error:
            found[name] = {"why": error.faults[0]}
    return found


def _draw_paths(
    views: Views, question: ask.Question, reference: Recording, alive: Alive
) -> dict[str, Any]:
    """μ of both sides in their common components; the sentence's states are h."""
    seen: Trajectories = reference.inspect("trajectories", reach=0.05).first
    look = views.look(question, alive)
    return {
        "axes": _label(seen.axes),
        "encoder": _project(seen.axes, seen.encoder),
        "decoder": _project(seen.axes, seen.decoder),
        "sentence": {
            side: _project(seen.axes, look.arrays[f"{side}.states"])
            for side in ("encoder", "decoder")
            if _fits(look.arrays.get(f"{side}.states"), seen.axes)
        },
    }


def _draw_words(
    views: Views, question: ask.Question, reference: Recording, alive: Alive
) -> dict[str, Any]:
    """χ of frequent words; the sentence's states are h − μ."""
    seen: Clouds = reference.inspect("word_clouds").first
    look = views.look(question, alive)
    parts = reference.decomposition.encoder
    counts = parts.counts.sum(axis=1)
    frequent = [int(n) for n in np.argsort(-counts, kind="stable")[:WORDS] if counts[n]]
    names = reference.compact.words("encoder")
    states = look.arrays["encoder.states"]
    free = states - parts.select(np.array([], np.int64), 0, len(states)).temporal
    return {
        "axes": _label(seen.axes),
        "words": [names[n] for n in frequent],
        "points": _project(seen.axes, parts.input[frequent]),
        "clouds": [_project(seen.axes, cloud) for cloud in seen.clouds],
        "cloud_words": list(seen.words),
        "readouts": {w: _turn(seen.axes, v) for w, v in seen.readouts.items()},
        "sentence": {"encoder": _project(seen.axes, free)},
    }


def find_neighbours(views: Views, question: ask.NearQuestion, alive: Alive) -> dict[str, Any]:
    """The recorded states nearest to one of the sentence's, with their sentences."""
    reference = views.things[question.thing].reference(question.checkpoint)
    name = f"{question.side}.states"
    states = views.look(question, alive).arrays.get(name)
    if states is None or question.step >= len(states) or name not in reference:
        raise RegardError(f"There is no step {question.step} on the {question.side}'s side.")
    best = nearest_states(reference, question.side, states[question.step], question.count)
    names = reference.words(question.side)

    def read(sample: int) -> list[str]:
        both = [f"{question.side}.{what}" for what in ("words", "mask")]
        words, mask = reference.sample(sample, both).values()
        return spell(names, words[mask])

    return {
        "near": [
            {"sample": sample, "step": step, "distance": distance,
             "words": read(sample)}
            for sample, step, distance in best
        ]
    }  # fmt: skip


def nearest_states(
    recording: Recording, side: str, state: Array, count: int
) -> list[tuple[int, int, float]]:
    """(sample, step, Euclidean distance) of the nearest recorded states, nearest first."""
    found: list[tuple[float, int, int]] = []
    done = 0
    for chunk in recording.chunks([f"{side}.states", f"{side}.mask"]):
        away = np.linalg.norm(chunk[f"{side}.states"] - state, axis=2)
        away = np.where(chunk[f"{side}.mask"], away, np.inf)
        for flat in np.argsort(away, axis=None, kind="stable")[:count]:
            sample, step = divmod(int(flat), away.shape[1])
            if np.isfinite(away[sample, step]):
                found.append((float(away[sample, step]), done + sample, step))
        done += len(away)
    return [(sample, step, distance) for distance, sample, step in sorted(found)[:count]]


def _fits(states: Array | None, axes: Axes) -> bool:
    return states is not None and states.shape[1] == len(axes.middle)


def _project(axes: Axes, vectors: Array) -> list[Any]:
    return to_json_numbers(axes.project(np.asarray(vectors, np.float64), SHOWN), 5)


def _turn(axes: Axes, vector: Array) -> list[Any]:
    return to_json_numbers(axes.turn(np.asarray(vector, np.float64)[None], SHOWN), 5)[0]  # type: ignore[no-any-return]


def _label(axes: Axes) -> list[str]:
    return [axes.label(n) for n in range(SHOWN)]
