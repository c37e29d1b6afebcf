"""Many runs side by side on this machine: one process a core, one thread a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.execution import execute
from regard.runs.members import environment_for, is_portable
from regard.runs.orders import Orders
from regard.training.ranks import LostProcess

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def train_locally(configs: Sequence[RunConfig], orders: Orders) -> list[str]:
    """Have all runs made by processes of this machine, or by this one; returns the faults."""
    widest = max(config.training.processes for config in configs)
    jobs = min(orders.jobs or max(1, cores() // widest), len(configs))
    apart = [config for config in configs if jobs > 1 and is_portable(config)]
    faults = _Pool(apart, orders).work(jobs) if apart else []
    for config in configs:
        if config not in apart:
            faults += train_in_this_process(config, orders)
    return faults


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def train_in_this_process(config: RunConfig, orders: Orders) -> tuple[str, ...]:
    """Train here; returns the faults, of which there are none if all went well."""
    watch = partial(orders.monitor.progress, config) if orders.monitor else None
    try:
        execute(config, orders.root, watch, orders.preset)
    except LostProcess:  # who misses another has no fault
        raise
    except RegardError as error:
        if orders.monitor:
            orders.monitor.failed(config, error.faults)
        return error.faults
    if orders.monitor:
        orders.monitor.finished(config)
    return ()


def start_worker(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """A process that trains what it is told (`runs/worker.py`), with one thread."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "regard.runs.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD, **environment},
    )


def order_run(
    worker: subprocess.Popen[str], config: Mapping[str, Any], root: str, preset: str
) -> Iterator[dict[str, Any]]:
    """Have a worker do one run; its news, the last of which is `done` or `failed` if it lives."""
    assert worker.stdin and worker.stdout
    with suppress(BrokenPipeError):
        worker.stdin.write(json.dumps({"config": config, "root": root, "preset": preset}) + "\n")
        worker.stdin.flush()
    for line in worker.stdout:
        news: dict[str, Any] = json.loads(line)
        yield news
        if news["event"] != "progress":
            return


class _Pool:
    """Worker processes that take configurations from one queue."""

    def __init__(self, configs: Sequence[RunConfig], orders: Orders):
        self.orders = orders
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
                with start_worker(self.environment) as worker:
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
        orders, monitor = self.orders, self.orders.monitor
        for news in order_run(worker, config.to_json(), str(orders.root), orders.preset):
            event = news["event"]
            with self.lock:
                if event == "failed":
                    self._give_up(config, *news["faults"])
                elif event == "done" and monitor:
                    monitor.finished(config)
                elif event == "progress" and monitor:
                    monitor.progress(config, *news["numbers"])
            if event != "progress":
                return True
        with self.lock:
            self._give_up(
                config,
                f"The process that trained {config.name} ended with code {worker.wait()}."
                " Ask again and the run goes on from its last checkpoint.",
            )
        return False

    def _give_up(self, config: RunConfig, *faults: str) -> None:
        self.faults += faults
        if self.orders.monitor:
            self.orders.monitor.failed(config, faults)

    def _fault(self, fault: str) -> None:
        with self.lock:
            self.faults.append(fault)
