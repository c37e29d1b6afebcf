"""Kills at random instants: whatever is killed whenever, what comes out in the end is the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import regard
from regard.runs import Run, RunConfig, execute
from regard.runs.places import find_parts
from torture.made import hash_run, read_recording, small_config, tiny_config
from torture.tally import Tally

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"forcing": "ratio"},
    {"forcing": "professor"},
    {"report": "best"},
)
SEEDS = 3  # and so many times so many settings are runs that are killed
LENGTHS = (100, 200)  # samples of the two recordings that replace each other


def fork(action: Callable[[], object]) -> int:
    """A process that does one thing and ends; nothing has to be imported anew for it."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.close(2)  # who is killed has nothing to say
            action()
            code = 0
        finally:
            os._exit(code)
    return process


def kill_after(action: Callable[[], object], seconds: float) -> bool:
    """Begin something, kill it after some time; whether it was killed before its end."""
    process = fork(action)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.0005)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def kill_training(root: Path, kills: int, rng: random.Random) -> Tally:
    """Runs that are killed again and again, each compared with an unbroken one."""
    tally = Tally("kills of `train`, compared with an unbroken run")
    execute(tiny_config(SEEDS), root / "before")  # what it imports, forked processes need not
    unbroken: dict[str, tuple[dict[str, str], float]] = {}
    number = rng.randrange(10**6)
    while tally.tried < kills:
        began = time.monotonic()
        number += 1
        config = tiny_config(number % SEEDS, **SETTINGS[number % len(SETTINGS)])
        if config.name not in unbroken:
            unbroken[config.name] = run_whole(config, root / "whole")
        whole, usual = unbroken[config.name]
        folder, killed = root / "cut" / config.name, 0
        while not Run(folder, config).done and killed < 60:
            # Some soon, so that a run is killed often; some late, so that it ends.
            instant = rng.uniform(0, rng.choice((0.2, 0.5, 1.5)) * usual)
            killed += kill_after(lambda c=config: execute(c, root / "cut"), instant)  # type: ignore[misc]
        cut = execute(config, root / "cut")
        same = hash_run(cut) == whole and not find_parts(cut.folder)
        for _ in range(killed):
            tally.note("the same bits") if same else tally.fail(f"{config.name}: other bits")
        shutil.rmtree(cut.folder)
        tally.seconds += time.monotonic() - began
    return tally


def run_whole(config: RunConfig, root: Path) -> tuple[dict[str, str], float]:
    """The hashes of an unbroken run, and how long it takes in a process of its own."""
    began = time.monotonic()
    os.waitpid(fork(lambda: execute(config, root)), 0)
    return hash_run(Run(root / config.name, config)), time.monotonic() - began


def kill_recording(root: Path, kills: int, rng: random.Random) -> Tally:
    """Recordings that are killed: the file is the old one or the new one, and no third."""
    tally = Tally("kills of `record`: the old file or the new one")
    run = execute(small_config(), root / "recorded")
    path = root / "x.safetensors"
    states, usual = {}, 0.0
    for n in LENGTHS:
        began = time.monotonic()
        regard.record(run, n=n, out=path)
        usual = time.monotonic() - began
        states[n] = read_recording(path)
    for number in range(kills):
        n = LENGTHS[number % 2]
        kill_after(lambda n=n: regard.record(run, n=n, out=path), rng.uniform(0, 1.5 * usual))  # type: ignore[misc]

        def whole() -> str:
            found = read_recording(path)
            assert found in states.values(), "a third recording"
            return "the old file or the new one"

        tally.attempt(f"kill {number}", whole)
    regard.record(run, n=LENGTHS[0], out=path)
    if find_parts(root):
        tally.fail("a dead writer's file was left")
    return tally
