"""How a run is recorded: what may be asked for, and the same in shards, by several processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.models.seq2seq import Seq2Seq
from regard.recordings.adapters._also import Also
from regard.recordings.adapters.model import Inputs
from regard.recordings.recorder import Recorder
from regard.recordings.recording import Recording
from regard.recordings.samples import PIECE, Pieces, draw_samples
from regard.recordings.sharding import Apart, Plan, record_shards
from regard.recordings.writer import Watch
from regard.runs import Run
from regard.runs.members import environment_for, is_portable, modules_of
from regard.runs.parcels import files_of
from regard.runs.pool import Needs
from regard.runs.where import choose_place
from regard.subjects.subject import Native, Pair
from regard.tasks import EOS, SOS, Batch, Task, Vocabulary, collate


@dataclass(frozen=True)
class Asked:
    """What is asked of a run, in plain data: see `record`."""

    n: int = 1000
    inputs: Inputs = "own"
    also: Also = field(default_factory=dict)
    only: Sequence[str] | None = None
    checkpoint: str | int = "reported"
    seed: int = 0
    split: str | None = None
    sites: Any = None


def prepare_run(
    run: Run,
    asked: Asked,
    pairs: Sequence[Pair] | None = None,
    batches: Iterable[Batch] | None = None,
) -> tuple[Recorder, Pieces]:
    """A run, ready to be recorded, and what it reads."""
    samples = {"n": asked.n, "seed": asked.seed, "split": asked.split}
    origin = describe_origin(run, asked.checkpoint) | {"samples": samples}
    task, model = run.task(), run.model(asked.checkpoint)
    vocabularies = task.source_vocabulary, task.target_vocabulary
    given = make_batches(vocabularies, pairs, batches, task)
    if given is None:
        source = draw_samples(task, asked.n, asked.seed, asked.split)
    else:
        source = Pieces.of(given)
    chosen = choose_sites(model, vocabularies, asked.sites)
    return Recorder(
        model, vocabularies, origin, asked.inputs, asked.also, asked.only, chosen
    ), source


def plan_run(run: Run, asked: Asked, shards: int, folder: Path) -> Plan:
    """A run's recording in shards."""
    recorder, pieces = prepare_run(run, asked)
    return Plan(recorder, pieces, shards, folder, recorder.describe())


def record_run_in_shards(
    run: Run,
    asked: Asked,
    shards: int,
    jobs: int | None,
    folder: Path,
    watch: Watch | None,
    on: str | None = None,
) -> Recording:
    """What a run does, in shards, by several processes or a cluster where they can make it."""
    apart, place = None, choose_place(on)
    if is_portable(run.config):
        order = {
            "run": str(run.folder.absolute()), "asked": json.dumps(asdict(asked)),
            "shards": shards, "folder": str(folder.absolute()),
        }  # fmt: skip
        files = [run.folder / "config.json", *files_of(run.config)]
        needs = Needs(folder, files, modules_of([run.config]))
        apart = Apart(order, environment_for([run.config]), needs, place)
    return record_shards(plan_run(run, asked, shards, folder), jobs, watch, apart)


def read_plan(order: Mapping[str, Any]) -> Plan:
    """What a worker process is told."""
    asked = Asked(**json.loads(order["asked"]))
    return plan_run(Run.open(order["run"]), asked, order["shards"], Path(order["folder"]))


def choose_sites(
    model: Seq2Seq, vocabularies: tuple[Vocabulary, Vocabulary], sites: Any
) -> list[str] | None:
    """The attentions of a model that some names mean."""
    return None if sites is None else Native(model, vocabularies, lambda _: []).choose_sites(sites)


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


def make_batches(
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
