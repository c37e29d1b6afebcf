"""The weight matrices of a model by name, as the instruments of weights read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from regard.errors import RegardError, unknown
from regard.instruments.sources import Runs, Settings
from regard.models.blocks import blocks_of
from regard.recordings.recording import as_array
from regard.recordings.storage import Array
from regard.subjects.subject import Subject


@dataclass(frozen=True)
class Blocks:
    """The matrices of one model, and the words that its vocabularies have, where known."""

    arrays: dict[str, Array]  # (to, from)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # block -> words of its rows
    of: Any = None  # the run, module or mapping

    def __getitem__(self, name: str) -> Array:
        if name not in self.arrays:
            raise RegardError(unknown("block of weights", name, self.arrays))
        return self.arrays[name]

    def under(self, name: str) -> list[str]:
        """The block of that name, or all whose names begin so: `encoder.0.W_hh`."""
        if name in self.arrays:
            return [name]
        found = [block for block in self.arrays if block.startswith(f"{name}.")]
        if not found:
            raise RegardError(unknown("block of weights", name, self.arrays))
        return found

    def first(self, *names: str) -> str:
        """The first of some names that is there, or the first block of all."""
        if not self.arrays:
            raise RegardError("There are no weights to look at: the model has no matrix.")
        return next((name for name in names if name in self.arrays), next(iter(self.arrays)))

    def rows(self, name: str) -> tuple[str, ...]:
        """What the rows of a block are: words where known, else numbers."""
        count = len(self[name])
        words = self.words.get(name, ())
        return words if len(words) == count else tuple(map(str, range(count)))


class Matrices(Runs):
    """Weight matrices: of a run, of a PyTorch module, or a mapping from names to matrices."""

    options = {"checkpoint": int | str}
    noun = "models"
    wants = "Give a run, its folder, a PyTorch module, or a mapping from names to matrices."

    def is_single(self, things: Any) -> bool:
        """Some modules can be gone through, but they are one model."""
        return isinstance(things, nn.Module) or super().is_single(things)

    def open(self, thing: Any, settings: Settings, options: Settings) -> Blocks:
        """The matrices, by name."""
        if isinstance(thing, Subject):
            return Blocks(_to_arrays(thing.blocks()), of=thing)
        if isinstance(thing, nn.Module):
            return Blocks(_to_arrays(blocks_of(thing)), of=thing)
        if isinstance(thing, Mapping):
            return Blocks(_check(_to_arrays(thing)), of=thing)
        run = super().open(thing, settings, {})
        task = run.task()
        target = task.target_vocabulary.words
        words = {"encoder.embedding": task.source_vocabulary.words}
        words |= dict.fromkeys(["decoder.embedding", "readout"], target)
        return Blocks(_to_arrays(run.model(**options).blocks()), words, run)

    def identify(self, source: Blocks) -> tuple[Any, Any]:
        """That of the run, where it is one's."""
        return super().identify(source.of)


def _to_arrays(matrices: Mapping[str, Any]) -> dict[str, Array]:
    return {name: as_array(values) for name, values in matrices.items()}


def _check(arrays: dict[str, Array]) -> dict[str, Array]:
    faults = [
        f"'{name}' has the shape {array.shape}, but a block of weights has two axes."
        for name, array in arrays.items()
        if array.ndim != 2
    ]
    if faults:
        raise RegardError(*faults)
    return arrays
