"""Many runs at once, on this machine or on a cluster: the same call, the same bits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from regard.errors import RegardError, unknown
from regard.runs.config import RunConfig
from regard.runs.execution import execute, forget
from regard.runs.local import cores as cores
from regard.runs.local import train_locally
from regard.runs.members import warn_of_changes
from regard.runs.orders import Executor, Orders
from regard.runs.orders import Monitor as Monitor
from regard.runs.processes import is_first, team_size
from regard.runs.run import Run, runs_folder

VARIABLE = "REGARD_ON"


def run_all(
    configs: Sequence[RunConfig],
    root: Path | None = None,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    preset: str = "",
    again: bool = False,
    on: str | None = None,
) -> list[Run]:
    """The runs of all configurations, in order; each is trained once, whoever asks how often.

    With `again`, those that are there are trained anew.
    `on` says where: `local`, `ray` or `ray://HOST:PORT`; by default $REGARD_ON, else local. A run
    that fails does not stop the others; its faults are raised when all have ended. Under torchrun,
    all its processes make one run together.
    """
    train, root = choose_executor(on), root or runs_folder()
    if team_size() > 1:
        return [_take_part(configs, Orders(root, jobs, monitor, preset), again, on)]
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
    faults = train(missing, Orders(root, jobs, monitor, preset)) if missing else []
    if faults:
        raise RegardError(*dict.fromkeys(faults))
    return [Run(root / config.name, config) for config in configs]


def _take_part(configs: Sequence[RunConfig], orders: Orders, again: bool, on: str | None) -> Run:
    """The one run that torchrun has started this process for, and others like it."""
    if len(configs) > 1 or (on or "local") != "local" or orders.jobs not in (None, 1):
        raise RegardError(
            f"torchrun has started {team_size()} processes to make one run together: leave out"
            " --seeds, --jobs and --on. Or leave out torchrun, and several runs go side by side."
        )
    (config,) = configs
    if again and is_first():
        forget(config, orders.root)
    watch = partial(orders.monitor.progress, config) if orders.monitor else None
    return execute(config, orders.root, watch, orders.preset)


def choose_executor(on: str | None = None) -> Executor:
    """Who trains the runs: by name, else by $REGARD_ON, else this machine."""
    wanted = on or os.environ.get(VARIABLE) or "local"
    if wanted == "local":
        return train_locally
    if wanted == "ray" or wanted.startswith("ray://"):
        from regard.runs.on_ray import TrainOnRay

        return TrainOnRay(None if wanted == "ray" else wanted)
    raise RegardError(unknown("place to train", wanted, ("local", "ray", "ray://HOST:PORT")))
