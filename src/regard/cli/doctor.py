"""What `regard doctor` looks at."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch

from regard.display import Figure, Line, Panel, Table
from regard.runs import assemble, execute, runs_folder


def checks() -> tuple[Table, bool]:
    """Every check with what it found, and whether all is well."""
    rows = []
    for name, check in CHECKS.items():
        try:
            rows.append((name, "ok", check()))
        except Exception as error:
            rows.append((name, "problem", f"{type(error).__name__}: {error}"))
    healthy = all(state == "ok" for _, state, _ in rows)
    return Table("Doctor", ("check", "state", "found"), tuple(rows)), healthy


def _device() -> str:
    devices = ["cpu"]
    devices += ["cuda"] if torch.cuda.is_available() else []
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return f"{', '.join(devices)}; {os.cpu_count()} cores"


def _folder() -> str:
    """Whether runs can be written where they would go, without leaving anything behind."""
    folder = runs_folder().absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    with tempfile.TemporaryDirectory(dir=there):
        return f"{folder} can be written"


def _training() -> str:
    with tempfile.TemporaryDirectory() as folder:
        config = assemble("reversal", "chapter36", 0, {"updates": 2, "hidden": 8, "held_out": 4})
        run = execute(config, Path(folder))
        return f"two updates of a small model, loss {run.curve('loss')[1][-1]:.2f}"


def _drawing() -> str:
    figure = Figure("test", "", (Panel("", "x", "y", (Line("", (0.0, 1.0), (0.0, 1.0)),)),))
    return f"a figure of {len(figure.svg()):,} characters, {len(figure.interactive())} parts"


CHECKS: dict[str, Callable[[], str]] = {
    "python": platform.python_version,
    "regard": lambda: version("regard"),
    "torch": lambda: str(torch.__version__),
    "devices": _device,
    "runs": _folder,
    "training": _training,
    "figures": _drawing,
}
