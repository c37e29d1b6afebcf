"""`regard train`: a model on a task, with one seed or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli._options import Jobs, Json, On, RunsFolder, parse_settings

if TYPE_CHECKING:
    from regard.runs.run import Run
    from regard.statistics import Estimate

EXAMPLE = "regard train reversal --model chapter36 --seed 0 hidden=64 updates=500"


def train(
    task: Annotated[str, typer.Argument(help="What to learn; see `regard ls tasks`.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings as key=value, e.g. hidden=64.")
    ] = None,
    model: Annotated[str, typer.Option(help="A preset; see `regard ls models`.")] = "chapter36",
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds, from --seed on.", min=1)] = 1,
    jobs: Jobs = None,
    processes: Annotated[
        int | None,
        typer.Option(help="Processes that share the batches of each run; default: 1.", min=1),
    ] = None,
    on: On = None,
    again: Annotated[
        bool, typer.Option("--again", help="Train anew what is there already.")
    ] = False,
    runs: RunsFolder = None,
    json: Json = False,
) -> None:
    """Train a model on a task. A run that is there already is only trained again with --again."""
    from regard.cli import _console as console
    from regard.display import Table
    from regard.runs.config import assemble
    from regard.runs.execution import as_team
    from regard.runs.executor import run_all
    from regard.runs.processes import is_first, one_voice

    overrides, faults = parse_settings(settings or [])
    if processes is not None:
        if "processes" in overrides:
            faults.append("--processes and processes= are the same: give one of them.")
        overrides["training.processes"] = str(processes)
    numbers, overrides = range(seed, seed + seeds), as_team(overrides)
    with one_voice():
        configs = [assemble(task, model, number, overrides, faults) for number in numbers]
        with console.interruptible(), console.progress_bars() as bars:
            trained = run_all(configs, runs, jobs, bars, model, again, on)
    if not is_first():
        return
    if json:
        console.print_json(_summary(trained))
        return
    rows = tuple(_over_seeds(trained).items())
    console.out.print(Table(f"{task}, {model}", ("metric", "measured"), rows).rich())
    for run in trained:
        console.print_line(str(run.folder))


def _over_seeds(runs: list[Run]) -> dict[str, Estimate]:
    """The metrics that all runs have; one of an earlier version may lack some. Most are shares."""
    from regard.statistics import Estimate
    from regard.training.evaluation import UNBOUNDED

    found = [run.metrics for run in runs]
    return {
        name: Estimate.of((m[name] for m in found), None if name in UNBOUNDED else (0.0, 1.0))
        for name in found[0]
        if all(name in metrics for metrics in found)
    }


def _hours(run: Run) -> float:
    """What a run has cost, in hours of one core."""
    return float(run.summary.get("seconds", 0)) * run.config.training.processes / 3600


def _summary(runs: list[Run]) -> dict[str, Any]:
    if len(runs) == 1:
        run = runs[0]
        return {"run": str(run.folder), **run.summary, "config": run.config.to_json()}
    return {
        "runs": [{"run": str(run.folder), **run.summary} for run in runs],
        "core_hours": round(sum(_hours(run) for run in runs), 4),
        "metrics": {name: value.to_json() for name, value in _over_seeds(runs).items()},
    }
