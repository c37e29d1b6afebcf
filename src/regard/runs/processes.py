"""One run by several processes: started here, or by torchrun, which may span machines.

The first of them is the run's writer. The others have its state from the first, take their part
of every batch, and write nothing.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from queue import Empty, Queue
from subprocess import Popen
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import torch
import torch.distributed as processes

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.members import environment_for, is_portable
from regard.training.ranks import ALONE, LOST, LostProcess, Ranks

STORE = "REGARD_STORE"  # a file by which the processes of one machine find each other
PATIENCE = timedelta(hours=2)  # for a process that lives and says nothing: it may evaluate
_joined: list[int] = []  # by which number this process has found the others
GRACE = 3.0  # seconds in which the process that died is found, once another one misses it


def team_size() -> int:
    """How many processes whoever started this one has started: by torchrun, or by `launch`."""
    return int(os.environ.get("WORLD_SIZE", 1)) if "RANK" in os.environ else 1


def is_first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return team_size() == 1 or int(os.environ["RANK"]) == 0


@contextmanager
def one_voice() -> Iterator[None]:
    """Of several processes the first one tells what is wrong, or one that is wrong alone."""
    try:
        yield
    except RegardError as error:
        if is_first() or (_joined and not isinstance(error, LostProcess)):
            raise
        raise SystemExit(2) from None


@contextmanager
def join(config: RunConfig) -> Iterator[Ranks]:
    """This process as one of those that make a run; alone where the run says so."""
    wanted, found = config.training.processes, team_size()
    if wanted != found:
        raise RegardError(
            f"This process is one of {found}, and the run is made by {wanted}"
            f" (training.processes={wanted}). Start {wanted}, or say processes={found}, which is"
            " another run."
        )
    if wanted == 1:
        yield ALONE
        return
    on_gpu = config.training.device == "cuda"
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", os.environ["RANK"])))
    store = os.environ.get(STORE)
    rank = int(os.environ["RANK"])
    processes.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method="env://" if store is None else Path(store).as_uri(),
        rank=rank,
        world_size=wanted,
        timeout=PATIENCE,
    )
    _joined.append(rank)
    try:
        yield Ranks(rank, wanted, config.training.device)
    finally:
        processes.destroy_process_group()


def launch(
    config: RunConfig, root: Path, watch: Callable[..., None] | None, preset: str = ""
) -> None:
    """Have a run made by processes of this machine; if one of them ends, all of them do."""
    if not is_portable(config):
        raise RegardError(
            "training.processes is for tasks and models that other processes can import, and this"
            " run has one that the script or notebook itself defines. Put it into a module."
        )
    with TemporaryDirectory() as folder, ExitStack() as stack:
        team = _Team(config, Path(folder, "store"))
        stack.callback(team.stop)
        team.start(root, preset)
        team.follow(watch)


class _Team:
    """The processes of one run, and what they tell."""

    def __init__(self, config: RunConfig, store: Path):
        self.config, self.store = config, store
        self.size = config.training.processes
        self.workers: list[Popen[str]] = []
        self.news: Queue[tuple[int, dict[str, Any]]] = Queue()
        self.threads: list[Thread] = []

    def start(self, root: Path, preset: str) -> None:
        """Start them all and tell each the same."""
        from regard.runs.local import start_worker  # it imports what imports us

        common = {**environment_for([self.config]), STORE: str(self.store), **_loopback()}
        for rank in range(self.size):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(self.size)}
            self.workers.append(start_worker({**common, **own}))
            given = (rank, str(root), preset)
            self.threads.append(Thread(target=self._listen, args=given, daemon=True))
            self.threads[-1].start()

    def _listen(self, rank: int, root: str, preset: str) -> None:
        from regard.runs.local import order_run

        news: dict[str, Any] = {}
        for news in order_run(self.workers[rank], self.config.to_json(), root, preset):
            self.news.put((rank, news))
        if news.get("event") not in ("done", "failed"):
            self.news.put((rank, {"event": "died", "code": self.workers[rank].wait()}))

    def follow(self, watch: Callable[..., None] | None) -> None:
        """Come back when all are done; tell of the first one that is not."""
        done, missed, until = set[int](), "", float("inf")
        while len(done) < self.size:
            try:
                rank, news = self.news.get(timeout=0.2)  # so that an interrupt is heard
            except Empty:
                if time.monotonic() > until:
                    raise RegardError(missed) from None
                continue
            if news["event"] == "progress" and watch:
                watch(*news["numbers"])
            elif news["event"] == "done":
                done.add(rank)
            elif LOST in news.get("faults", ()):  # the one that is gone will show
                missed, until = news["faults"][0], min(until, time.monotonic() + GRACE)
            elif news["event"] == "failed":
                raise RegardError(*news["faults"])
            elif news["event"] == "died":
                raise RegardError(
                    f"Process {rank + 1} of {self.size} that trained {self.config.name} ended with"
                    f" code {news['code']}, so the others were stopped. Ask again and the run goes"
                    " on from its last checkpoint."
                )

    def stop(self) -> None:
        """End all of them, whatever they are at: what is written is whole."""
        for worker in self.workers:
            worker.kill()
        for worker, thread in zip(self.workers, self.threads, strict=True):
            thread.join()
            with worker:  # closes what it was listened to by
                worker.wait()


def _loopback() -> dict[str, str]:
    """Processes of one machine need not be heard outside of it."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    return {f"{what}_SOCKET_IFNAME": name for what in ("GLOO", "NCCL") for name in names[:1]}
