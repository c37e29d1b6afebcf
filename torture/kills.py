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
from regard.runs import Run, execute
from regard.runs.places import find_parts
from torture.made import hash_run, read_recording, small_config
from torture.tally import Tally

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"forcing": "ratio"},
    {"forcing": "professor"},
    {"report": "best"},
)


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
    number = 0
    while tally.tried < kills:
        config = small_config(number, **SETTINGS[number % len(SETTINGS)])
        began = time.monotonic()
        whole = execute(config, root / "whole")
        usual = time.monotonic() - began
        killed = 0
        folder = root / "cut" / config.name
        while not Run(folder, config).done and killed < 60:
            killed += kill_after(lambda c=config: execute(c, root / "cut"), rng.uniform(0, usual))  # type: ignore[misc]
        cut = execute(config, root / "cut")
        same = hash_run(cut) == hash_run(whole) and not find_parts(cut.folder)
        for _ in range(killed):
            tally.note("the same bits") if same else tally.fail(f"{config.name}: other bits")
        for place in (whole.folder, cut.folder):
            shutil.rmtree(place)
        number += 1
        tally.seconds += time.monotonic() - began
    return tally


def kill_recording(root: Path, kills: int, rng: random.Random) -> Tally:
    """Recordings that are killed: the file is the old one or the new one, and no third."""
    tally = Tally("kills of `record`: the old file or the new one")
    run = execute(small_config(), root / "recorded")
    path = root / "x.safetensors"
    states = {}
    for n in (300, 600):
        regard.record(run, n=n, out=path)
        states[n] = read_recording(path)
    usual = 0.2
    for number in range(kills):
        n = (300, 600)[number % 2]
        kill_after(lambda n=n: regard.record(run, n=n, out=path), rng.uniform(0, 2 * usual))  # type: ignore[misc]

        def whole() -> str:
            found = read_recording(path)
            assert found in states.values(), "a third recording"
            return "the old file or the new one"

        tally.attempt(f"kill {number}", whole)
    regard.record(run, n=300, out=path)
    if find_parts(root):
        tally.fail("a dead writer's file was left")
    return tally
