"""What is kept: run folders, and the executor that fills many of them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.runs.config import RunConfig as RunConfig
    from regard.runs.config import assemble as assemble
    from regard.runs.execution import execute as execute
    from regard.runs.execution import train as train
    from regard.runs.executor import Monitor as Monitor
    from regard.runs.executor import run_all as run_all
    from regard.runs.run import Run as Run
    from regard.runs.run import list_runs as list_runs
    from regard.runs.run import load_run as load_run
    from regard.runs.run import runs_folder as runs_folder
else:
    __getattr__, __dir__, __all__ = attach(__name__)
