"""`regard record`: what a model does, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Jobs, Json, On, RunFolder

EXAMPLE = "regard record runs/one-to-one-s0-… -n 1000 --out aed.safetensors"


def record(
    run: RunFolder,
    n: Annotated[int, typer.Option("-n", "--samples", help="How many samples.", min=1)] = 1000,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The file, or with --shards the folder; default: one in the run's folder."
        ),
    ] = None,
    inputs: Annotated[
        str, typer.Option(help="What the decoder is fed: own (its choices) or teacher.")
    ] = "own",
    gates: Annotated[bool, typer.Option("--gates", help="Record the gates, too.")] = False,
    also: Annotated[
        str,
        typer.Option(help="Record besides: gates, values, lexical, proxy, saliency; with commas."),
    ] = "",
    split: Annotated[
        str | None, typer.Option(help="Record a split of the task instead of fresh samples.")
    ] = None,
    checkpoint: Annotated[
        str,
        typer.Option(help="reported (whose metrics count), last, best, or a kept update."),
    ] = "reported",
    seed: Annotated[int, typer.Option(help="Seed of the samples.", min=0)] = 0,
    shards: Annotated[
        int | None,
        typer.Option(help="Write so many files, into a folder; what was cut off goes on.", min=1),
    ] = None,
    jobs: Jobs = None,
    on: On = None,
    json: Json = False,
) -> None:
    """Record what a model does: states, words, queries, keys, scores, weights."""
    from regard.cli import _console as console
    from regard.cli._instruments import remark_unfinished
    from regard.display import Table
    from regard.errors import RegardError, unknown
    from regard.recordings import record
    from regard.runs.run import Run

    if inputs not in ("own", "teacher"):
        raise RegardError(unknown("kind of inputs", inputs, ("own", "teacher")))
    opened = Run.open(run)
    # Other recordings of a run have other names.
    marks = {
        inputs: inputs != "own",
        "gates": gates,
        also.replace(",", "-"): bool(also),
        f"{split}": split is not None,
        f"at-{checkpoint}": checkpoint != "reported",
        f"s{seed}": seed != 0,
    }
    name = "-".join(["recording", str(n), *(mark for mark, wanted in marks.items() if wanted)])
    ending = ".safetensors" if shards is None else f"-in-{shards}-shards"
    to = out or run / f"{name}{ending}"
    if to.is_dir() and shards is None:
        raise RegardError(f"{to} is a folder. Give --out a file.")
    remark_unfinished(opened)
    with console.interruptible(), console.sample_bar("recording") as watch:
        made = record(
            opened,
            n=n,
            out=to,
            inputs=inputs,  # type: ignore[arg-type]
            gates=gates,
            also=also,
            split=split,
            checkpoint=int(checkpoint) if checkpoint.isdigit() else checkpoint,
            seed=seed,
            watch=watch,
            shards=shards,
            jobs=jobs,
            on=on,
        )
    rows = tuple((name, " ".join(made.axes(name)), made.shape(name)) for name in made.names())
    if json:
        arrays = {name: {"axes": axes.split(), "shape": shape} for name, axes, shape in rows}
        console.print_json({"recording": str(to), "samples": len(made), "arrays": arrays})
        return
    console.out.print(Table(f"{len(made)} samples", ("array", "axes", "shape"), rows).rich())
    console.print_line(str(to))
