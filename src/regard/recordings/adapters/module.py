"""The adapter for any PyTorch module: name where its states, queries and keys are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.errors import RegardError
from regard.recordings.adapters._also import Also
from regard.recordings.adapters.model import record_model
from regard.recordings.recording import Recording
from regard.subjects.modules.at import At
from regard.subjects.modules.door import PLACES, ModuleSubject, module
from regard.subjects.modules.model import Call
from regard.tasks import Batch

PARTS = {"queries": "q", "keys": "k", "values": "v", "weights": "weights", "scores": "scores"}


def record_module(
    net: nn.Module,
    at: Mapping[str, str],
    batches: Iterable[Batch],
    call: Call | None = None,
    source_words: Sequence[str] | None = None,
    target_words: Sequence[str] | None = None,
    readout: nn.Linear | Tensor | None = None,
    readout_parts: Mapping[str, tuple[int, int]] | None = None,
    scorer: str = "dot",
    time_first: Collection[str] = (),
    out: Path | None = None,
    also: Also | None = None,
    only: Sequence[str] | None = None,
) -> Recording:
    """Run a module on batches and keep what passes some of its submodules.

    The short way to `regard.module` for one attention with one head: `at` says where
    `encoder.states`, `decoder.states`, `queries`, `keys`, `values`, `weights` and `logits` are.
    Where time is, is decided once for all batches. Nothing is invented: without queries and keys
    there is no attention.
    """
    subject = make_subject(net, at, call, source_words, target_words, readout, readout_parts,
                           scorer, time_first)  # fmt: skip
    kept = [as_batch(batch) for batch in batches]
    if not kept:
        raise RegardError("There is nothing to record: no batches were given.")
    origin = {**subject.origin, "at": dict(at)}
    return record_model(
        subject.model, kept, subject.vocabularies, origin, "teacher", also, only, out,
        conventions=subject.conventions,
    )  # fmt: skip


def make_subject(
    net: nn.Module,
    at: Mapping[str, str],
    call: Call | None,
    source_words: Sequence[str] | None,
    target_words: Sequence[str] | None,
    readout: nn.Linear | Tensor | None,
    readout_parts: Mapping[str, tuple[int, int]] | None,
    scorer: str,
    time_first: Collection[str],
) -> ModuleSubject:
    """The subject that a mapping from arrays to places means."""
    parts = {PARTS[name]: where for name, where in at.items() if name in PARTS}
    strange = [name for name in at if name not in PARTS and name not in PLACES]
    known = ", ".join((*PLACES, *PARTS))
    if strange:
        raise RegardError(*(f"Unknown array '{name}'. Known: {known}." for name in strange))
    if ("q" in parts) != ("k" in parts):
        raise RegardError("Give both queries and keys, or none of these.")
    sites = {}
    if parts and scorer != "none":
        sites["attention"] = At(**parts, score=scorer, projected="v" in parts)  # type: ignore[arg-type]
    places = {name: where for name, where in at.items() if name in PLACES}
    return module(
        net, call, places=places, sites=sites, source_words=source_words,
        target_words=target_words, readout=readout, readout_parts=readout_parts,
        time_first=time_first,
    )  # fmt: skip


def as_batch(batch: Any) -> Batch:
    """A batch, or a pair or mapping of source and target, padded with 0."""
    if isinstance(batch, Batch):
        return batch
    if isinstance(batch, Mapping):
        missing = [name for name in ("source", "target") if name not in batch]
        if missing:
            raise RegardError(f"A batch has no '{missing[0]}'. Give source and target.")
        batch = (batch["source"], batch["target"])
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise RegardError("A batch is a Batch, a pair (source, target), or a mapping with these.")
    source, target = batch
    return Batch(source, (source != 0).sum(1), target, (target != 0).sum(1))
