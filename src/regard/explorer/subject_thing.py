"""Models that others made, from a folder of `transformers` or of CTranslate2."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.explorer.memory import Kept
from regard.explorer.thing import FEW, Checkpoint, LiveThing, count_samples
from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording, record
from regard.subjects.formats.ctranslate2 import ctranslate2
from regard.subjects.hugging_face.door import hugging_face
from regard.subjects.lexicon import Lexicon
from regard.subjects.subject import Subject
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary

LONGEST = 128  # pieces that are put out at most
SHOWN = 100  # sentences that a person may choose from
NO_MEANS = (
    "This model comes without sentences, so there are no means to take states and scores apart"
    " with. Give some, a line each (`regard explore FOLDER --sentences FILE`), or open a recording"
    " of it beside it."
)


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds a model of others: its configuration says which, or its weights."""
    if (path / "model.bin").is_file() and not (path / "pytorch_model.bin").is_file():
        return True
    try:
        data = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and "model_type" in data


def open_subject(path: Path) -> Subject:
    """The subject in a folder."""
    return ctranslate2(path) if (path / "model.bin").is_file() else hugging_face(path)


def read_sentences(path: Path, most: int) -> list[tuple[str, str | None]]:
    """A sentence per line and, after a tab, its translation; without one, the model's own."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"{path} cannot be read as lines of text: {error}.") from None
    parted = [line.partition("\t") for line in lines if line.strip()]
    found = [(source.strip(), target.strip() or None) for source, _, target in parted[:most]]
    if not found:
        raise RegardError(f"There is no sentence in {path}. Write one on each line.")
    return found


class SubjectThing(LiveThing):
    """A subject: the words are its tokenizer's; means are over sentences that were given."""

    kind = "model"

    def __init__(
        self,
        name: str,
        path: Path,
        samples: int,
        sentences: Path | None = None,
        subject: Subject | None = None,
    ):
        super().__init__(name, path)
        self.subject = subject or open_subject(path)
        self.samples, self.given = samples, sentences
        self.sentences = [] if sentences is None else read_sentences(sentences, samples)
        self.recording: Recording | None = None  # one that was opened beside,
        self.recorded: Path | None = None  # from this file
        self.references: Kept[Recording] = Kept(1)
        lexicon = self.subject.lexicons["decoder"]
        if lexicon.start is None or lexicon.end is None:
            raise RegardError(f"{path}: the model does not say how its outputs begin and end.")
        self.start, self.end = lexicon.start, lexicon.end
        self.forced_first = self.subject.forced_first

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

    def lexicon(self, side: int) -> Lexicon:
        """The tokenizer's."""
        return self.subject.lexicons["decoder" if side else "encoder"]

    def special(self, side: int) -> frozenset[str]:
        """Padding, start, end and languages, by the tokenizer's names."""
        lexicon = self.lexicon(side)
        return frozenset(lexicon.words[number] for number in lexicon.unspoken)

    def model(self, checkpoint: Checkpoint) -> Seq2Seq:
        """There is one."""
        return self.subject.model

    @property
    def lacks_means(self) -> str:  # type: ignore[override]
        """A sentence where neither sentences were given nor a recording stands beside."""
        return "" if self.sentences or self.recording is not None else NO_MEANS

    def reference(self, checkpoint: Checkpoint) -> Recording:
        """The recording that was opened beside, or one of the sentences that were given."""
        if self.recording is not None:
            return self.recording
        if self.lacks_means:
            raise RegardError(self.lacks_means)
        return self.references.get("reference", self._record)

    def _record(self) -> Recording:
        with self.lock:
            few = record(self.subject, pairs=self.sentences[:FEW], also=["values"])
            n = count_samples(few, len(self.sentences))
            return record(self.subject, pairs=self.sentences[:n], also=["values"])

    def read(self, source: str, target: str | None) -> Batch:
        """By the tokenizer; without one, texts are numbers of words."""
        said = source if target is None else target  # a target that nobody reads
        pair: tuple[Any, Any] = (source, said)
        if getattr(getattr(self.subject, "tokens", None), "tokenizer", self) is None:
            pair = (_to_numbers(source), _to_numbers(said))
        elif target is None and not hasattr(self.subject, "tokens"):
            pair = (source, [self.end])  # pieces of the source need not be pieces of the target
        (batch,) = self.subject.read([pair])
        return batch

    def number(self, word: str) -> int:
        """A piece by its name."""
        return self.subject.lexicons["decoder"].encode([word])[0]

    def spell(self, numbers: Sequence[int], side: int) -> str:
        """By the tokenizer's names: pieces put together where it takes texts."""
        lexicon = self.lexicon(side)
        if getattr(getattr(self.subject, "tokens", None), "tokenizer", None) is not None:
            return " ".join(lexicon.spell(numbers))
        return " ".join(lexicon.words[n] for n in numbers if n not in lexicon.unspoken)

    def examples(self) -> list[tuple[str, str]]:
        """What was given, or what the recording beside it has."""
        if self.sentences:
            return [(source, target or "") for source, target in self.sentences[:SHOWN]]
        if self.recording is None:
            return []
        words, mask = (self.recording.storage.read(f"encoder.{what}", 0, SHOWN)
                       for what in ("words", "mask"))  # fmt: skip
        rows = zip(words, mask, strict=True)
        return [(self.spell(row[there].tolist(), 0), "") for row, there in rows]

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
