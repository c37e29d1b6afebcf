"""The command line: each command parses, calls, prints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.errors import RegardError, in_words

app = typer.Typer(
    name="regard",
    help="A laboratory for encoder-decoder networks: train one, look inside, check the papers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes side by side; default: all cores.", min=1)
]
RunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of runs; default: $REGARD_RUNS or ./runs.")
]
ResultsFolder = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of results; default: $REGARD_RESULTS or ./results."),
]
FiguresFolder = Annotated[Path | None, typer.Option("--out", help="Folder for tables and figures.")]
OwnRunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of the new runs; default: the old ones'.")
]
Updates = Annotated[int | None, typer.Option(help="Updates of retraining.", min=0)]
Epochs = Annotated[
    int | None, typer.Option(help="Instead: epochs, of a task with a fixed set of rows.", min=1)
]
Scales = Annotated[str, typer.Option(help="quick (minutes) or full (the source's settings).")]


def main() -> None:
    """The console script. Faults in what was asked are told in plain words, with exit code 2."""
    try:
        app()
    except RegardError as error:
        for fault in error.faults:
            print(f"regard: {fault}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"regard: {in_words(error)}", file=sys.stderr)
        sys.exit(2)


@app.command(
    epilog="Example: regard ls tasks --json",
)
def ls(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, models, settings, cells, attentions, instruments, papers or runs."
        ),
    ] = "all",
    runs: RunsFolder = None,
    json: Json = False,
) -> None:
    """List what there is: tasks, models, settings, instruments, papers, runs and more."""
    from regard.cli.console import show
    from regard.cli.listings import listing

    show(listing(what, runs), json)


@app.command(
    epilog="Example: regard train reversal --model chapter36 --seed 0 hidden=64 updates=500",
)
def train(
    task: Annotated[str, typer.Argument(help="What to learn; see `regard ls tasks`.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings as key=value, e.g. hidden=64.")
    ] = None,
    model: Annotated[str, typer.Option(help="A preset; see `regard ls models`.")] = "chapter36",
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds, from --seed on.", min=1)] = 1,
    jobs: Jobs = None,
    runs: RunsFolder = None,
    json: Json = False,
) -> None:
    """Train a model on a task. A run that is there already is not trained again."""
    from regard.cli.work import train_command

    train_command(task, settings or [], model, seed, seeds, jobs, runs, json)


@app.command(
    epilog="Example: regard record runs/one-to-one-s0-… -n 1000 --out aed.safetensors",
)
def record(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    n: Annotated[int, typer.Option("-n", "--samples", help="How many samples.", min=1)] = 1000,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file; default: one in the run's folder.")
    ] = None,
    inputs: Annotated[
        str, typer.Option(help="What the decoder is fed: own (its choices) or teacher.")
    ] = "own",
    gates: Annotated[bool, typer.Option("--gates", help="Record the gates, too.")] = False,
    split: Annotated[
        str | None, typer.Option(help="Record a split of the task instead of fresh samples.")
    ] = None,
    checkpoint: Annotated[
        str,
        typer.Option(help="reported (whose metrics count), last, best, or a kept update."),
    ] = "reported",
    seed: Annotated[int, typer.Option(help="Seed of the samples.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Record what a model does: states, words, queries, keys, scores, weights."""
    from regard.cli.looking import record_command

    record_command(run, n, out, inputs, gates, split, checkpoint, seed, json)


@app.command(
    epilog="Example: regard inspect aed.safetensors breakdown paths --top 5 --out figures",
)
def inspect(
    target: Annotated[Path, typer.Argument(help="A run's folder, or a recording.")],
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Instruments (`regard ls instruments`), and settings as key=value."),
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another seed's run or recording; may be given repeatedly."),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", "--samples", help="Samples to record, given a run.", min=1)
    ] = 1000,
    top: Annotated[
        int | None, typer.Option(help="Source positions to look at (breakdown).", min=1)
    ] = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Put instruments on a run or a recording; several seeds give intervals."""
    from regard.cli.looking import inspect_command

    inspect_command(target, what or [], others or [], n, top, out, json)


@app.command(
    epilog="Example: regard timelapse runs/one-to-one-s0-… breakdown top=3 --out figures",
)
def timelapse(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    instrument: Annotated[str, typer.Argument(help="One of `regard ls instruments`.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the instrument as key=value.")
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another seed's run; may be given repeatedly."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--samples", help="Samples to look at.", min=1)] = 1000,
    checkpoints: Annotated[
        str | None, typer.Option(help="Kept updates, e.g. 0,100,200; default: all of them.")
    ] = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Put an instrument on every checkpoint of a run: a table, curves, and a film."""
    from regard.cli.filming import timelapse_command

    places = [run, *(others or [])]
    timelapse_command(places, instrument, settings or [], n, checkpoints, out, json)


@app.command(
    epilog="Example: regard swap --into runs/lookup-s0-… --from runs/lookup-s1-…"
    " --component encoder.embedding --epochs 100",
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
    from regard.cli.changing import swap_command

    swap_command(into, donor, component, updates, epochs, jobs, runs, out, json)


@app.command(
    epilog="Example: regard prune runs/lookup-s0-… --keep 0.05 --mask held --epochs 20",
)
def prune(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another seed's run; may be given repeatedly."),
    ] = None,
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
    from regard.cli.changing import prune_command

    places = [run, *(others or [])]
    prune_command(places, keep, what, mask, updates, epochs, jobs, runs, out, json)


@app.command(
    epilog="Example: regard reproduce chapter36/addition --scale quick",
)
def reproduce(
    paper: Annotated[
        str, typer.Argument(help="PAPER or PAPER/EXPERIMENT; see `regard ls papers`.")
    ],
    scale: Scales = "quick",
    data: Annotated[
        list[str] | None,
        typer.Option(help="Data of yours as NAME=FILE, e.g. english-french=pairs.tsv."),
    ] = None,
    jobs: Jobs = None,
    runs: RunsFolder = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Run a paper's experiments, judge its claims, write a report."""
    from regard.cli.work import reproduce_command

    reproduce_command(paper, scale, jobs, runs, out, json, data)


@app.command(
    epilog="Example: regard claims chapter36 --json",
)
def claims(
    paper: Annotated[str | None, typer.Argument(help="A paper; default: all.")] = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Print the ledger: what the papers say, what was measured, the verdict."""
    from regard.cli.console import show
    from regard.cli.listings import claims_table
    from regard.papers import claims as rows

    found = list(rows(paper, out))
    show(claims_table(found), json, found)


@app.command(
    epilog="Example: regard report results/chapter36/quick",
)
def report(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="An .html or .md file; default: report.html in the folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Write one offline HTML page from results that are on disk."""
    from regard.cli.work import report_command

    report_command(folder, to, json)


@app.command(
    epilog="Example: regard demo",
)
def demo(
    jobs: Jobs = None,
    runs: RunsFolder = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Train a fixed-vector model and an attention model, show the difference in a report."""
    from regard.cli.work import reproduce_command

    reproduce_command("demo", "quick", jobs, runs, out, json)


@app.command(
    epilog="Example: regard doctor --json",
)
def doctor(json: Json = False) -> None:
    """Check that everything Regard needs is there and works."""
    from regard.cli.console import show
    from regard.cli.doctor import checks

    table, healthy = checks()
    show(table, json)
    if not healthy:
        raise typer.Exit(2)


@app.command(
    epilog="Example: regard bench training --json",
)
def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark.")] = "training",
    json: Json = False,
) -> None:
    """Measure speed, as ratios within one run."""
    from regard.bench import benchmarks
    from regard.cli.console import show

    found: Any = benchmarks[name]()
    show(found.table(), json, found.to_json())


if __name__ == "__main__":
    main()
