"""`regard swap`: a component of one model in another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Epochs, FiguresFolder, Jobs, Json, OwnRunsFolder, Updates

EXAMPLE = (
    "regard swap --into runs/lookup-s0-… --from runs/lookup-s1-…"
    " --component encoder.embedding --epochs 100"
)


def swap(
    into: Annotated[
        list[Path], typer.Option("--into", help="The receiving run; several make several pairs.")
    ],
    donor: Annotated[
        list[Path], typer.Option("--from", help="The giving run, one for each --into, in order.")
    ],
    component: Annotated[
        list[str],
        typer.Option(help="What is swapped: encoder, decoder.embedding, …; each by itself."),
    ],
    updates: Updates = None,
    epochs: Epochs = None,
    jobs: Jobs = None,
    runs: OwnRunsFolder = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Put a component of one model into another, freeze it, and train the rest."""
    from regard.cli._console import show_results
    from regard.cli._retraining import made_by, training
    from regard.instruments.interventions import swaps

    with training(jobs, out) as train:
        results = swaps(into, donor, component, updates, epochs, runs, train)
    named = {found.component: found for found in results}
    show_results(named, out, json, runs=made_by, apart=True)
