"""One door to all adapters: `regard.record`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import numpy as np
from torch import nn

from regard.display.progress import make_bar
from regard.errors import RegardError, kind_of, unknown
from regard.models.seq2seq import Seq2Seq
from regard.recordings.adapter import find_adapter
from regard.recordings.adapters._also import Also, read_also
from regard.recordings.adapters.arrays import record_arrays
from regard.recordings.adapters.model import Inputs
from regard.recordings.adapters.module import as_batch, record_module
from regard.recordings.of_run import (
    Asked,
    choose_sites,
    make_batches,
    prepare_run,
    record_run_in_shards,
)
from regard.recordings.recorder import Recorder
from regard.recordings.recording import Recording
from regard.recordings.samples import Pieces
from regard.recordings.samples import draw_samples as draw_samples
from regard.recordings.sharding import Plan, record_shards
from regard.recordings.writer import Watch
from regard.runs import Run
from regard.subjects.subject import Pair, Subject
from regard.tasks import Batch, Task, Vocabulary

INPUTS = get_args(Inputs)
# Options that are not of runs and models alone.
USED = {
    "arrays": {"out", "sites"},
    "a module": {"out", "batches", "gates", "also", "only", "watch"},
    "a subject": {
        "out", "batches", "pairs", "sites", "inputs", "gates", "also", "only", "watch", "shards",
    },
}  # fmt: skip


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
    shards: int | None = None,
    jobs: int | None = None,
    on: str | None = None,
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
    by piece, whatever its size; without, it stays in memory. With `shards`, `out` is a folder of so
    many files, made by `jobs` processes where a run is recorded (by default, one a core), or by the
    nodes of a cluster (`on="ray"`); what was interrupted goes on with the files that are there.

    >>> recording = regard.record(run, n=1000, out="aed.safetensors")     # doctest: +SKIP
    """
    said = _changed({"n": n, "out": out, "inputs": inputs, "gates": gates, "also": also,
                     "only": only, "checkpoint": checkpoint, "seed": seed, "split": split,
                     "task": task, "pairs": pairs, "batches": batches, "sites": sites,
                     "watch": watch, "shards": shards, "jobs": jobs, "on": on})  # fmt: skip
    if own := find_adapter(what):
        return own.record(what, **said, **adapter)
    path = _check_options(n, out, inputs, checkpoint, seed, split, watch, shards, jobs)
    if on is not None and shards is None:
        raise RegardError("on is for recordings in shards: give shards=N, too.")
    watch = watch or make_bar("samples")
    if isinstance(what, (str, Path)):
        what = Run.open(what)
    wanted = read_also(also, gates)
    if isinstance(what, Subject):
        _refuse_options(adapter, "a subject")
        _refuse_ignored("a subject", said)
        ready = prepare_subject(what, pairs, batches, sites, inputs, wanted, only)
        return _record(*ready, path, watch, shards)
    inputs = inputs or "own"
    if isinstance(what, Run):
        _refuse_options(adapter, "a run")
        asked = Asked(n, inputs, wanted, only, checkpoint, seed, split, sites)
        if shards is not None and path is not None and pairs is None and batches is None:
            return record_run_in_shards(what, asked, shards, jobs, path, watch, on)
        return _record(*prepare_run(what, asked, pairs, batches), path, watch, shards)
    if isinstance(what, Seq2Seq):
        vocabularies = _find_vocabularies(task, adapter.pop("vocabularies", None), what)
        origin = {
            "adapter": "model", "model": type(what).__name__, **(adapter.pop("origin", None) or {}),
        }  # fmt: skip
        _refuse_options(adapter, "a model")
        given = make_batches(vocabularies, pairs, batches, task)
        if given is None:
            pieces = draw_samples(_require_task(task), n, seed, split)
        else:
            pieces = Pieces.of(given)
        chosen = choose_sites(what, vocabularies, sites)
        recorder = Recorder(what, vocabularies, origin, inputs, wanted, only, chosen)
        return _record(recorder, pieces, path, watch, shards)
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
        f"{kind_of(what)} cannot be recorded. Give a run, a model, a module or arrays."
    )


def _check_options(
    n: Any, out: Any, inputs: Any, checkpoint: Any, seed: Any, split: Any, watch: Any,
    shards: Any, jobs: Any,
) -> Path | None:  # fmt: skip
    """Where to write, if all that was said is of the right kind; all faults at once."""
    faults = []
    numbers = [("n", n, 1), ("seed", seed, 0)]
    numbers += [(k, v, 1) for k, v in (("shards", shards), ("jobs", jobs)) if v is not None]
    for name, number, least in numbers:
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
    elif out is not None and shards is None and Path(out).is_dir():
        faults.append(f"out={out} is a folder. Give the path of a file.")
    elif shards is not None and (out is None or Path(out).is_file()):
        faults.append("Shards are files in a folder: give out=FOLDER.")
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


def prepare_subject(
    subject: Subject,
    pairs: Sequence[Pair] | None,
    batches: Iterable[Batch] | None,
    sites: Any,
    inputs: Inputs | None,
    also: Also,
    only: Sequence[str] | None,
) -> tuple[Recorder, Pieces]:
    """A subject, ready to be recorded, and what it reads; in a forced pass by default."""
    if batches is None and not pairs:
        raise RegardError(
            "A subject needs something to read: pairs=[(source, target), …], where a target may be"
            " None for the subject's own output."
        )
    for number, pair in enumerate(pairs or ()):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise RegardError(
                f"pairs[{number}] is no pair. Give (source, target); a target may be None."
            )
    given = (
        [as_batch(b) for b in batches] if batches is not None else subject.read(list(pairs or ()))
    )
    if given:
        subject.prepare(given[0])
    chosen = None if sites is None else subject.choose_sites(sites)
    origin = {**subject.origin, "parity": subject.parity}
    fed: Any = inputs or subject.inputs
    return Recorder(
        subject.model, subject.vocabularies, origin, fed, also, only, chosen, subject.conventions
    ), Pieces.of(given)


def _record(
    recorder: Recorder, pieces: Pieces, path: Path | None, watch: Watch | None, shards: int | None
) -> Recording:
    """Record in memory, into one file, or into so many in a folder."""
    if shards is None or path is None:
        return recorder.record(pieces, path, watch)
    of = {**recorder.describe(), "samples": pieces.digest()}
    return record_shards(Plan(recorder, pieces, shards, path, of), 1, watch)


def _changed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `record` that are not as they are by default."""
    defaults = {name: p.default for name, p in signature(record).parameters.items()}
    return {name: value for name, value in given.items() if value is not defaults[name]}


def _refuse_options(adapter: Mapping[str, Any], what: str) -> None:
    """A misspelled option is a fault, not something to pass over."""
    known = {*signature(record).parameters, "vocabularies", "origin"} - {"what", "adapter"}
    if adapter:
        raise RegardError(*(unknown(f"option for recording {what}", o, known) for o in adapter))


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
