"""A model that is ready to be recorded: all that is said of it, but for the samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.models.seq2seq import Seq2Seq
from regard.recordings.adapters._also import Also
from regard.recordings.adapters.model import Inputs, record_model
from regard.recordings.recording import Recording
from regard.recordings.writer import Watch
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary


@dataclass(frozen=True)
class Recorder:
    """What `record_model` is told, whichever samples are put to the model."""

    model: Seq2Seq
    vocabularies: tuple[Vocabulary, Vocabulary]
    origin: dict[str, Any]
    inputs: Inputs = "own"
    also: Also = field(default_factory=dict)
    only: Sequence[str] | None = None
    sites: Collection[str] | None = None
    conventions: Mapping[str, dict[str, Any]] | None = None

    def record(
        self,
        batches: Iterable[Batch],
        out: Path | None = None,
        watch: Watch | None = None,
        rows: tuple[int, int] | None = None,
        shard: Mapping[str, Any] | None = None,
    ) -> Recording:
        """What the model does with some batches, or with some `rows` of them, as a `shard`."""
        origin = self.origin if shard is None else {**self.origin, "shard": dict(shard)}
        return record_model(
            self.model, batches, self.vocabularies, origin, self.inputs, self.also, self.only,
            out, watch, self.sites, self.conventions, rows,
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """What tells its recordings from those of others, in plain data."""
        sites = None if self.sites is None else sorted(self.sites)
        only = None if self.only is None else list(self.only)
        also = {name: dict(how) for name, how in self.also.items()}
        said = {"inputs": self.inputs, "also": also, "only": only, "sites": sites}
        known = "weights" in self.origin
        return {**self.origin, **said} | ({} if known else {"weights": self.hash_weights()})

    def hash_weights(self) -> str:
        """The hash of all numbers of the model."""
        found = sha256()
        for name, tensor in self.model.state_dict().items():
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
        return found.hexdigest()
