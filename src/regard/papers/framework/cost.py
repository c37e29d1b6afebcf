"""What an experiment takes: in core hours, measured when it is done, expected before it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

from regard.display import Table
from regard.display.progress import make_bar
from regard.papers.framework.experiment import Experiment, Plan, Runs, Scale
from regard.papers.framework.result import parts_path, published_rows
from regard.runs.files import read_json
from regard.runs.run import Run, runs_folder
from regard.training.evaluation import evaluate
from regard.training.loop import Trainer, one_thread

if TYPE_CHECKING:
    from regard.runs.config import RunConfig
    from regard.training.config import TrainingConfig

HOUR = 3600
UPDATES = 3  # that are timed, after one that warms up
LATER = "and what `then` adds once these are known"


def add_hours(runs: Runs, measuring: float = 0.0) -> float:
    """Core hours of some runs, each counted once, and of so many seconds of measuring.

    Seconds are the processor's; of runs of before, which have none, those of the clock.
    Experiments that share runs count them each in whole: it is what one of them takes alone.
    """
    trained = {run.folder: run.summary for group in runs.values() for run in group}
    seconds = sum(float(s.get("core_seconds", s["seconds"])) for s in trained.values())
    return (seconds + measuring) / HOUR


def count_conditions(plan: Plan) -> str:
    """What a result covers that leaves nothing out, in words."""
    return "its one condition" if len(plan) == 1 else f"all {len(plan)} conditions"


@dataclass(frozen=True)
class Expected:
    """What one experiment would train, and how long that would take."""

    experiment: str
    runs: int  # in all
    done: int  # of them, on this machine
    seeds: int  # of the condition that has most
    core_hours: float  # of the runs that are not done
    known_from: str  # `published`: what the result took; `timed`: some updates here, an evaluation
    then: bool  # whether further runs follow from these, which cannot be told before


def expect(name: str, experiment: Experiment, scale: Scale, runs: Path | None) -> Expected:
    """What an experiment would take; nothing is trained, and nothing is written."""
    plan = experiment.plan(scale)
    every = {config.name: config for group in plan.values() for config in group}
    left = {
        run: config
        for run, config in every.items()
        if not Run((runs or runs_folder()) / run, config).done
    }
    known = read_published(name, experiment, scale, plan)
    hours = known * len(left) / max(1, len(every)) if known is not None else time_runs(left)
    return Expected(
        name,
        len(every),
        len(every) - len(left),
        max(map(len, plan.values()), default=0),
        hours,
        "timed" if known is None else "published",
        type(experiment).then is not Experiment.then,
    )


def read_published(name: str, experiment: Experiment, scale: Scale, plan: Plan) -> float | None:
    """The core hours of an experiment whose published result was made at this scale.

    Where data sets were measured one by one, those of the sets that are planned, if all are known.
    """
    path = parts_path(name)
    if scale == "full" and path.is_file():
        parts = read_json(path)
        planned = {experiment.part_of(condition) for condition in plan}
        took_each = [parts[part]["core_hours"] for part in planned if part in parts]
        return sum(took_each) if len(took_each) == len(planned) else None
    return next(
        (
            row["core_hours"]
            for row in published_rows().values()
            if row["experiment"] == name and row["scale"] == scale and took(row)
        ),
        None,
    )


def took(row: Mapping[str, Any]) -> bool:
    """Whether the core hours of a row of the ledger were measured, not expected from updates."""
    return bool(row.get("core_hours")) and row.get("core_hours_from") != "timed"


def time_runs(configs: Mapping[str, RunConfig]) -> float:
    """Core hours of some runs, from a few updates and an evaluation of each setting.

    What it takes to measure the runs is not in it.
    """
    each: dict[str, tuple[float, float]] = {}
    total = 0.0
    for config in configs.values():
        alike = _name_alike(config)
        if alike not in each:
            each[alike] = time_parts(config)
        update, evaluation = each[alike]
        total += update * config.training.updates + evaluation * count_evaluations(config.training)
    return total / HOUR


def time_parts(config: RunConfig) -> tuple[float, float]:
    """Seconds of one update and of one evaluation, on one core, of a model that is thrown away.

    Updates are timed at the beginning and at the end of training, where the decoder may be fed
    other words. A model that has not learned where to stop evaluates longer than one that has.
    """
    task = config.make_task()
    trainer = Trainer(config.make_model(task), task, config.training, config.seed)
    with one_thread():
        trainer.step()
        seconds = _time(trainer.step, UPDATES)
        trainer.update = max(trainer.update, config.training.updates - UPDATES)
        seconds = (seconds + _time(trainer.step, UPDATES)) / 2
        validation = task.split("validation")
        force = config.training.guidance_by == "force"
        return seconds, _time(
            lambda: evaluate(trainer.model, task, validation, forced_alignment=force)
        )


def _time(do: Callable[[], object], times: int = 1) -> float:
    """The processor's seconds that a thing takes, in the mean."""
    started = process_time()
    for _ in range(times):
        do()
    return (process_time() - started) / times


def count_evaluations(training: TrainingConfig) -> int:
    """How often a run that is not stopped before its end looks at the validation set.

    The last one stands for that of the best weights, which is done on every split.
    """
    every = range(training.evaluate_every, training.updates + 1, training.evaluate_every)
    noted = {at for at in training.milestones if at <= training.updates}
    return len({*every, *noted, training.updates}) + 1


def _name_alike(config: RunConfig) -> str:
    """The same for configurations whose updates take equally long: all but seeds and updates."""
    settings: dict[str, Any] = config.to_json()
    settings.pop("seed")
    for part, key in (("model", "head_seeds"), ("training", "updates"), ("task", "tables_seed")):
        settings[part].pop(key, None)
    return str(settings)


def expect_all(
    made: Mapping[str, Experiment],
    scale: Scale,
    runs: Path | None = None,
    progress: bool | None = None,
) -> list[Expected]:
    """What each experiment would take, one after the other."""
    bar, found = make_bar("experiment", progress), []
    for number, (name, experiment) in enumerate(made.items(), 1):
        found.append(expect(name, experiment, scale, runs))
        if bar:
            bar(number, len(made), name)
    return found


def tabulate(expected: list[Expected], scale: Scale) -> Table:
    """A row per experiment, and their sum; runs that several share count in each."""
    columns = ("experiment", "runs", "done", "seeds", "core hours left", "from")
    rows: list[tuple[Any, ...]] = [
        (e.experiment, e.runs, e.done, e.seeds, _show(e), e.known_from) for e in expected
    ]
    total = sum(e.core_hours for e in expected)
    rows.append(("all", sum(e.runs for e in expected), sum(e.done for e in expected), "",
                 f"{total:.2f}", ""))  # fmt: skip
    return Table(f"What --scale {scale} would take", columns, tuple(rows))


def _show(expected: Expected) -> str:
    return f"{expected.core_hours:.2f}" + (f", {LATER}" if expected.then else "")
