"""One door to all adapters: `regard.record`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import RegardError, unknown
from regard.models import Seq2Seq
from regard.recordings.arrays import record_arrays
from regard.recordings.gather import Watch
from regard.recordings.module import Call, record_module
from regard.recordings.native import Batches, Inputs, record_model
from regard.recordings.recording import Recording
from regard.runs import Run
from regard.tasks import EOS, SOS, Batch, CorpusTask, Task, Vocabulary, collate

PIECE = 250  # samples that go through the model at once


def record(
    what: Run | str | Path | Seq2Seq | nn.Module | Mapping[str, Any],
    n: int = 1000,
    out: str | Path | None = None,
    inputs: Inputs = "own",
    gates: bool = False,
    checkpoint: str | int = "reported",
    seed: int = 0,
    split: str | None = None,
    task: Task | None = None,
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]] | None = None,
    batches: Iterable[Batch] | None = None,
    watch: Watch | None = None,
    **adapter: Any,
) -> Recording:
    """Record what a model does: its states, words, queries, keys, scores and weights.

    `what` is a run (or its folder), a model with Regard's interface and its `task` (or `pairs` of
    words or `batches`, and `vocabularies` unless the model has its own), any PyTorch module with
    `at`, `call` and `batches` (see `record_module`), or a mapping of arrays (see
    `record_arrays`). `n` fresh samples are drawn from the task with `seed`, or the rows of a
    `split` are taken (where a task has fixed rows, the one that it names, mostly `test`). With
    `out`, the recording of a run or model goes to that file piece by piece, whatever its size;
    without, it stays in memory.

    >>> recording = regard.record(run, n=1000, out="aed.safetensors")     # doctest: +SKIP
    """
    path = None if out is None else Path(out)
    if isinstance(what, (str, Path)):
        what = Run.open(what)
    if isinstance(what, Run):
        _no_more(adapter, "a run")
        model, task = what.model(checkpoint), what.task()
        origin = {
            "adapter": "run", "run": what.folder.name, "task": what.config.task_name,
            "model": what.config.model.model_dump(), "seed": what.config.seed,
            "checkpoint": checkpoint, "weights": what.weights(checkpoint),
            "samples": {"n": n, "seed": seed, "split": split},
        }  # fmt: skip
        vocabularies = task.source_vocabulary, task.target_vocabulary
        source = samples(task, n, seed, split)
        return record_model(model, source, vocabularies, origin, inputs, gates, path, watch)
    if isinstance(what, Seq2Seq):
        vocabularies = _vocabularies(task, adapter.pop("vocabularies", None), what)
        origin = {
            "adapter": "model", "model": type(what).__name__, **(adapter.pop("origin", None) or {}),
        }  # fmt: skip
        _no_more(adapter, "a model")
        source = _given(vocabularies, pairs, batches, task) or samples(
            _needed(task), n, seed, split
        )
        return record_model(what, source, vocabularies, origin, inputs, gates, path, watch)
    if isinstance(what, Mapping):
        return record_arrays(what, out=path, **adapter)
    if isinstance(what, nn.Module):
        call: Call = adapter.pop("call", _call)
        return record_module(what, adapter.pop("at", {}), batches or (), call, out=path, **adapter)
    raise RegardError(
        f"A {type(what).__name__} cannot be recorded. Give a run, a model, a module or arrays."
    )


def _no_more(adapter: Mapping[str, Any], what: str) -> None:
    """A misspelled option is a fault, not something to pass over."""
    known = ["n", "out", "inputs", "gates", "checkpoint", "seed", "split", "task", "pairs",
             "batches", "vocabularies", "origin"]  # fmt: skip
    if adapter:
        raise RegardError(*(unknown(f"option for recording {what}", o, known) for o in adapter))


def samples(task: Task, n: int, seed: int, split: str | None) -> Batches:
    """`n` samples of a task in pieces, the same each time they are asked for."""
    if n < 1:
        raise RegardError(f"n={n} does not fit: record 1 sample or more.")
    if split is None and isinstance(task, CorpusTask):
        split = task.looked_at  # such a task has no fresh examples
    if split is not None and split not in task.splits:
        raise RegardError(f"The task has no split '{split}'. It has: {', '.join(task.splits)}.")

    def pieces() -> Iterator[Batch]:
        if split is not None:
            yield from task.split(split)[:n].pieces(PIECE)
            return
        for number, start in enumerate(range(0, n, PIECE)):
            yield task.fresh(min(PIECE, n - start), seed, number)

    return pieces


def _given(
    vocabularies: tuple[Vocabulary, Vocabulary],
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]] | None,
    batches: Iterable[Batch] | None,
    task: Task | None,
) -> Batches | None:
    if batches is not None:
        kept = list(batches)
        return lambda: iter(kept)
    if pairs is None:
        return None
    source, target = vocabularies
    start = [SOS] if task is not None and task.starts else []
    end = [EOS] if target.ends and (task is None or task.ends) else []
    source_end = [EOS] if source.ends else []
    whole = collate(
        [[*start, *source.encode(words), *source_end] for words, _ in pairs],
        [[*target.encode(words), *end] for _, words in pairs],
    )
    return lambda: whole.pieces(PIECE)


def _vocabularies(task: Task | None, given: Any, model: Seq2Seq) -> tuple[Vocabulary, Vocabulary]:
    if given is not None:
        return given[0], given[1]
    source, target = (getattr(model, f"{side}_vocabulary", None) for side in ("source", "target"))
    if task is None and isinstance(source, Vocabulary) and isinstance(target, Vocabulary):
        return source, target
    task = _needed(task)
    return task.source_vocabulary, task.target_vocabulary


def _needed(task: Task | None) -> Task:
    if task is None:
        raise RegardError(
            "A model alone does not know what to read. Give task=, or pairs= or batches= (and"
            " vocabularies=, unless the model has its own)."
        )
    return task


def _call(module: nn.Module, batch: Batch) -> Any:
    """How a module is run unless told otherwise: on source and fed words."""
    return module(batch.source, batch.inputs)
