"""How all runs that a command asks for are doing: one file in the folder of runs, for anybody.

`regard ls progress` shows it, while the command is at work and afterwards. The file is made anew
with every look at the runs, at most once a second; nothing rests on it.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.files import read_json, write_json
from regard.runs.orders import Monitor
from regard.runs.places import HOST, may_be_at_work
from regard.runs.run import Run

FOLDER = ".progress"
BETWEEN = 1.0  # seconds between two writings
KEPT = 10  # files of commands that have ended
STATES = ("done", "running", "waiting", "failed", "stopped")
Row = dict[str, Any]


class Status:
    """Keeps how runs are doing, and passes it on to whoever else wants to see it."""

    def __init__(self, root: Path, monitor: Monitor | None = None):
        self.root, self.monitor = root, monitor
        self.about = _about_process(root)
        self.runs: dict[str, Row] = self.about["runs"]
        self.began: dict[str, float] = {}
        self.written = 0.0
        self.at_work = False

    def __enter__(self) -> Status:
        """Something is to be done: from now on it is written down."""
        self.at_work = True
        self.write()
        return self

    def __exit__(self, *_: object) -> None:
        self.write()

    def expect(self, configs: Sequence[RunConfig]) -> None:
        """These runs are to come, those counted that are done already."""
        for config in configs:
            self.runs[config.name] = {
                "state": "waiting", "update": 0, "of": config.training.updates, "loss": None,
                "accuracy": None, "seconds": 0.0, "processes": config.training.processes,
                "faults": [],
            }  # fmt: skip
        if self.monitor:
            self.monitor.expect(len(configs))

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""
        began = self.began.setdefault(config.name, time.monotonic())
        seconds = round(time.monotonic() - began, 1)
        news = {"update": update, "of": total, "loss": loss, "accuracy": accuracy}
        self.runs[config.name] |= {"state": "running", "seconds": seconds, **news}
        if self.monitor:
            self.monitor.progress(config, update, total, loss, accuracy)
        self.write(soon=True)

    def finished(self, config: RunConfig) -> None:
        """A run is done (or was, before anybody asked)."""
        with suppress(RegardError):  # who reads the run will say so
            summary = Run(self.root / config.name, config).summary
            known = {"accuracy": summary["metrics"].get("accuracy")}
            known |= {"update": summary.get("updates"), "seconds": summary.get("seconds", 0.0)}
            self.runs[config.name] |= known
        self.runs[config.name] |= {"state": "done", "faults": []}
        if self.monitor:
            self.monitor.finished(config)
        self.write(soon=True)

    def failed(self, config: RunConfig, faults: Iterable[str]) -> None:
        """A run was given up."""
        self.runs[config.name] |= {"state": "failed", "faults": list(faults)}
        tell = getattr(self.monitor, "failed", None)  # not every monitor wants to know
        if tell:
            tell(config, faults)
        self.write(soon=True)

    def write(self, soon: bool = False) -> None:
        """Write it down; with `soon`, unless that was just done."""
        if not self.at_work or (soon and time.monotonic() - self.written < BETWEEN):
            return
        write_json(self.root / FOLDER / f"{HOST}-{os.getpid()}.json", self.about)
        self.written = time.monotonic()


@cache
def _about_process(root: Path) -> dict[str, Any]:
    """What a file begins with; a command may ask for runs several times, into one folder."""
    for old in sorted(_files(root), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        if not may_be_at_work(*_writer(old)):
            old.unlink(missing_ok=True)
    program = Path(sys.argv[0]).name
    words = ["regard" if program == "__main__.py" else program, *sys.argv[1:]]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": " ".join(words), "started": started, "runs": {}}


def read_progress(root: Path) -> list[Row]:
    """A row for each run that a command has asked for, command by command."""
    found: list[tuple[str, Row]] = []
    for path in _files(root):
        with suppress(RegardError, OSError, KeyError, TypeError):
            about, ended = read_json(path), not may_be_at_work(*_writer(path))
            for name, row in about["runs"].items():
                if ended and row["state"] in ("running", "waiting"):
                    row["state"] = "stopped"
                hours = row["seconds"] * row.pop("processes") / 3600
                row |= {"core_hours": round(hours, 4), "command": about["command"], "run": name}
                found.append((about["started"], row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def summarise(rows: Sequence[Row]) -> str:
    """How many runs are in which state, and what they have cost."""
    count = Counter(row["state"] for row in rows)
    states = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
    return f"{states or 'nothing'}; {sum(row['core_hours'] for row in rows):.2f} core hours"


def _files(root: Path) -> list[Path]:
    return [path for path in (root / FOLDER).glob("*-*.json") if path.stem.split("-")[1].isdigit()]


def _writer(path: Path) -> tuple[str, int]:
    host, process = path.stem.split("-")
    return host, int(process)
