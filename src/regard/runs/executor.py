"""Many runs at once, on this machine or on a cluster: the same call, the same bits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from regard.errors import RegardError, unknown
from regard.runs.config import RunConfig
from regard.runs.execution import forget
from regard.runs.local import cores as cores
from regard.runs.local import train_locally
from regard.runs.members import warn_of_changes
from regard.runs.orders import Executor, Orders
from regard.runs.orders import Monitor as Monitor
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
    that fails does not stop the others; its faults are raised when all have ended.
    """
    train, root = choose_executor(on), root or runs_folder()
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


def choose_executor(on: str | None = None) -> Executor:
    """Who trains the runs: by name, else by $REGARD_ON, else this machine."""
    wanted = on or os.environ.get(VARIABLE) or "local"
    if wanted == "local":
        return train_locally
    if wanted == "ray" or wanted.startswith("ray://"):
        from regard.runs.on_ray import TrainOnRay

        return TrainOnRay(None if wanted == "ray" else wanted)
    raise RegardError(unknown("place to train", wanted, ("local", "ray", "ray://HOST:PORT")))
