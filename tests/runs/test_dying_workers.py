"""A worker that dies takes nothing with it: asked again, all runs are what they should be."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute, run_all

SMALL = {"hidden": 8, "batch": 8, "held_out": 10, "evaluate_every": 10, "checkpoint_every": 20}


def config(seed: int) -> RunConfig:
    return assemble("reversal", "chapter36", seed, {**SMALL, "updates": 120})


def find_workers() -> list[int]:
    """The processes that train for this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            words = (path / "cmdline").read_bytes()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"regard.runs.worker" in words and parent == os.getpid():
                found.append(int(path.name))
    return found


class Killer:
    """Kills the first worker that tells anything."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def expect(self, count: int) -> None: ...

    def progress(self, config: RunConfig, *news: object) -> None:
        if not self.killed and (workers := find_workers()):
            self.killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    def finished(self, config: RunConfig) -> None: ...


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_a_worker_is_killed(tmp_path: Path) -> None:
    configs, killer = [config(seed) for seed in range(2)], Killer()
    with suppress(RegardError):  # it may be told, or the run be given to another worker
        run_all(configs, tmp_path / "cut", 2, killer)
    assert killer.killed, "nobody was killed"
    done = [Run(tmp_path / "cut" / c.name, c).done for c in configs]
    assert sum(done) >= 1, "the others went on"
    again = run_all(configs, tmp_path / "cut", 2)
    for run, wanted in zip(again, configs, strict=True):
        whole = execute(wanted, tmp_path / "whole")
        assert run.weights() == whole.weights() and run.metrics == whole.metrics
        assert run.rows() == whole.rows()
    assert not find_workers(), "no worker is left behind"
