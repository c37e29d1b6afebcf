"""Commands that change a trained model and train it further: swap, prune."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.cli.console import interruptible, out, print_json, progress_bars
from regard.errors import RegardError
from regard.instruments import prune, swaps
from regard.instruments.retrain import StagesResult, Trainer
from regard.runs import Run, RunConfig, run_all


def swap_command(
    into: list[Path],
    donors: list[Path],
    components: list[str],
    updates: int | None,
    epochs: int | None,
    jobs: int | None,
    runs: Path | None,
    to: Path | None,
    as_json: bool,
) -> None:
    """`regard swap`."""
    _check_folder(to)
    with _training(jobs) as train:
        results = swaps(into, donors, components, updates, epochs, runs, train)
    places = [to] if len(results) == 1 else [to and to / found.component for found in results]
    if as_json:
        plain = {found.component: found.to_json() for found in results}
        print_json(plain[components[0]] if len(plain) == 1 else plain)
    for found, place in zip(results, places, strict=True):
        _show(found, place, as_json)


def prune_command(
    places: list[Path],
    keep: float,
    what: str,
    mask: str,
    updates: int | None,
    epochs: int | None,
    jobs: int | None,
    runs: Path | None,
    to: Path | None,
    as_json: bool,
) -> None:
    """`regard prune`."""
    _check_folder(to)
    with _training(jobs) as train:
        found = prune(places, keep, what, mask, updates, epochs, runs, train)  # type: ignore[arg-type]
    if as_json:
        print_json(found.to_json())
    _show(found, to, as_json)


def _check_folder(to: Path | None) -> None:
    if to is not None and to.exists() and not to.is_dir():
        raise RegardError(f"{to} is a file. Give --out a folder.")


@contextmanager
def _training(jobs: int | None) -> Iterator[Trainer]:
    """How runs are made while bars show how far they are."""
    with interruptible(), progress_bars() as bars:

        def train(configs: Sequence[RunConfig], root: Path) -> list[Run]:
            return run_all(configs, root, jobs, bars)

        yield train


def _show(found: StagesResult, to: Path | None, as_json: bool) -> None:
    """The table, the runs that were made, and the files where a folder was given."""
    if to is not None:
        found.save(to)
    if as_json:
        return
    lines = [folder for seed in found.seeds for folder in seed.runs.values()]
    if to is not None:
        lines.append(f"Tables and figures: {to}")
    out.print(found.table().rich())
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
