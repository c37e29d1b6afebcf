"""`regard reproduce`: a paper's experiments, its claims, a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli._options import Jobs, Json, On, ResultsFolder, RunsFolder, parse_settings

if TYPE_CHECKING:
    from regard.papers.framework import Scale

EXAMPLE = "regard reproduce chapter36/addition --scale quick"


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="PAPER or PAPER/EXPERIMENT; see `regard ls papers`.")
    ],
    scale: Annotated[
        str, typer.Option(help="quick (minutes) or full (the source's settings).")
    ] = "quick",
    data: Annotated[
        list[str] | None,
        typer.Option(help="Data of yours as NAME=FILE, e.g. english-french=pairs.tsv."),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Train anew the runs that other code made, and measure everything anew."
        ),
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Say which runs there would be and how many core hours they would take; train"
            " nothing.",
        ),
    ] = False,
    jobs: Jobs = None,
    on: On = None,
    runs: RunsFolder = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Run a paper's experiments, judge its claims, write a report."""
    from regard.cli import _console as console
    from regard.cli._results import write_report
    from regard.errors import RegardError, unknown
    from regard.papers.framework.reproduce import names_of, reproduce
    from regard.papers.framework.result import Claims, results_folder

    if scale not in ("quick", "full"):
        raise RegardError(unknown("scale", scale, ("quick", "full")))
    to, names = out or results_folder(), names_of(paper)
    files, faults = parse_settings(data or [])
    if faults:
        raise RegardError(*faults)
    if plan:
        _show_plan(paper, scale, files, runs, json)  # type: ignore[arg-type]
        return
    with console.interruptible(), console.progress_bars() as bars:
        results = reproduce(paper, scale, runs, to, jobs, bars, console.say, files, again, on=on)  # type: ignore[arg-type]
    path = write_report(to / paper.split("/")[0] / scale)
    rows = Claims({**row, "source": "here"} for result in results for row in result.claims)
    if json:
        console.print_json({"report": str(path), "claims": rows, "experiments": names})
        return
    if rows:
        console.out.print(rows.table().rich())
    for result in results:
        for sentence in result.found:
            console.print_line(sentence)
    console.print_line(f"The report: {path}")


def _show_plan(
    paper: str, scale: Scale, data: dict[str, Any], runs: Path | None, json: bool
) -> None:
    """What reproducing would train and take."""
    from regard.cli import _console as console
    from regard.papers.framework.cost import expect_all, tabulate
    from regard.papers.framework.reproduce import make_possible

    with console.interruptible():
        made = make_possible(paper, scale, data, console.say)
        found = expect_all(made, scale, runs, progress=console.err.is_terminal)
    console.show(tabulate(found, scale), json, [vars(each) for each in found])
