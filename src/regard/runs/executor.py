"""Many runs side by side: one process a core, one thread a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.execution import execute, forget
from regard.runs.members import environment_for, is_portable, warn_of_changes
from regard.runs.run import Run, runs_folder

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Monitor(Protocol):
    """Whoever wants to see how the runs go."""

    def expect(self, count: int) -> None:
        """So many runs are to come, those counted that are done already."""

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""

    def finished(self, config: RunConfig) -> None:
        """A run is done (or was, before anybody asked)."""


def run_all(
    configs: Sequence[RunConfig],
    root: Path | None = None,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    preset: str = "",
    again: bool = False,
) -> list[Run]:
    """The runs of all configurations, in order; each is trained once, whoever asks how often.

    With `again`, those that are there are trained anew.
    A run that fails does not stop the others; its faults are raised when all have ended.
    """
    root = root or runs_folder()
    wanted = {config.name: config for config in configs}
    missing, there = [], []
    if monitor:
        monitor.expect(len(wanted))
    for config in wanted.values():
        if again:
            forget(config, root)
        if (run := Run(root / config.name, config)).done:
            there.append(run)
            if monitor:
                monitor.finished(config)
        else:
            missing.append(config)
    warn_of_changes(there)
    jobs = min(jobs or cores(), len(missing))
    apart = [config for config in missing if jobs > 1 and is_portable(config)]
    faults = _Pool(apart, root, monitor, preset).work(jobs) if apart else []
    for config in missing:
        if config not in apart:
            faults += _in_this_process(config, root, monitor, preset)
    if faults:
        raise RegardError(*dict.fromkeys(faults))
    return [Run(root / config.name, config) for config in configs]


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_this_process(
    config: RunConfig, root: Path, monitor: Monitor | None, preset: str
) -> tuple[str, ...]:
    """Train here; returns the faults, of which there are none if all went well."""
    watch = partial(monitor.progress, config) if monitor else None
    try:
        execute(config, root, watch, preset)
    except RegardError as error:
        return error.faults
    if monitor:
        monitor.finished(config)
    return ()


class _Pool:
    """Worker processes that take configurations from one queue."""

    def __init__(
        self, configs: Sequence[RunConfig], root: Path, monitor: Monitor | None, preset: str
    ):
        self.root, self.monitor, self.preset = root, monitor, preset
        self.environment = environment_for(configs)
        self.waiting = list(reversed(configs))
        self.faults: list[str] = []
        self.lock = Lock()
        self.workers: list[subprocess.Popen[str]] = []

    def work(self, jobs: int) -> list[str]:
        """Have it all done; returns the faults."""
        threads = [Thread(target=self._employ, daemon=True) for _ in range(jobs)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(timeout=0.2)  # so that an interrupt is heard
        finally:
            self.waiting.clear()  # so that nobody starts anything new
            for worker in self.workers:
                worker.kill()
        return self.faults

    def _employ(self) -> None:
        """Start a worker and give it work until there is none; one that dies is replaced."""
        try:
            while self.waiting:
                with subprocess.Popen(
                    [sys.executable, "-P", "-m", "regard.runs.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, **ONE_THREAD, **self.environment},
                ) as worker:
                    self.workers.append(worker)
                    while (config := self._next()) and self._listen(worker, config):
                        pass
        except Exception as error:  # whatever goes wrong here is a fault, too
            self._fault(f"A worker could not be used ({type(error).__name__}: {error}).")

    def _next(self) -> RunConfig | None:
        with suppress(IndexError):  # another thread may have been quicker
            return self.waiting.pop()
        return None

    def _listen(self, worker: subprocess.Popen[str], config: RunConfig) -> bool:
        """Have a worker do one run and follow it to its end; False if it died on the way."""
        assert worker.stdin and worker.stdout
        order = {"config": config.to_json(), "root": str(self.root), "preset": self.preset}
        with suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(order) + "\n")
            worker.stdin.flush()
        for line in worker.stdout:
            news: dict[str, Any] = json.loads(line)
            event = news.pop("event")
            with self.lock:
                if event == "failed":
                    self.faults += news["faults"]
                elif event == "done" and self.monitor:
                    self.monitor.finished(config)
                elif event == "progress" and self.monitor:
                    self.monitor.progress(config, *news["numbers"])
            if event != "progress":
                return True
        self._fault(
            f"The process that trained {config.name} ended with code {worker.wait()}."
            " Ask again and the run goes on from its last checkpoint."
        )
        return False

    def _fault(self, fault: str) -> None:
        with self.lock:
            self.faults.append(fault)
