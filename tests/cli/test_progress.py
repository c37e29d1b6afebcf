"""`regard ls progress`: what all runs of a command are doing, have cost, and lack."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import Command

from regard.errors import RegardError
from regard.runs import RunConfig, assemble, execute, run_all
from regard.runs.files import locked, read_tensors
from regard.runs.places import HOST
from regard.runs.status import FOLDER, KEPT, Status, _about_process, read_progress, summarise

TINY = {"updates": 4, "hidden": 4, "held_out": 4, "batch": 2}


def config(seed: int, **settings: object) -> RunConfig:
    return assemble("reversal", "chapter36", seed, {**TINY, **settings})


class Told:
    """A monitor that notes who was given up."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def expect(self, count: int) -> None: ...

    def progress(self, config: RunConfig, *news: object) -> None: ...

    def finished(self, config: RunConfig) -> None: ...

    def failed(self, config: RunConfig, faults: tuple[str, ...]) -> None:
        self.failures += faults


def test_all_runs_in_one_view(regard: Command, tmp_path: Path) -> None:
    runs, told = tmp_path / "runs", Told()
    there, good, bad = config(0), config(1), config(2)
    execute(there, runs)
    with locked(runs / bad.name), pytest.raises(RegardError):
        run_all([there, good, bad], runs, 1, told)
    rows = json.loads(regard("ls", "progress", "--json").stdout)
    assert [(row["run"], row["state"]) for row in rows] == [
        (there.name, "done"), (good.name, "done"), (bad.name, "failed"),
    ]  # fmt: skip
    assert rows[1]["update"] == rows[1]["of"] == 4 and rows[1]["seconds"] > 0
    assert rows[2]["faults"] == told.failures and "another process" in told.failures[0]
    shown = regard("ls", "progress").stdout
    assert "2 done, 1 failed" in shown and "core hours" in shown
    assert f"{bad.name}: {told.failures[0]}" in shown, "faults are whole, below the table"
    run_all([bad], runs, 1)
    assert [row["state"] for row in read_progress(runs)] == ["done"] * 3, "one command, one view"


def test_what_is_there_writes_nothing(tmp_path: Path) -> None:
    execute(config(0), tmp_path)
    run_all([config(0)], tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_costs_by_hand(tmp_path: Path) -> None:
    status = Status(tmp_path)
    wide = config(0, processes=2)
    status.expect([wide, config(1)])
    with status:
        status.progress(wide, 2, 4, 0.5, None)
        status.runs[wide.name]["seconds"] = 1800.0
    rows = read_progress(tmp_path)
    assert [row["state"] for row in rows] == ["running", "waiting"]
    assert rows[0]["core_hours"] == 1.0 and rows[0]["loss"] == 0.5
    assert summarise(rows) == "1 running, 1 waiting; 1.00 core hours"


def test_who_died_is_at_work_no_more(tmp_path: Path) -> None:
    status = Status(tmp_path)
    status.expect([config(0)])
    with status:
        pass
    (mine,) = (tmp_path / FOLDER).iterdir()
    assert mine.name == f"{HOST}-{os.getpid()}.json"
    for number in range(KEPT + 3):  # no process has such a number
        (tmp_path / FOLDER / f"{HOST}-{10**9 + number}.json").write_bytes(mine.read_bytes())
    states = [row["state"] for row in read_progress(tmp_path)]
    assert sorted(states) == ["stopped"] * (KEPT + 3) + ["waiting"]
    (tmp_path / FOLDER / f"{HOST}-5.json").write_text("no JSON")
    assert len(read_progress(tmp_path)) == KEPT + 4, "what cannot be read is passed over"
    _about_process.cache_clear()  # as the next command begins
    Status(tmp_path)
    assert mine.exists() and len(list((tmp_path / FOLDER).iterdir())) <= KEPT + 1


def test_seconds_add_up_over_what_was_cut(tmp_path: Path) -> None:
    class Cut(Exception): ...

    def watch(update: int, *news: object) -> None:
        if update == 30:
            raise Cut

    long = config(0, updates=40, evaluate_every=10, checkpoint_every=10)
    with pytest.raises(Cut):
        execute(long, tmp_path, watch)
    state = read_tensors(tmp_path / long.name / "state.safetensors")
    before, worked = float(state["seconds"]), float(state["core_seconds"])
    assert before > 0
    ended = execute(long, tmp_path).summary
    assert ended["seconds"] > before and ended["core_seconds"] > worked > 0
