"""Many runs on a Ray cluster: a task a run, one CPU and one thread each.

The driver keeps nothing that is not in the folder of runs: killed and started again, it goes on
with what is there. Ray's own retries are off, because a retry has to begin with the newest state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.plugins import is_outside
from regard.runs.config import RunConfig
from regard.runs.files import BUSY, content_hash, locked
from regard.runs.local import train_in_this_process
from regard.runs.members import environment_for, is_portable, modules_of
from regard.runs.orders import Orders
from regard.runs.parcels import files_of, pack, receive, spell_out
from regard.runs.ray_cluster import (
    DEATHS,
    Place,
    ask_nodes,
    connect,
    find_nodes,
    mark_folder,
    stay_on,
)
from regard.runs.ray_node import BETWEEN, PATIENCE, Mailbox, train_on_node
from regard.runs.run import Run


class TrainOnRay:
    """Trains runs on the cluster at an address, or on the one that Ray finds or starts."""

    def __init__(self, address: str | None = None):
        self.address = address

    def __call__(self, configs: Sequence[RunConfig], orders: Orders) -> list[str]:
        """Have all runs made; what a notebook or script defines, this process trains itself."""
        apart = [config for config in configs if is_portable(config)]
        faults: list[str] = []
        if apart:
            with connect(self.address) as ray:
                faults = _Driver(ray, apart, orders).work()
        for config in configs:
            if config not in apart:
                faults += train_in_this_process(config, orders)
        return faults


class _Driver:
    """Gives runs to the cluster, a few more than it has CPUs, and follows them to their ends."""

    def __init__(self, ray: Any, configs: Sequence[RunConfig], orders: Orders):
        self.ray, self.orders, self.root = ray, orders, orders.root.resolve()
        self.configs = {config.name: config for config in configs}
        self.widest = max(config.training.processes for config in configs)
        self.environment = environment_for(configs)
        self.mark = mark_folder(self.root)
        paths = (path.absolute() for config in configs for path in files_of(config))
        self.hashes = {str(path): content_hash(path) for path in dict.fromkeys(paths)}
        self.flying: dict[Any, str] = {}
        self.deaths: Counter[str] = Counter()
        self.busy: dict[str, float] = {}  # since when another process was seen at a run
        self.held: dict[str, ExitStack] = {}  # locks of the folders that are written here
        self.faults: list[str] = []
        self.run = ray.remote(num_cpus=1, max_retries=0)(train_on_node)

    def work(self) -> list[str]:
        """Have it all done; returns the faults."""
        alone = self._look_round()
        self._open_mailbox()
        self.contents = self._put_files() if alone else {}
        self.alone, self.waiting = alone, list(reversed(self.configs))
        try:
            while self.waiting or self.flying:
                self._submit()
                self._hear()
        except self.ray.exceptions.RayError as error:
            self.faults.append(
                f"The cluster was lost ({type(error).__name__})."
                " Ask again and the runs go on from their last checkpoints."
            )
        finally:
            self._leave()
        return self.faults

    def _open_mailbox(self) -> None:
        """Where the news of all nodes come in: a process beside this one."""
        here = stay_on(self.ray.get_runtime_context().get_node_id(), soft=True)
        self.mailbox = self.ray.remote(num_cpus=0)(Mailbox).options(**here).remote()
        self.heard, self.answered = 0, time.monotonic()

    def _look_round(self) -> bool:
        """Ask every node whether it can do this; whether one of them shares no folder."""
        modules = [name for name in modules_of(self.configs.values()) if is_outside(name)]
        place = Place(self.root, self.mark, self.hashes)
        nodes = [*find_nodes(self.ray).values()]
        answers, faults = ask_nodes(self.ray, nodes, place, modules, self.environment["PYTHONPATH"])
        faults += self._find_too_wide(nodes)
        if faults:
            raise RegardError(*dict.fromkeys(faults))
        return not answers or not all(answer["shared"] for answer in answers.values())

    def _find_too_wide(self, nodes: Sequence[dict[str, Any]]) -> list[str]:
        """The processes of one run are on one node: some node has to have a CPU for each."""
        most = max((int(node["Resources"].get("CPU", 0)) for node in nodes), default=0)
        if self.widest <= max(1, most):
            return []
        return [
            f"No node has the {self.widest} CPUs that training.processes={self.widest} takes; the"
            f" largest has {most}. Lower processes: over several machines, use torchrun."
        ]

    def _put_files(self) -> dict[str, Any]:
        """The content of every file that a run reads, by its hash, for nodes that lack it."""
        places = {digest: Path(path) for path, digest in self.hashes.items()}
        return {digest: self.ray.put(path.read_bytes()) for digest, path in places.items()}

    def _submit(self) -> None:
        """Keep all CPUs busy, and no more than that waiting in the cluster."""
        cpus = int(self.ray.cluster_resources().get("CPU", 0)) // self.widest
        most = self.orders.jobs or max(1, cpus + 1)
        while self.waiting and len(self.flying) < most:
            name = self.waiting.pop()
            config = self.configs[name]
            paths = [str(path.absolute()) for path in files_of(config)]
            order = {
                "name": name, "config": spell_out(config), "root": str(self.root),
                "mark": self.mark, "preset": self.orders.preset, "environment": self.environment,
                "hashes": {path: self.hashes[path] for path in paths},
                "parcel": pack(self.root / name) if self.alone else [],
            }  # fmt: skip
            run = self.run.options(num_cpus=config.training.processes)
            self.flying[run.remote(order, self.contents, self.mailbox)] = name

    def _hear(self) -> None:
        ended, _ = self.ray.wait(list(self.flying), timeout=BETWEEN)
        try:
            news = self.ray.get(self.mailbox.take.remote(self.heard))
        except self.ray.exceptions.ActorUnavailableError:  # it may be there again soon
            if time.monotonic() > self.answered + PATIENCE:
                raise
            return
        except self.ray.exceptions.ActorDiedError:
            self._begin_anew()
            return
        self.heard, self.answered = self.heard + len(news), time.monotonic()
        for name, event in news:
            if event["event"] == "files":
                self._keep(name, event["files"])
            elif self.orders.monitor:
                self.orders.monitor.progress(self.configs[name], *event["numbers"])
        for ref in ended:
            if ref in self.flying:  # else it was given up
                self._conclude(ref, self.flying.pop(ref))

    def _begin_anew(self) -> None:
        """The mailbox died, and news with it: all runs go on from what has arrived of them."""
        lost, self.flying = self.flying, {}
        for ref, name in lost.items():
            self.ray.cancel(ref, force=True)
            with suppress(KeyError):
                self.held.pop(name).close()
            self._try_again(name, {"code": "a lost mailbox"})
        self._open_mailbox()

    def _keep(self, name: str, files: list[Any]) -> None:
        """Write what a node without the folder has sent; the folder is held meanwhile."""
        folder = self.root / name
        try:
            if name not in self.held:
                with ExitStack() as stack:
                    stack.enter_context(locked(folder, PATIENCE))
                    self.held[name] = stack.pop_all()
            receive(folder, self.configs[name], files)
        except RegardError as error:
            self._give_up(name, *error.faults)

    def _conclude(self, ref: Any, name: str) -> None:
        """A task has ended: with its run, with a fault, or by a death, after which it is redone."""
        with suppress(KeyError):
            self.held.pop(name).close()
        try:
            news = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, self.ray.exceptions.RayActorError):
                self._give_up(name, f"{name} ended unexpectedly.\n{error}")
                return
            news = {"event": "died", "code": "no way to the driver"}
        except self.ray.exceptions.RayError as error:
            news = {"event": "died", "code": type(error).__name__}
        if Run(self.root / name, self.configs[name]).done:  # also if it died just then
            if self.orders.monitor:
                self.orders.monitor.finished(self.configs[name])
        elif news["event"] == "failed" and not self._may_be_free_soon(name, news["faults"]):
            self._give_up(name, *news["faults"])
        else:
            self._try_again(name, news)

    def _may_be_free_soon(self, name: str, faults: Sequence[str]) -> bool:
        """Whether another process has the run that may be dying; it is given time, not tries."""
        if not any(BUSY in fault for fault in faults):
            return False
        self.deaths[name] -= 1
        return time.monotonic() < self.busy.setdefault(name, time.monotonic()) + PATIENCE

    def _try_again(self, name: str, news: dict[str, Any]) -> None:
        self.deaths[name] += 1
        if self.deaths[name] <= DEATHS:
            self.waiting.append(name)
            time.sleep(BETWEEN * (1 + self.deaths[name]))
            return
        self._give_up(
            name,
            f"{name} was tried {DEATHS} times, and its process died each time, at last with"
            f" {news['code']}. Ask again and it goes on from its last checkpoint.",
        )

    def _give_up(self, name: str, *faults: str) -> None:
        self.faults += faults
        if self.orders.monitor:
            self.orders.monitor.failed(self.configs[name], faults)
        for ref in [ref for ref, other in self.flying.items() if other == name]:
            self.ray.cancel(ref, force=True)
            del self.flying[ref]

    def _leave(self) -> None:
        for ref in self.flying:
            with suppress(Exception):  # the cluster may be gone
                self.ray.cancel(ref, force=True)
        for stack in self.held.values():
            stack.close()
        with suppress(Exception):
            self.ray.kill(self.mailbox)
