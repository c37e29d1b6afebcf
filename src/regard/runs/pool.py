"""Worker processes that take orders from one queue: one process a core, one thread a process.

An order and its news are JSON objects, one a line, on the worker's standard input and output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from regard.errors import RegardError
from regard.runs.where import LOCAL, find_address

T = TypeVar("T")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TRAINS = "regard.runs.worker"


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_worker(environment: Mapping[str, str], module: str = TRAINS) -> subprocess.Popen[str]:
    """A process that does what it is told, with one thread."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD, **environment},
    )


def give_order(worker: subprocess.Popen[str], order: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Have a worker do one thing; its news, the last of which is `done` or `failed` if it lives."""
    assert worker.stdin and worker.stdout
    with suppress(BrokenPipeError):
        worker.stdin.write(json.dumps(order) + "\n")
        worker.stdin.flush()
    for line in worker.stdout:
        news: dict[str, Any] = json.loads(line)
        yield news
        if news["event"] != "progress":
            return


Idle = list[tuple[str, Mapping[str, str], subprocess.Popen[str]]]
_idle: ContextVar[Idle | None] = ContextVar("idle", default=None)


@contextmanager
def keep_workers() -> Iterator[None]:
    """Workers of pools that follow each other stay: starting one takes seconds."""
    if _idle.get() is not None:  # somebody further out keeps them
        yield
        return
    kept: Idle = []
    token = _idle.set(kept)
    try:
        yield
    finally:
        _idle.reset(token)
        for _, _, worker in kept:
            _dismiss(worker)


def _dismiss(worker: subprocess.Popen[str]) -> None:
    """End a worker that has nothing to do: it ends when its input does."""
    worker.kill()
    with suppress(BrokenPipeError), worker:  # closes its pipes, and waits for it
        pass


@dataclass(frozen=True)
class Needs:
    """What has to be there wherever the work of a pool is done."""

    root: Path  # the folder that is written to
    files: Sequence[Path]
    modules: Sequence[str]


class Pool(ABC, Generic[T]):
    """Worker processes that take things to do from one queue."""

    module = TRAINS

    def __init__(self, things: Sequence[T], environment: Mapping[str, str]):
        self.environment = environment
        self.idle = _idle.get()
        self.waiting = list(reversed(things))
        self.faults: list[str] = []
        self.lock = Lock()
        self.workers: list[subprocess.Popen[str]] = []

    @abstractmethod
    def order(self, thing: T) -> Mapping[str, Any]:
        """What a worker is told."""

    @abstractmethod
    def hear(self, thing: T, news: Mapping[str, Any]) -> None:
        """How it goes: `progress` or `done`; faults are kept already."""

    def give_up(self, thing: T, faults: Sequence[str]) -> None:
        """Something could not be done."""
        self.faults += faults

    @abstractmethod
    def explain_death(self, thing: T, code: int | str) -> str:
        """A sentence for what a worker was at that ended by itself."""

    def work_at(
        self, place: str, jobs: int | None, needs: Needs, here: Callable[[T], object] | None = None
    ) -> None:
        """Have it all done by so many processes, or on a cluster (`runs/where.py`)."""
        if place == LOCAL:
            faults = self.work(jobs or cores(), here)
        else:
            from regard.runs.ray_pool import work_on_ray

            faults = work_on_ray(self, find_address(place), jobs, needs)
        if faults:
            raise RegardError(*dict.fromkeys(faults))

    def work(self, jobs: int, here: Callable[[T], object] | None = None) -> list[str]:
        """Have it all done; returns the faults.

        `here` does in this process what a worker would do: it is one of them, and need not start.
        """
        others = jobs - 1 if here else jobs
        threads = [Thread(target=self._employ, daemon=True) for _ in range(others)]
        try:
            for thread in threads:
                thread.start()
            while here and (thing := self._next()) is not None:
                self._do_here(thing, here)
            for thread in threads:
                while thread.is_alive():
                    thread.join(timeout=0.2)  # so that an interrupt is heard
        finally:
            self.waiting.clear()  # so that nobody starts anything new
            kept = [worker for _, _, worker in self.idle or ()]
            for worker in self.workers:
                if worker not in kept:
                    worker.kill()
        return self.faults

    def _employ(self) -> None:
        """Start a worker and give it work until there is none; one that dies is replaced."""
        try:
            while self.waiting:
                worker = self._hire()
                lives = True
                while lives and (thing := self._next()) is not None:
                    lives = self._listen(worker, thing)
                if lives and self.idle is not None:
                    self.idle.append((self.module, self.environment, worker))
                else:
                    worker.__exit__(None, None, None)  # closes its pipes, and waits for it
        except Exception as error:  # whatever goes wrong here is a fault, too
            self._fault(f"A worker could not be used ({type(error).__name__}: {error}).")

    def _do_here(self, thing: T, do: Callable[[T], object]) -> None:
        try:
            do(thing)
        except RegardError as error:
            with self.lock:
                self.give_up(thing, error.faults)
            return
        with self.lock:
            self.hear(thing, {"event": "done"})

    def _hire(self) -> subprocess.Popen[str]:
        """A worker that is there and has nothing to do, or a new one."""
        with self.lock:
            for place, (module, environment, worker) in enumerate(self.idle or ()):
                alike = (module, environment) == (self.module, self.environment)
                if alike and worker.poll() is None:
                    assert self.idle is not None
                    del self.idle[place]
                    break
            else:
                worker = start_worker(self.environment, self.module)
            self.workers.append(worker)
        return worker

    def _next(self) -> T | None:
        with suppress(IndexError):  # another thread may have been quicker
            return self.waiting.pop()
        return None

    def _listen(self, worker: subprocess.Popen[str], thing: T) -> bool:
        """Have a worker do one thing and follow it to its end; False if it died on the way."""
        for news in give_order(worker, self.order(thing)):
            with self.lock:
                if news["event"] == "failed":
                    self.give_up(thing, news["faults"])
                else:
                    self.hear(thing, news)
            if news["event"] != "progress":
                return True
        told = self.explain_death(thing, worker.wait())
        with self.lock:
            self.give_up(thing, [told])
        return False

    def _fault(self, fault: str) -> None:
        with self.lock:
            self.faults.append(fault)
