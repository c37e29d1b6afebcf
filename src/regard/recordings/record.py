"""One door to all adapters: `regard.record`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import numpy as np
from torch import nn

from regard.display.progress import make_bar
from regard.errors import RegardError, unknown
from regard.models.seq2seq import Seq2Seq
from regard.recordings.adapter import find_adapter
from regard.recordings.adapters._also import Also, read_also
from regard.recordings.adapters.arrays import record_arrays
from regard.recordings.adapters.model import Inputs, record_model
from regard.recordings.adapters.module import as_batch, record_module
from regard.recordings.recording import Recording
from regard.recordings.writer import Watch
from regard.runs import Run
from regard.subjects.subject import Native, Pair, Subject
from regard.tasks import EOS, SOS, Batch, CorpusTask, Task, Vocabulary, collate

INPUTS = get_args(Inputs)
# Options that are not of runs and models alone.
USED = {
    "arrays": {"out", "sites"},
    "a module": {"out", "batches", "gates", "also", "only", "watch"},
    "a subject": {
        "out", "batches", "pairs", "sites", "inputs", "gates", "also", "only", "watch",
    },
}  # fmt: skip
PIECE = 250  # samples that go through the model at once


def record(
    what: Run | str | Path | Subject | Seq2Seq | nn.Module | Mapping[str, Any],
    n: int = 1000,
    out: str | Path | None = None,
    inputs: Inputs | None = None,
    gates: bool = False,
    also: Also | Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    checkpoint: str | int = "reported",
    seed: int = 0,
    split: str | None = None,
    task: Task | None = None,
    pairs: Sequence[Pair] | None = None,
    batches: Iterable[Batch] | None = None,
    sites: str | Sequence[str] | Mapping[str, Any] | None = None,
    watch: Watch | None = None,
    **adapter: Any,
) -> Recording:
    """Record what a model does: its states, words, queries, keys, scores and weights.

    `what` is a run (or its folder), a subject (`hugging_face`, `module`, …) with `pairs` of
    sentences, of which a target may be None for the subject's own output; a model with Regard's
    interface and its `task` (or `pairs` of words or `batches`, and `vocabularies` unless the model
    has its own), any PyTorch module with `at`, `call` and `batches` (see `record_module`), or a
    mapping of arrays (see `record_arrays`). `n` fresh samples are drawn from the task with `seed`,
    or the rows of a `split` are taken (where a task has fixed rows, the one that it names, mostly
    `test`).

    `also` names what is recorded besides: `gates`; `values`, what each attention mixes;
    `states` of every layer, `encoder.layers.0`; and for every pair of words `lexical` (log β of
    snell2021), `proxy` (the same of a bag of words),
    `log_odds` of one target word (`{"log_odds": {"word": 3}}`) and `saliency`
    (`{"saliency": {"method": "integrated", "steps": 32}}`). `only` names the arrays to keep,
    `sites` the attentions: `"cross"`, `"decoder.3.cross"`, several as a list. `inputs` says what
    the decoder is fed: its `own` choices (by default, of runs and models) or the `teacher`'s words
    (of subjects). With `out`, the recording of a run, a model or a subject goes to that file piece
    by piece, whatever its size; without, it stays in memory.

    >>> recording = regard.record(run, n=1000, out="aed.safetensors")     # doctest: +SKIP
    """
    said = _changed({"n": n, "out": out, "inputs": inputs, "gates": gates, "also": also,
                     "only": only, "checkpoint": checkpoint, "seed": seed, "split": split,
                     "task": task, "pairs": pairs, "batches": batches, "sites": sites,
                     "watch": watch})  # fmt: skip
    if own := find_adapter(what):
        return own.record(what, **said, **adapter)
    path = _check_options(n, out, inputs, checkpoint, seed, split, watch)
    watch = watch or make_bar("samples")
    if isinstance(what, (str, Path)):
        what = Run.open(what)
    wanted = read_also(also, gates)
    if isinstance(what, Subject):
        _refuse_options(adapter, "a subject")
        _refuse_ignored("a subject", said)
        return record_subject(what, pairs, batches, sites, inputs, wanted, only, path, watch)
    inputs = inputs or "own"
    if isinstance(what, Run):
        _refuse_options(adapter, "a run")
        origin = describe_origin(what, checkpoint) | {
            "samples": {"n": n, "seed": seed, "split": split}
        }
        task, model = what.task(), what.model(checkpoint)
        vocabularies = task.source_vocabulary, task.target_vocabulary
        given = _make_batches(vocabularies, pairs, batches, task)
        source = draw_samples(task, n, seed, split) if given is None else given
        chosen = _choose_sites(model, vocabularies, sites)
        return record_model(
            model, source, vocabularies, origin, inputs, wanted, only, path, watch, chosen
        )
    if isinstance(what, Seq2Seq):
        vocabularies = _find_vocabularies(task, adapter.pop("vocabularies", None), what)
        origin = {
            "adapter": "model", "model": type(what).__name__, **(adapter.pop("origin", None) or {}),
        }  # fmt: skip
        _refuse_options(adapter, "a model")
        given = _make_batches(vocabularies, pairs, batches, task)
        source = draw_samples(_require_task(task), n, seed, split) if given is None else given
        chosen = _choose_sites(what, vocabularies, sites)
        return record_model(
            what, source, vocabularies, origin, inputs, wanted, only, path, watch, chosen
        )
    if isinstance(what, Mapping):
        _refuse_ignored("arrays", said)
        return record_arrays(what, sites=sites, out=path, **adapter)
    if isinstance(what, nn.Module):
        _refuse_ignored("a module", said)
        at, call = adapter.pop("at", {}), adapter.pop("call", None)
        return record_module(
            what, at, batches or (), call, out=path, also=wanted, only=only, **adapter
        )
    raise RegardError(
        f"A {type(what).__name__} cannot be recorded. Give a run, a model, a module or arrays."
    )


def _check_options(
    n: Any, out: Any, inputs: Any, checkpoint: Any, seed: Any, split: Any, watch: Any
) -> Path | None:
    """The file to write to, if all that was said is of the right kind; all faults at once."""
    faults = []
    for name, number, least in (("n", n, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
            faults.append(f"{name}={number!r} does not fit: a whole number, {least} or more.")
    if inputs not in (None, *INPUTS):
        faults.append(unknown("kind of inputs", str(inputs), INPUTS))
    if isinstance(checkpoint, bool) or not isinstance(checkpoint, (str, int, np.integer)):
        faults.append(f"checkpoint={checkpoint!r} does not fit: reported, last, best or a number.")
    if split is not None and not isinstance(split, str):
        faults.append(f"split={split!r} does not fit: it is the name of one.")
    if watch is not None and not callable(watch):
        faults.append(f"watch={watch!r} does not fit: it is a function.")
    if not (out is None or isinstance(out, (str, Path))):
        faults.append(f"out={out!r} does not fit: it is the path of a file.")
    elif out is not None and Path(out).is_dir():
        faults.append(f"out={out} is a folder. Give the path of a file.")
    if faults:
        raise RegardError(*faults)
    return None if out is None else Path(out)


def _refuse_ignored(kind: str, said: Mapping[str, Any]) -> None:
    """Options that say how a run is recorded mean nothing for what is not one."""
    ignored = [name for name in said if name not in USED[kind]]
    if ignored:
        names = " and ".join(f"{name}=" for name in ignored)
        raise RegardError(
            f"{names} says how a run is recorded, but {kind} was given. Leave it out."
        )


def record_subject(
    subject: Subject,
    pairs: Sequence[Pair] | None,
    batches: Iterable[Batch] | None = None,
    sites: Any = None,
    inputs: Inputs | None = None,
    also: Also | None = None,
    only: Sequence[str] | None = None,
    out: Path | None = None,
    watch: Watch | None = None,
) -> Recording:
    """What a subject does with sentence pairs, in a forced pass by default."""
    if batches is None and not pairs:
        raise RegardError(
            "A subject needs something to read: pairs=[(source, target), …], where a target may be"
            " None for the subject's own output."
        )
    given = (
        [as_batch(b) for b in batches] if batches is not None else subject.read(list(pairs or ()))
    )
    if given:
        subject.prepare(given[0])
    chosen = None if sites is None else subject.choose_sites(sites)
    origin = {**subject.origin, "parity": subject.parity}
    return record_model(
        subject.model, given, subject.vocabularies, origin, inputs or subject.inputs, also, only,  # type: ignore[arg-type]
        out, watch, chosen, subject.conventions,
    )  # fmt: skip


def _choose_sites(
    model: Seq2Seq, vocabularies: tuple[Vocabulary, Vocabulary], sites: Any
) -> list[str] | None:
    """The attentions of a model that some names mean."""
    return None if sites is None else Native(model, vocabularies, lambda _: []).choose_sites(sites)


def _changed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `record` that are not as they are by default."""
    defaults = {name: p.default for name, p in signature(record).parameters.items()}
    return {name: value for name, value in given.items() if value is not defaults[name]}


def describe_origin(run: Run, checkpoint: str | int) -> dict[str, Any]:
    """Where a recording of a run comes from; runs that differ in their seed alone agree in all
    but the run, its seed and its weights."""
    config = run.config
    return {
        "adapter": "run", "run": run.folder.name, "task": config.task_name,
        "model": config.model.model_dump(mode="json"), "seed": config.seed,
        "configuration": config.configuration, "checkpoint": checkpoint,
        "weights": run.weights(checkpoint),
    }  # fmt: skip


def _refuse_options(adapter: Mapping[str, Any], what: str) -> None:
    """A misspelled option is a fault, not something to pass over."""
    known = {*signature(record).parameters, "vocabularies", "origin"} - {"what", "adapter"}
    if adapter:
        raise RegardError(*(unknown(f"option for recording {what}", o, known) for o in adapter))


def draw_samples(task: Task, n: int, seed: int = 0, split: str | None = None) -> Iterator[Batch]:
    """`n` samples of a task in pieces: a function of the arguments."""
    if n < 1:
        raise RegardError(f"n={n} does not fit: record 1 sample or more.")
    if split is None and isinstance(task, CorpusTask):
        split = task.default_split  # such a task has no fresh examples
    if split is not None and split not in task.splits:
        raise RegardError(f"The task has no split '{split}'. It has: {', '.join(task.splits)}.")
    if split is not None:
        return task.split(split)[:n].pieces(PIECE)
    starts = enumerate(range(0, n, PIECE))
    return (task.fresh(min(PIECE, n - start), seed, number) for number, start in starts)


def _make_batches(
    vocabularies: tuple[Vocabulary, Vocabulary],
    pairs: Sequence[Pair] | None,
    batches: Iterable[Batch] | None,
    task: Task | None,
) -> Iterable[Batch] | None:
    """The batches that were given, or made of pairs of words; None where neither was."""
    if batches is not None or pairs is None:
        return batches
    source, target = vocabularies
    start = [SOS] if task is not None and task.starts else []
    end = [EOS] if target.ends and (task is None or task.ends) else []
    source_end = [EOS] if source.ends else []
    whole = collate(
        [[*start, *source.encode(words), *source_end] for words, _ in pairs],
        [[*target.encode(words or ()), *end] for _, words in pairs],
    )
    return whole.pieces(PIECE)


def _find_vocabularies(
    task: Task | None, given: Any, model: Seq2Seq
) -> tuple[Vocabulary, Vocabulary]:
    if given is not None:
        return given[0], given[1]
    source, target = (getattr(model, f"{side}_vocabulary", None) for side in ("source", "target"))
    if task is None and isinstance(source, Vocabulary) and isinstance(target, Vocabulary):
        return source, target
    task = _require_task(task)
    return task.source_vocabulary, task.target_vocabulary


def _require_task(task: Task | None) -> Task:
    if task is None:
        raise RegardError(
            "A model alone does not know what to read. Give task=, or pairs= or batches= (and"
            " vocabularies=, unless the model has its own)."
        )
    return task
