"""Many runs at once, on this machine or on a cluster: the same call, the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from regard.errors import RegardError
from regard.runs.config import RunConfig
from regard.runs.execution import forget
from regard.runs.local import cores as cores
from regard.runs.local import train_in_this_process, train_locally
from regard.runs.members import warn_of_changes
from regard.runs.orders import Executor, Orders
from regard.runs.orders import Monitor as Monitor
from regard.runs.processes import is_first, team_size
from regard.runs.run import Run, runs_folder
from regard.runs.status import Status
from regard.runs.where import LOCAL, choose_place, find_address


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
    status = Status(root, monitor)
    orders = Orders(root, jobs, status, preset)
    if team_size() > 1:
        status.expect(configs)
        with status if is_first() else nullcontext():
            return [_take_part(configs, orders, again, on)]
    wanted = {config.name: config for config in configs}
    missing, there, faults = [], [], []
    status.expect(list(wanted.values()))
    for config in wanted.values():
        if again:
            forget(config, root)
        if (run := Run(root / config.name, config)).done:
            there.append(run)
            status.finished(config)
        else:
            missing.append(config)
    warn_of_changes(there)
    if missing:
        with status:
            faults = train(missing, orders)
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
    if faults := train_in_this_process(config, orders):
        raise RegardError(*faults)
    return Run(orders.root / config.name, config)


def choose_executor(on: str | None = None) -> Executor:
    """Who trains the runs: by name, else by $REGARD_ON, else this machine."""
    if (place := choose_place(on)) == LOCAL:
        return train_locally
    from regard.runs.on_ray import TrainOnRay

    return TrainOnRay(find_address(place))
