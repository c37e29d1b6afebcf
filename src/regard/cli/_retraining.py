"""What the commands that change a model and train it further share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.cli import _console as console
from regard.errors import RegardError
from regard.instruments.interventions._retrain import StagesResult, Trainer
from regard.runs.config import RunConfig
from regard.runs.executor import run_all
from regard.runs.run import Run


@contextmanager
def training(jobs: int | None, to: Path | None) -> Iterator[Trainer]:
    """How runs are made while bars show how far they are, if what comes of it has a place."""
    if faults := console.folder_faults(to):
        raise RegardError(*faults)
    with console.interruptible(), console.progress_bars() as bars:

        def train(configs: Sequence[RunConfig], root: Path) -> list[Run]:
            return run_all(configs, root, jobs, bars)

        yield train


def made_by(found: StagesResult) -> list[str]:
    """The folders of the runs that were made."""
    return [folder for seed in found.seeds for folder in seed.runs.values()]
