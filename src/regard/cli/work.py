"""Commands that take a while: train, reproduce, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from regard.cli.console import interruptible, out, parse, print_json, progress_bars, say
from regard.cli.listings import claims_table
from regard.display import Table
from regard.errors import RegardError, unknown
from regard.papers import load_folder, reproduce
from regard.papers.experiment import Scale
from regard.papers.reproduce import Result, names_of, results_folder
from regard.report import write_markdown, write_report
from regard.runs import Run, assemble, run_all
from regard.statistics import Estimate
from regard.training.evaluation import UNBOUNDED


def train_command(
    task: str,
    settings: list[str],
    model: str,
    seed: int,
    count: int,
    jobs: int | None,
    runs: Path | None,
    as_json: bool,
) -> None:
    """`regard train`."""
    overrides, faults = parse(settings)
    configs = [
        assemble(task, model, number, overrides, faults) for number in range(seed, seed + count)
    ]
    with interruptible(), progress_bars() as bars:
        trained = run_all(configs, runs, jobs, bars, model)
    if as_json:
        print_json(_summary(trained))
        return
    rows = tuple((name, _over_seeds(trained, name)) for name in _common(trained))
    out.print(Table(f"{task}, {model}", ("metric", "measured"), rows).rich())
    for run in trained:
        out.print(str(run.folder), markup=False, highlight=False, soft_wrap=True)


def _over_seeds(runs: list[Run], name: str) -> Estimate:
    """One metric over seeds; most are shares."""
    within = None if name in UNBOUNDED else (0.0, 1.0)
    return Estimate.of((run.metrics[name] for run in runs), within)


def _common(runs: list[Run]) -> list[str]:
    """The metrics that all runs have; one of an earlier version may lack some."""
    return [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]


def _summary(runs: list[Run]) -> dict[str, Any]:
    if len(runs) == 1:
        run = runs[0]
        return {"run": str(run.folder), **run.summary, "config": run.config.to_json()}
    return {
        "runs": [{"run": str(run.folder), **run.summary} for run in runs],
        "metrics": {name: _over_seeds(runs, name).to_json() for name in _common(runs)},
    }


def reproduce_command(
    paper: str,
    scale: str,
    jobs: int | None,
    runs: Path | None,
    to: Path | None,
    as_json: bool,
    data: list[str] | None = None,
) -> None:
    """`regard reproduce` and `regard demo`."""
    if scale not in ("quick", "full"):
        raise RegardError(unknown("scale", scale, ("quick", "full")))
    size = cast(Scale, scale)
    to = to or results_folder()
    names = names_of(paper)
    files, faults = parse(data or [])
    if faults:
        raise RegardError(*faults)
    with interruptible(), progress_bars() as bars:
        results = reproduce(paper, size, runs, to, jobs, bars, say, files)
    folder = to / paper.split("/")[0] / scale
    path = _write(load_folder(folder), folder / "report.html")
    rows = [row for result in results for row in result.claims]
    if as_json:
        print_json({"report": str(path), "claims": rows, "experiments": names})
        return
    if rows:
        out.print(claims_table(rows).rich())
    for result in results:
        for sentence in result.found:
            out.print(sentence, markup=False, highlight=False)
    _say_where(path)


def _say_where(path: Path) -> None:
    out.print(f"The report: {path}", markup=False, highlight=False, soft_wrap=True)


def report_command(folder: Path, to: Path | None, as_json: bool) -> None:
    """`regard report`."""
    if not folder.is_dir():
        raise RegardError(f"There is no folder {folder}. `regard reproduce` makes one of results.")
    if to and to.suffix not in (".html", ".md"):
        raise RegardError(f"A report is .html or .md, not '{to}'.")
    path = _write(load_folder(folder), to or folder / "report.html")
    if as_json:
        print_json({"report": str(path)})
    else:
        _say_where(path)


def _write(results: list[Result], path: Path) -> Path:
    papers = dict.fromkeys(result.experiment.split("/")[0] for result in results)
    title = f"Regard: {', '.join(papers)}"
    write = write_markdown if path.suffix == ".md" else write_report
    return write(results, path, title)
