"""`regard prune`: the strongest units or weights of a model, alone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from regard.cli._options import (
    Epochs,
    FiguresFolder,
    Jobs,
    Json,
    OtherRuns,
    OwnRunsFolder,
    RunFolder,
    Updates,
)

EXAMPLE = "regard prune runs/lookup-s0-… --keep 0.05 --mask held --epochs 20"


def prune(
    run: RunFolder,
    others: OtherRuns = None,
    keep: Annotated[float, typer.Option(help="The share that is kept, at most 1.")] = 0.05,
    what: Annotated[str, typer.Option(help="units (of each cell) or weights (of each matrix).")] = (
        "units"
    ),
    mask: Annotated[
        str,
        typer.Option(
            help="Retrain with the pruned held at zero, free to grow back, both, or none:"
            " do not retrain."
        ),
    ] = "both",
    updates: Updates = None,
    epochs: Epochs = None,
    jobs: Jobs = None,
    runs: OwnRunsFolder = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Keep only the strongest units or weights of a model, and retrain it."""
    from regard.cli._console import show_results
    from regard.cli._retraining import made_by, training
    from regard.instruments.interventions import prune

    with training(jobs, out) as train:
        options: dict[str, Any] = {"what": what, "mask": mask, "updates": updates, "epochs": epochs}
        found = prune([run, *(others or [])], keep, **options, out=runs, train=train)
    show_results({"prune": found}, out, json, runs=made_by)
