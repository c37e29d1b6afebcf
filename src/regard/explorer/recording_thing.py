"""A recording to explore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.explorer.thing import Checkpoint, Thing, name_model
from regard.recordings import Recording, load_recording
from regard.subjects.lexicon import Lexicon


class RecordingThing(Thing):
    """A recording in a file: looked at as it is, nothing runs."""

    kind = "recording"

    def __init__(self, name: str, path: Path):
        super().__init__(name, path)
        self.recording = load_recording(path)
        self.maker: str | None = None  # the name of the thing whose model it was recorded from

    def summary(self) -> dict[str, Any]:
        """Where it comes from, and how long it is."""
        origin = self.recording.metadata.origin
        return {
            "name": self.name, "kind": self.kind, "task": str(origin.get("task", "")),
            "model": name_model(origin.get("model")), "samples": len(self.recording),
            "seed": origin.get("seed"), "group": str(origin.get("configuration", self.name)),
            "done": True, "checkpoints": [], "maker": self.maker,
        }  # fmt: skip

    def reference(self, checkpoint: Checkpoint) -> Recording:
        """The recording itself."""
        return self.recording

    def lexicon(self, side: int) -> Lexicon:
        """By the conventions that the recording has kept."""
        name = "decoder" if side else "encoder"
        said = self.recording.metadata.conventions.get(name)
        words = self.recording.words(name)
        return Lexicon.from_conventions(words, said) if said else super().lexicon(side)

    def special(self, side: int) -> frozenset[str]:
        """What is no word, by its name."""
        lexicon = self.lexicon(side)
        return self.vocabularies[side].special | {lexicon.words[n] for n in lexicon.unspoken}

    def spell(self, numbers: Sequence[int], side: int) -> str:
        """Words parted by spaces, pieces put together."""
        return " ".join(self.lexicon(side).spell(numbers))
