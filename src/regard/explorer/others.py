"""Models that others made, from a folder of `transformers`: run and looked at, not changed yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.explorer.things import Checkpoint, LiveThing
from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording
from regard.subjects.hugging_face.door import hugging_face
from regard.subjects.subject import Subject
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary

LONGEST = 128  # pieces that are put out at most


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds a model of `transformers`: its configuration says which."""
    try:
        data = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and "model_type" in data


class SubjectThing(LiveThing):
    """A subject: the words are its tokenizer's."""

    kind = "model"
    changeable = False

    def __init__(self, name: str, path: Path, subject: Subject | None = None):
        super().__init__(name, path)
        self.subject = subject or hugging_face(path)
        lexicon = self.subject.lexicons["decoder"]
        if lexicon.start is None or lexicon.end is None:
            raise RegardError(f"{path}: the model does not say how its outputs begin and end.")
        self.start, self.end = lexicon.start, lexicon.end

    def summary(self) -> dict[str, Any]:
        """Which model it is."""
        return {
            "name": self.name, "kind": self.kind, "task": self.name,
            "model": str(self.subject.origin.get("model", "")), "seed": None, "group": self.name,
            "done": True, "checkpoints": [],
        }  # fmt: skip

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The subject's."""
        return self.subject.vocabularies

    def special(self, side: int) -> frozenset[str]:
        """Padding, start, end and languages, by the tokenizer's names."""
        lexicon = self.subject.lexicons["decoder" if side else "encoder"]
        return frozenset(lexicon.words[number] for number in lexicon.unspoken)

    def model(self, checkpoint: Checkpoint) -> Seq2Seq:
        """There is one."""
        return self.subject.model

    def reference(self, checkpoint: Checkpoint) -> Recording:
        """There are no sentences to take means over."""
        raise RegardError(
            "This model comes without sentences, so there are no means to take a score apart with."
            " Record some (regard.record(subject, pairs=…)) and open the recording."
        )

    def read(self, source: str, target: str | None) -> Batch:
        """By the tokenizer; without one, texts are numbers of words."""
        said = source if target is None else target
        pair: tuple[Any, Any] = (source, said)
        if getattr(getattr(self.subject, "tokens", None), "tokenizer", self) is None:
            pair = (_to_numbers(source), _to_numbers(said))
        (batch,) = self.subject.read([pair])
        return batch

    def number(self, word: str) -> int:
        """A piece by its name."""
        return self.subject.lexicons["decoder"].encode([word])[0]

    def examples(self) -> list[tuple[str, str]]:
        """None: nobody says what it was trained on."""
        return []

    def limit(self, source: int) -> tuple[int, bool]:
        """Every output ends by itself, or is cut."""
        return LONGEST, True


def _to_numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split()]
    except ValueError:
        raise RegardError(
            "This model came without a tokenizer, so a sentence is numbers of words: 12 7 3."
        ) from None
