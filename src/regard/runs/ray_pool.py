"""What a pool has to do, done by the nodes of a Ray cluster that share a folder with the driver.

A thing that was cut by a death, of a worker or of a node, is done again, elsewhere. Nothing is in
the driver that is not in the folder: killed and started again, it goes on with what is there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Generic

from regard.errors import RegardError
from regard.plugins import is_outside
from regard.runs.files import content_hash
from regard.runs.pool import Needs, Pool, T
from regard.runs.ray_cluster import (
    DEATHS,
    Place,
    ask_nodes,
    connect,
    find_nodes,
    mark_folder,
    stay_on,
)
from regard.runs.ray_node import BETWEEN, do_on_node

LOOK = 1.0  # seconds to wait for news before the nodes are looked at again


def work_on_ray(pool: Pool[T], address: str | None, jobs: int | None, needs: Needs) -> list[str]:
    """Have all that waits in a pool done, `jobs` things at a time; returns the faults."""
    needs.root.mkdir(parents=True, exist_ok=True)
    with connect(address) as ray:
        return _Shift(ray, pool, jobs, needs).work()


class _Shift(Generic[T]):
    """Gives things to nodes, a CPU each, and follows them to their ends."""

    def __init__(self, ray: Any, pool: Pool[T], jobs: int | None, needs: Needs):
        self.ray, self.pool, self.jobs = ray, pool, jobs
        root = needs.root.resolve()
        hashes = {str(path.absolute()): content_hash(path) for path in needs.files}
        self.place = Place(root, mark_folder(root), hashes)
        self.modules = [name for name in needs.modules if is_outside(name)]
        self.flying: dict[Any, tuple[T, str]] = {}  # with the nodes that are at it
        self.deaths: Counter[T] = Counter()
        self.known: set[str] = set()
        self.cpus: dict[str, int] = {}  # of the nodes that can be used
        self.do = ray.remote(num_cpus=1, max_retries=0)(do_on_node)

    def work(self) -> list[str]:
        """Have it all done; returns the faults."""
        try:
            while self.pool.waiting or self.flying:
                self._look_round()
                self._submit()
                self._hear()
        except self.ray.exceptions.RayError as error:
            self.pool.faults.append(
                f"The cluster was lost ({type(error).__name__}). Ask again: what is done stays."
            )
        finally:
            self.pool.waiting.clear()
            for ref in self.flying:
                with suppress(Exception):  # the cluster may be gone
                    self.ray.cancel(ref, force=True)
        return self.pool.faults

    def _look_round(self) -> None:
        """Find the nodes that see the folder: those that are new are asked, others may be gone."""
        alive = find_nodes(self.ray)
        new = [node for name, node in alive.items() if name not in self.known]
        self.cpus = {name: cpus for name, cpus in self.cpus.items() if name in alive}
        if new:
            path = self.pool.environment.get("PYTHONPATH", "")
            answers, faults = ask_nodes(self.ray, new, self.place, self.modules, path)
            if faults and not self.known:  # later, those that are there are enough
                raise RegardError(*dict.fromkeys(faults))
            usable = [name for name, answer in answers.items() if answer["shared"] and not faults]
            self.cpus |= {name: int(alive[name]["Resources"].get("CPU", 0)) for name in usable}
            self.known |= {*alive}
        if not any(self.cpus.values()) and not self.flying:
            raise RegardError(
                f"No node of the cluster sees {self.place.root} and the files that are needed, as"
                " this machine does. Put them into a folder that all nodes share."
            )

    def _submit(self) -> None:
        """Keep all CPUs of these nodes busy."""
        busy = Counter(node for _, node in self.flying.values())
        for node, cpus in self.cpus.items():
            for _ in range(cpus - busy[node]):
                if not self.pool.waiting or len(self.flying) >= (self.jobs or len(self.flying) + 1):
                    return
                thing = self.pool.waiting.pop()
                said = dict(self.pool.order(thing)), self.pool.module, dict(self.pool.environment)
                self.flying[self.do.options(**stay_on(node)).remote(*said)] = thing, node

    def _hear(self) -> None:
        ended, _ = self.ray.wait(list(self.flying), timeout=LOOK)
        for ref in ended:
            thing, _ = self.flying.pop(ref)
            try:
                news = self.ray.get(ref)
            except self.ray.exceptions.RayTaskError as error:
                news = {"event": "failed", "faults": [f"A node ended unexpectedly.\n{error}"]}
            except self.ray.exceptions.RayError as error:
                news = {"event": "died", "code": type(error).__name__}
            self._conclude(thing, news)

    def _conclude(self, thing: T, news: Mapping[str, Any]) -> None:
        """A task has ended: done, with a fault, or by a death, after which it is done again."""
        if news["event"] == "done":
            self.pool.hear(thing, news)
        elif news["event"] == "failed":
            self.pool.give_up(thing, news["faults"])
        elif self.deaths[thing] < DEATHS:
            self.deaths[thing] += 1
            self.pool.waiting.append(thing)
            time.sleep(BETWEEN * self.deaths[thing])
        else:
            self.pool.give_up(thing, [self.pool.explain_death(thing, news["code"])])
