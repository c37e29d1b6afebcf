"""What is kept: run folders, and the executor that fills many of them side by side."""

from regard.runs.config import RunConfig, assemble
from regard.runs.executor import Monitor, run_all
from regard.runs.run import Run, execute, list_runs, runs_folder

__all__ = [
    "Monitor",
    "Run",
    "RunConfig",
    "assemble",
    "execute",
    "list_runs",
    "run_all",
    "runs_folder",
]
