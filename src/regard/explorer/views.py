"""What the page shows, view by view: plain data and arrays, from the same functions as all else."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import Alive, Look, look, spell, to_json_numbers
from regard.explorer.memory import Kept
from regard.explorer.things import LiveThing, RunThing, Thing, Things, to_array
from regard.instruments import inspect
from regard.instruments.components._terms import TERMS
from regard.instruments.interventions._changes import split_scores
from regard.instruments.interventions._steering import Passing, Sentence
from regard.instruments.units._readout import StepReader
from regard.instruments.words.ibm1 import IBM1
from regard.recordings.adapters._also import FURTHER
from regard.recordings.derived import compute_weights
from regard.recordings.storage import Array
from regard.statistics import Estimate
from regard.tasks.vocabulary import Vocabulary

THUMB = 40  # cells of a thumbnail's longer side
WHOLE = 20_000  # cells of a head up to which all its terms are sent at once
PAIRS = 10_000  # sentence pairs that IBM model 1 learns from

Arrays = dict[str, Array]


class Views:
    """All views of some things, with what is kept between requests."""

    def __init__(self, things: Things):
        self.things = things
        self.looks: Kept[Look] = Kept(128, 256 << 20, lambda one: one.size)
        self.lexicons: Kept[IBM1 | str] = Kept(4)
        self.readers: Kept[StepReader] = Kept(16)
        self.rows: Kept[list[dict[str, Any]]] = Kept(12)

    def look(self, question: ask.Question, alive: Alive) -> Look:
        """The sentence, looked at once for all views of it."""
        plain = ask.Question(**{k: getattr(question, k) for k in ask.Question.model_fields})
        key = (plain.key, self.things[plain.thing].stamp(plain.checkpoint))
        return self.looks.get(key, lambda: look(self.things, plain, alive))

    def list_things(self) -> list[dict[str, Any]]:
        """What can be explored."""
        self.things.refresh()
        return [thing.summary() for thing in self.things]

    def describe(self, name: str) -> dict[str, Any]:
        """One thing: its words, sentences to choose from, and what its model can be asked."""
        thing = self.things[name]
        found = thing.summary()
        source, target = thing.vocabularies
        found["words"] = {"source": _list_words(source), "target": _list_words(target)}
        found["live"] = isinstance(thing, LiveThing)
        if isinstance(thing, LiveThing):
            model = thing.model("reported")
            found["examples"] = [{"source": s, "target": t} for s, t in thing.examples()]
            found["single"] = thing.limit(1) == (1, False)
            found["lexical"] = model.has_lexical_probe
            found["cells"] = list(model.cells())
        else:
            found["examples"] = self.recorded(thing)
            found["single"] = False
        return found

    def recorded(self, thing: Thing, most: int = 200) -> list[dict[str, Any]]:
        """The sentences of a recording."""
        recording = thing.reference("reported")
        found = []
        words, mask = (recording.storage.read(f"encoder.{x}", 0, most) for x in ("words", "mask"))
        vocabulary = recording.vocabulary("encoder")
        for number, (row, there) in enumerate(zip(words, mask, strict=True)):
            text = " ".join(vocabulary.decode(row[there].tolist()))
            found.append({"source": text, "target": "", "sample": number})
        return found

    def say(self, question: ask.Question, alive: Alive) -> dict[str, Any]:
        """What the model says: freely, and where there is a target, fed with it."""
        thing = self.things[question.thing]
        found = self.look(question.model_copy(update={"feed": "own"}), alive)
        forced = None
        if (question.target or "").strip() and isinstance(thing, LiveThing):
            asked = question.model_copy(update={"feed": "target", "forced": {}})
            forced = self.look(asked, alive)
        source, target = thing.vocabularies
        return {
            "source": _mark(source, found.source, thing.special(0)),
            "free": _strip(target, found, thing.special(1)),
            "forced": None if forced is None else _strip(target, forced, thing.special(1)),
            "changeable": isinstance(thing, LiveThing) and thing.changeable,
            "sites": [
                {"name": name, **asdict(site), "exact": site.bilinear, "crosses": site.crosses,
                 "causal": site.causal}
                for name, site in found.sites.items()
            ],
            "reach": (forced if question.feed == "target" and forced else found).reach,
            "units": {side: int(found.arrays[f"{side}.states"].shape[1])
                      for side in ("encoder", "decoder") if f"{side}.states" in found.arrays},
        }  # fmt: skip

    def thumbnails(self, question: ask.Question, alive: Alive) -> tuple[dict[str, Any], Arrays]:
        """Every head of every attention, small: the largest weight in each tile, 0 to 255."""
        found = self.look(question, alive)
        arrays = {}
        for name in found.sites:
            small = pool(found.arrays[f"{name}.weights"], THUMB)
            arrays[name] = np.round(np.clip(small, 0, 1) * 255).astype(np.uint8)
        return {}, arrays

    def head(self, question: ask.HeadQuestion, alive: Alive) -> tuple[dict[str, Any], Arrays]:
        """One head in full: weights and scores, (target, source) each."""
        found = self.look(question, alive)
        _check_head(found, question)
        arrays = {
            what: np.ascontiguousarray(found.arrays[name][question.head], dtype=np.float32)
            for what in ("weights", "scores")
            if (name := f"{question.site}.{what}") in found.arrays
        }
        return {}, arrays

    def terms(self, question: ask.HeadQuestion, alive: Alive) -> tuple[dict[str, Any], Arrays]:
        """The nine terms of every cell of a head, or of one decoder step. (9, target, source)"""
        found = self.look(question, alive)
        _check_head(found, question)
        reference = self.things[question.thing].reference(question.checkpoint)
        parts = reference.decomposition.site(question.site)
        name, head = question.site, question.head
        queries, keys, scores = (
            torch.from_numpy(np.ascontiguousarray(found.arrays[f"{name}.{what}"][head]))[None]
            for what in ("queries", "keys", "scores")
        )
        step = question.step
        if step is None and scores.shape[1] * scores.shape[2] > WHOLE:
            step = 0
        start = 0 if step is None else min(step, scores.shape[1] - 1)
        if parts.vector is None:  # of the model as it is, also where changes are on
            scores = queries @ keys.transpose(1, 2)
        if step is not None:
            queries, scores = (x[:, start : start + 1] for x in (queries, scores))
        sentence = Sentence(torch.from_numpy(found.source[None]), torch.from_numpy(found.fed[None]))
        at = Passing(f"{name}.scores", start, (), sentence)
        terms = split_scores(parts, head, queries, keys, scores, at)[:, 0]
        known = parts.head(head)
        about = {
            "terms": TERMS, "exact": parts.site.bilinear, "step": None if step is None else start,
            "samples": len(reference),
            "known": [known[0].steps, known[1].steps],  # steps that the averages know
        }  # fmt: skip
        return about, {"terms": to_array(terms).astype(np.float32)}

    def beside(self, question: ask.Question, alive: Alive) -> tuple[dict[str, Any], Arrays]:
        """β, saliency and the alignment of IBM model 1, (target, source) each; or why not."""
        found = self.look(question, alive)
        arrays: Arrays = {}
        why: dict[str, str] = {}
        for what in ("lexical", "saliency"):
            alive()
            try:
                arrays[what] = self._further(question, found, what)
            except RegardError as error:
                why[what] = error.faults[0]
        lexicon = self._lexicon(question.thing, alive)
        if isinstance(lexicon, IBM1):
            arrays["ibm1"] = self._align(question.thing, lexicon, found)
        else:
            why["ibm1"] = lexicon
        return {"why": why}, {name: array.astype(np.float32) for name, array in arrays.items()}

    def _further(self, question: ask.Question, found: Look, what: str) -> Array:
        if found.done is None:
            if what in found.arrays:
                return found.arrays[what]
            raise RegardError(f"This recording has no {what}.")
        if question.changes:
            raise RegardError(f"{what} is that of the model as it is: take the changes away.")
        thing, done = self.things.live(question.thing), found.done
        if what == "lexical" and not done.model.has_lexical_probe:
            raise RegardError("This model has no lexical probe.")
        with thing.lock:
            return to_array(FURTHER[what](done)[0])

    def _lexicon(self, name: str, alive: Alive) -> IBM1 | str:
        """Translation probabilities of the sentences that the run was trained on."""
        thing = self.things[name]
        if not isinstance(thing, RunThing):
            return "IBM model 1 learns from a task's sentences, and there is no task here."

        def learn() -> IBM1 | str:
            try:
                model: IBM1 = inspect(thing.task, "ibm1", n=PAIRS).first
                return model
            except RegardError as error:
                return error.faults[0]

        alive()
        return self.lexicons.get(str(thing.run.config.configuration), learn)

    def _align(self, name: str, lexicon: IBM1, found: Look) -> Array:
        """α of IBM model 1 at each pair of words; 0 at special words, which it never sees."""
        sides = self.things[name].vocabularies
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

    def over_seeds(self, question: ask.SeedsQuestion, alive: Alive) -> tuple[Any, Arrays]:
        """One head's weights over several seeds: mean and interval of every cell.

        All are fed the same words: the target where one is fed, else what the first one says.
        """
        groups = {self.things[name].summary()["group"] for name in question.things}
        if len(groups) > 1:
            raise RegardError("These are not seeds of one configuration, so there is no mean.")
        first = self.look(question, alive)
        target = self.things[question.thing].vocabularies[1]
        words = dict(enumerate(spell(target.words, first.said)))
        every = []
        for name in question.things:
            fed = {} if question.feed == "target" else {"forced": words}
            found = self.look(question.model_copy(update={"thing": name, **fed}), alive)
            _check_head(found, question)
            every.append(found.arrays[f"{question.site}.weights"][question.head])
        shape = every[0].shape
        cells = [Estimate.share(row) for row in np.stack([x.ravel() for x in every], axis=1)]
        arrays = {
            name: np.array([getattr(cell, name) for cell in cells], np.float32).reshape(shape)
            for name in ("mean", "low", "high")
        }
        return {"seeds": len(every)}, arrays


def pool(weights: Array, most: int) -> Array:
    """The largest weight in each tile of heads (head, target, source), so that lines stay seen."""
    for axis in (1, 2):
        size = weights.shape[axis]
        if size > most:
            edges = np.linspace(0, size, most, endpoint=False).astype(int)
            weights = np.maximum.reduceat(weights, edges, axis=axis)
    return weights


def weights_of(scores: Array) -> Array:
    """Softmax over the source of one head's scores. (target, source)"""
    found: Array = compute_weights(scores[None, None], np.ones((1, scores.shape[1]), np.bool_))[
        0, 0
    ]
    return found


def _check_head(found: Look, question: ask.HeadQuestion) -> None:
    if question.site not in found.sites:
        known = ", ".join(found.sites) or "none"
        raise RegardError(f"There is no attention '{question.site}'. Known: {known}.")
    heads = found.sites[question.site].heads
    if question.head >= heads:
        raise RegardError(f"'{question.site}' has the heads 0 to {heads - 1}.")


def _list_words(vocabulary: Vocabulary, most: int = 2000) -> list[str]:
    return list(vocabulary.words[:most])


def _mark(vocabulary: Vocabulary, numbers: Array, special: frozenset[str]) -> list[dict[str, Any]]:
    """Words, and which of them are special."""
    return [{"word": word, "special": word in special} for word in spell(vocabulary.words, numbers)]


def _strip(vocabulary: Vocabulary, found: Look, special: frozenset[str]) -> dict[str, Any]:
    """The words of an output, and the likeliest ones at each step."""
    steps: list[dict[str, Any]] = []
    said = _mark(vocabulary, found.said, special)
    for step, word in enumerate(said):
        entry: dict[str, Any] = dict(word)
        if found.top is not None and found.sure is not None:
            words, chances = found.top
            entry["p"] = float(np.exp(found.sure[step]))
            names = spell(vocabulary.words, words[step])
            entry["top"] = list(zip(names, to_json_numbers(np.exp(chances[step]), 8), strict=True))
        steps.append(entry)
    return {"fed": _mark(vocabulary, found.fed, special), "steps": steps, "ended": found.ended}
