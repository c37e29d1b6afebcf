"""Commands that look inside: record, inspect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from regard.cli.console import err, interruptible, out, parse, print_json, say
from regard.display import Table
from regard.errors import RegardError, unknown
from regard.instruments import Decomposition, Result, decompose, instruments
from regard.instruments.instrument import takes_runs
from regard.recordings import Recording, load_recording, record
from regard.runs import Run

ENDING = ".safetensors"


def record_command(
    run: Path,
    n: int,
    to: Path | None,
    inputs: str,
    gates: bool,
    split: str | None,
    checkpoint: str,
    seed: int,
    as_json: bool,
) -> None:
    """`regard record`."""
    if inputs not in ("own", "teacher"):
        raise RegardError(unknown("kind of inputs", inputs, ("own", "teacher")))
    opened = Run.open(run)
    to = to or run / _name(n, inputs, gates, split, checkpoint, seed)
    if to.is_dir():
        raise RegardError(f"{to} is a folder. Give --out a file.")
    _finished(opened)
    with interruptible(), sample_bar("recording") as watch:
        made = record(
            opened,
            n=n,
            out=to,
            inputs=inputs,  # type: ignore[arg-type]
            gates=gates,
            split=split,
            checkpoint=int(checkpoint) if checkpoint.isdigit() else checkpoint,
            seed=seed,
            watch=watch,
        )
    rows = tuple((name, " ".join(made.axes(name)), made.shape(name)) for name in made.names())
    if as_json:
        arrays = {name: {"axes": axes.split(), "shape": shape} for name, axes, shape in rows}
        print_json({"recording": str(to), "samples": len(made), "arrays": arrays})
        return
    out.print(Table(f"{len(made)} samples", ("array", "axes", "shape"), rows).rich())
    out.print(str(to), markup=False, highlight=False, soft_wrap=True)


def _name(n: int, inputs: str, gates: bool, split: str | None, checkpoint: str, seed: int) -> str:
    """The file's name in the run's folder: other recordings of a run have other names."""
    marks = {
        inputs: inputs != "own",
        "gates": gates,
        f"{split}": split is not None,
        f"at-{checkpoint}": checkpoint != "reported",
        f"s{seed}": seed != 0,
    }
    return "-".join(["recording", str(n), *(m for m, there in marks.items() if there)]) + ENDING


def _finished(run: Run) -> None:
    """A remark where a run goes on: what is seen of it now is not its end."""
    if not run.done:
        say(f"{run.folder} is not finished: this is how far it has come.")


@contextmanager
def sample_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar over samples on a terminal, nothing elsewhere."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=err, transient=True) as progress:
        row = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(row, completed=done, total=total)


def inspect_command(
    target: Path,
    words: list[str],
    others: list[Path],
    n: int,
    top: int | None,
    to: Path | None,
    as_json: bool,
) -> None:
    """`regard inspect`."""
    names = [word for word in words if "=" not in word]
    values, faults = parse([word for word in words if "=" in word])
    if top is not None:
        values.setdefault("top", str(top))
    faults += [
        unknown("instrument", name, instruments) for name in names if name not in instruments
    ]
    if not names:
        faults.append(f"Name an instrument: {', '.join(instruments)}.")
    if to is not None and to.exists() and not to.is_dir():
        faults.append(f"{to} is a file. Give --out a folder.")
    known = [name for name in names if name in instruments]
    options, wrong = options_of(known, values)
    if faults or wrong:
        raise RegardError(*faults, *wrong)
    with interruptible():
        gates = any(getattr(instruments[name], "reads_gates", False) for name in known)
        sources = Sources([target, *others], n, gates)
        results = {name: sources.measure(name, options[name]) for name in known}
    if to is not None:
        for result in results.values():
            result.save(to)
    if as_json:
        plain = {name: result.to_json() for name, result in results.items()}
        print_json(plain[names[0]] if len(plain) == 1 else plain)
        return
    for result in results.values():
        out.print(result.table().rich())
    if to is not None:
        out.print(f"Tables and figures: {to}", markup=False, highlight=False, soft_wrap=True)


class Sources:
    """What is inspected. Recordings are made, if need be, and decomposed once for all."""

    def __init__(self, places: list[Path], n: int, gates: bool):
        self.places, self.n, self.gates = places, n, gates

    @cached_property
    def decomposed(self) -> list[Decomposition]:
        """One decomposition per place."""
        return [decompose(_recording(place, self.n, self.gates)) for place in self.places]

    def measure(self, name: str, options: dict[str, Any]) -> Result[Any]:
        """Instruments of recordings get recordings, the others get runs."""
        instrument = instruments[name]
        parameters = inspect.signature(instrument).parameters
        if takes_runs(instrument):
            runs = [run_of(name, place) for place in self.places]
            samples = {"n": self.n} if "n" in parameters else {}
            return instrument(runs, **samples, **options)
        return instrument(self.decomposed, **options)


def run_of(name: str, place: Path) -> Run:
    """The run in a folder, for an instrument that needs the model itself."""
    if place.is_file():
        raise RegardError(
            f"{place} is a recording, but '{name}' needs the model itself. Give the run's folder."
        )
    run = Run.open(place)
    _finished(run)
    return run


def _recording(place: Path, n: int, gates: bool) -> Recording:
    if place.is_file():
        return load_recording(place)
    if not place.exists():
        raise RegardError(
            f"There is no run or recording {place}. `regard ls runs` lists the runs there are."
        )
    run = Run.open(place)
    _finished(run)
    with sample_bar("recording") as watch:
        return record(run, n=n, gates=gates, watch=watch)


def options_of(
    names: list[str], values: dict[str, str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The settings of each instrument, as its signature wants them, and what is wrong with them."""
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    faults = []
    if "n" in values:
        faults.append("How many samples is an option: write -n instead of n=.")
        values = {key: value for key, value in values.items() if key != "n"}
    every: set[str] = set()
    for name in names:
        hints = get_type_hints(instruments[name])
        keys = list(inspect.signature(instruments[name]).parameters)[1:]
        every |= set(keys)
        for key in keys:
            if key not in values:
                continue
            try:
                options[name][key] = TypeAdapter(hints[key]).validate_python(values[key])
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                faults.append(f"{key}={values[key]!r} does not fit {name}: {reason.lower()}.")
    if names:
        faults += [unknown("setting", key, sorted(every)) for key in values if key not in every]
    return options, faults


def instruments_table() -> Table:
    """What `regard ls instruments` shows."""
    rows = tuple(
        (name, (f.__doc__ or "").strip().splitlines()[0], _settings(f))
        for name, f in sorted(instruments.items())
    )
    return Table("Instruments", ("name", "what it measures", "settings"), rows)


def _settings(function: Callable[..., Any]) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return " ".join(f"{p.name}={p.default}" for p in parameters)
