"""Many runs side by side on this machine: one process a core, one thread a process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.execution import execute
from regard.runs.members import environment_for, is_portable
from regard.runs.orders import Orders
from regard.runs.pool import Pool, give_order
from regard.runs.pool import cores as cores
from regard.runs.pool import start_worker as start_worker
from regard.training.ranks import LostProcess


def train_locally(configs: Sequence[RunConfig], orders: Orders) -> list[str]:
    """Have all runs made by processes of this machine, or by this one; returns the faults."""
    widest = max(config.training.processes for config in configs)
    jobs = min(orders.jobs or max(1, cores() // widest), len(configs))
    apart = [config for config in configs if jobs > 1 and is_portable(config)]
    faults = _Trainers(apart, orders).work(jobs) if apart else []
    for config in configs:
        if config not in apart:
            faults += train_in_this_process(config, orders)
    return faults


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


def order_run(
    worker: subprocess.Popen[str], config: Mapping[str, Any], root: str, preset: str
) -> Iterator[dict[str, Any]]:
    """Have a worker do one run; its news, the last of which is `done` or `failed` if it lives."""
    return give_order(worker, {"config": config, "root": root, "preset": preset})


class _Trainers(Pool[RunConfig]):
    """Worker processes that train runs."""

    def __init__(self, configs: Sequence[RunConfig], orders: Orders):
        super().__init__(configs, environment_for(configs))
        self.orders = orders

    def order(self, thing: RunConfig) -> Mapping[str, Any]:
        """A run by its configuration."""
        orders = self.orders
        return {"config": thing.to_json(), "root": str(orders.root), "preset": orders.preset}

    def hear(self, thing: RunConfig, news: Mapping[str, Any]) -> None:
        """Tell whoever wants to see it."""
        monitor = self.orders.monitor
        if monitor and news["event"] == "done":
            monitor.finished(thing)
        elif monitor:
            monitor.progress(thing, *news["numbers"])

    def give_up(self, thing: RunConfig, faults: Sequence[str]) -> None:
        """Whoever wants to see it is told that it came to nothing."""
        super().give_up(thing, faults)
        if self.orders.monitor:
            self.orders.monitor.failed(thing, faults)

    def explain_death(self, thing: RunConfig, code: int | str) -> str:
        """Nothing is lost but what came after the last checkpoint."""
        return (
            f"The process that trained {thing.name} ended with code {code}."
            " Ask again and the run goes on from its last checkpoint."
        )
