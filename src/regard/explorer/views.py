"""What is kept between the requests of all views, and what can be explored at all."""

from __future__ import annotations

from typing import Any

from regard.explorer import questions as ask
from regard.explorer.look import Look, look
from regard.explorer.memory import Kept
from regard.explorer.speaking import Alive
from regard.explorer.thing import LiveThing, Thing
from regard.explorer.things import Things
from regard.instruments.units._readout import StepReader
from regard.instruments.words.ibm1 import IBM1
from regard.recordings.storage import Array
from regard.tasks.vocabulary import Vocabulary

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


def _list_words(vocabulary: Vocabulary, most: int = 2000) -> list[str]:
    return list(vocabulary.words[:most])
