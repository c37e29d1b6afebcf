"""Many runs on a Ray cluster: a task a run, one CPU and one thread each.

The driver keeps nothing that is not in the folder of runs: killed and started again, it goes on
with what is there. Ray's own retries are off, because a retry has to begin with the newest state.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from regard.errors import RegardError
from regard.plugins import is_outside
from regard.runs.config import RunConfig
from regard.runs.files import BUSY, content_hash, locked, write_whole
from regard.runs.local import train_in_this_process
from regard.runs.members import environment_for, is_portable, modules_of
from regard.runs.orders import Orders
from regard.runs.parcels import files_of, pack, receive, spell_out
from regard.runs.ray_node import (
    BETWEEN,
    MARK,
    PATIENCE,
    Mailbox,
    describe_node,
    own_versions,
    train_on_node,
)
from regard.runs.run import Run

DEATHS = 10  # of workers or nodes under one run, after which it is given up


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


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """Ray, connected; a connection that was there before stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what later versions of Ray will do
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise RegardError(
                "Training on Ray needs the package. Install it: pip install 'regard[ray]'."
            ) from None
        known = ray.is_initialized()
        if not known:
            _init(ray, address)
    try:
        yield ray
    finally:
        if not known:
            ray.shutdown()


def _init(ray: Any, address: str | None) -> None:
    settings = {} if address else {"include_dashboard": False}  # open ports are open doors
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", **settings)
    except (ValueError, RuntimeError, ImportError, OSError) as error:
        where = address or os.environ.get("RAY_ADDRESS") or "a cluster of its own"
        raise RegardError(
            f"Ray could not connect to {where} ({str(error).splitlines()[0]})."
            " Start it (`ray start --head`), or check --on, REGARD_ON and RAY_ADDRESS."
        ) from None


class _Driver:
    """Gives runs to the cluster, a few more than it has CPUs, and follows them to their ends."""

    def __init__(self, ray: Any, configs: Sequence[RunConfig], orders: Orders):
        self.ray, self.orders, self.root = ray, orders, orders.root.resolve()
        self.configs = {config.name: config for config in configs}
        self.widest = max(config.training.processes for config in configs)
        self.environment = environment_for(configs)
        self.mark = _mark_folder(self.root)
        paths = (path.absolute() for config in configs for path in files_of(config))
        self.hashes = {str(path): content_hash(path) for path in dict.fromkeys(paths)}
        self.flying: dict[Any, str] = {}
        self.deaths: Counter[str] = Counter()
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
        here = self._on(self.ray.get_runtime_context().get_node_id(), soft=True)
        self.mailbox = self.ray.remote(num_cpus=0)(Mailbox).options(**here).remote()
        self.heard, self.answered = 0, time.monotonic()

    def _on(self, node: str, soft: bool = False) -> dict[str, Any]:
        strategies = import_module("ray.util.scheduling_strategies")
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node, soft=soft)}

    def _look_round(self) -> bool:
        """Ask every node whether it can do this; whether one of them shares no folder."""
        modules = [name for name in modules_of(self.configs.values()) if is_outside(name)]
        ask = self.ray.remote(num_cpus=0, max_retries=0)(describe_node)
        path = self.environment["PYTHONPATH"]
        nodes = [node for node in self.ray.nodes() if node["Alive"]]  # some may have one name
        given = (str(self.root), self.mark, modules, path, self.hashes)
        asked = [ask.options(**self._on(node["NodeID"])).remote(*given) for node in nodes]
        answers, faults = [], []
        for name, ref in zip([node["NodeName"] for node in nodes], asked, strict=True):
            try:
                answers.append(self.ray.get(ref, timeout=PATIENCE))
                faults += _faults_of(name, answers[-1])
            except self.ray.exceptions.RayTaskError as error:
                reason = str(error.cause).splitlines()[0] if error.cause else "no reason given"
                faults.append(
                    f"The node {name} cannot use Regard ({reason}). Install it there, too."
                )
            except self.ray.exceptions.RayError:  # it died, or is too busy to say: try without it
                continue
        faults += self._find_too_wide(nodes)
        if faults:
            raise RegardError(*dict.fromkeys(faults))
        return not answers or not all(answer["shared"] for answer in answers)

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
                    stack.enter_context(locked(folder))
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
        elif news["event"] == "failed" and not any(BUSY in fault for fault in news["faults"]):
            self._give_up(name, *news["faults"])
        else:  # a dead one's lock may last for a moment
            self._try_again(name, news)

    def _try_again(self, name: str, news: dict[str, Any]) -> None:
        self.deaths[name] += 1
        if self.deaths[name] <= DEATHS:
            self.waiting.append(name)
            time.sleep(BETWEEN * (1 + self.deaths[name]))
            return
        why = news.get("faults") or [
            f"{name} was tried {DEATHS} times, and its process died each time, at last with"
            f" {news['code']}. Ask again and it goes on from its last checkpoint."
        ]
        self._give_up(name, *why)

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


def _mark_folder(root: Path) -> str:
    """What is written into the folder of runs, so that a node can tell whether it shares it."""
    path = root / MARK
    if not path.is_file():
        write_whole(path, uuid4().hex.encode())
    return path.read_text()


def _faults_of(name: str, answer: dict[str, Any]) -> list[str]:
    """Why a node cannot be used: it would give other numbers, or lacks the user's own modules."""
    ours, theirs = own_versions(), answer["versions"]
    other = [
        f"The node {name} has {what} {theirs.get(what)}, and here is {version}: the numbers might"
        " differ. Install the same version there."
        for what, version in ours.items()
        if theirs.get(what) != version
    ]
    return other + [
        f"The node {name} does not have the module '{module}', which a run needs. Install it"
        " there, or put it into a folder that all nodes share."
        for module in answer["missing"]
    ]
