"""`regard.evaluate` and `regard.predict`: on a run, or on a model and its task."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from regard.errors import RegardError, kind_of
from regard.models.seq2seq import Seq2Seq
from regard.runs.run import Run
from regard.tasks.batch import Batch
from regard.tasks.task import Task
from regard.training import evaluation

WANTS = "Give a run, or a model with its task and a batch, e.g. run.task().split('test')."


def evaluate(
    what: Run | Seq2Seq,
    task: Task | None = None,
    batch: Batch | None = None,
    split: str = "test",
    **options: Any,
) -> dict[str, float]:
    """Metrics over a held-out batch: of a run's model, by default on its task's `test`.

    Metrics and options are those of `regard.training.evaluate`.

    >>> regard.evaluate(run)["accuracy"]                           # doctest: +SKIP
    >>> regard.evaluate(model, task, task.split("validation"))     # doctest: +SKIP
    """
    model, task = _open(what, task)
    if task is None:
        raise RegardError(f"A model alone does not know what is right. {WANTS}")
    return evaluation.evaluate(model, task, _choose(batch, task, split), **options)


def predict(
    what: Run | Seq2Seq, batch: Batch | None = None, ends: bool | None = None, split: str = "test"
) -> Tensor:
    """What a model says when it runs freely. -> (batch, at most target + margin)

    Given a run, by default on its task's `test`; given a model, on a batch.
    """
    model, task = _open(what, None)
    if ends is None:
        ends = True if task is None else task.ends
    return evaluation.predict(model, _choose(batch, task, split), ends)


def _open(what: Any, task: Task | None) -> tuple[Seq2Seq, Task | None]:
    """The model and, of a run, its task."""
    if isinstance(what, Run):
        return what.model(), what.task() if task is None else _require_task(task)
    if isinstance(what, Seq2Seq):
        return what, None if task is None else _require_task(task)
    raise RegardError(f"{kind_of(what)} is not a run or a model. {WANTS}")


def _require_task(task: Any) -> Task:
    if not isinstance(task, Task):
        raise RegardError(f"{kind_of(task)} is not a task. {WANTS}")
    return task


def _choose(batch: Any, task: Task | None, split: str) -> Batch:
    """The batch that was given, or a split of the task."""
    if batch is None and task is not None:
        if split not in task.splits:
            raise RegardError(f"The task has no split '{split}'. It has: {', '.join(task.splits)}.")
        return task.split(split)
    if not isinstance(batch, Batch):
        raise RegardError(f"{kind_of(batch)} is not a batch. {WANTS}")
    return batch
