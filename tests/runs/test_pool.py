"""Workers that die, fail or are interrupted, as made processes: what is told, who is killed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.runs import RunConfig, assemble, local, pool
from regard.runs.orders import Orders


class Pipe:
    """Takes what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        self.lines.append(text)

    def flush(self) -> None: ...


class Worker:
    """A process that says some lines for each order, then ends with a code."""

    def __init__(self, *news: dict[str, Any], code: int = 0):
        self.stdin, self.stdout, self.code = Pipe(), iter(map(json.dumps, news)), code
        self.killed = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def poll(self) -> None:
        return None

    def wait(self) -> int:
        return self.code

    def kill(self) -> None:
        self.killed = True


class Monitor:
    def __init__(self) -> None:
        self.done: list[RunConfig] = []
        self.numbers: list[tuple[object, ...]] = []
        self.given_up: list[tuple[RunConfig, tuple[str, ...]]] = []

    def expect(self, count: int) -> None: ...

    def progress(self, config: RunConfig, *numbers: object) -> None:
        self.numbers.append(numbers)

    def finished(self, config: RunConfig) -> None:
        self.done.append(config)

    def failed(self, config: RunConfig, faults: Iterable[str]) -> None:
        self.given_up.append((config, tuple(faults)))


PROGRESS = {"event": "progress", "numbers": [1, 2, 0.5, None]}
DONE = {"event": "done", "folder": "x"}


@pytest.fixture
def configs() -> list[RunConfig]:
    return [assemble("reversal", "chapter36", seed, {"updates": 2}) for seed in range(3)]


def employ(
    workers: list[Worker], configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], Monitor]:
    """What one thread of workers, which come in this order, makes of some runs."""
    coming: Iterator[Worker] = iter(workers)
    monkeypatch.setattr(pool, "start_worker", lambda environment, module: next(coming))
    monitor = Monitor()
    trainers = local._Trainers(configs, Orders(Path("root"), 1, monitor, "preset"))
    return trainers.work(1), monitor


def test_a_worker_does_one_run_after_the_other(
    configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(PROGRESS, DONE, DONE, PROGRESS, PROGRESS, DONE)
    faults, monitor = employ([worker], configs, monkeypatch)
    assert faults == [] and monitor.done == configs and len(monitor.numbers) == 3
    assert monitor.numbers[0] == (1, 2, 0.5, None)
    orders = [json.loads(line) for line in worker.stdin.lines]
    assert [RunConfig.from_json(order["config"]) for order in orders] == configs
    assert {(order["root"], order["preset"]) for order in orders} == {("root", "preset")}


def test_a_worker_that_dies_is_replaced_and_told_of(
    configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    dying, other = Worker(DONE, PROGRESS, code=-9), Worker(DONE)
    faults, monitor = employ([dying, other], configs, monkeypatch)
    (fault,) = faults
    assert configs[1].name in fault and "code -9" in fault and "last checkpoint" in fault
    assert monitor.done == [configs[0], configs[2]]
    assert monitor.given_up == [(configs[1], (fault,))]
    assert dying.killed and other.killed, "whoever may still be there is ended"


def test_a_run_that_fails_does_not_stop_the_others(
    configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker({"event": "failed", "faults": ["One.", "Two."]}, DONE, DONE)
    faults, monitor = employ([worker], configs, monkeypatch)
    assert faults == ["One.", "Two."] and monitor.done == configs[1:]
    assert monitor.given_up == [(configs[0], ("One.", "Two."))]


def test_workers_that_cannot_be_started_are_a_fault(
    configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, monitor = employ([], configs, monkeypatch)
    assert len(faults) == 1 and "A worker could not be used" in faults[0] and not monitor.done


def test_an_interrupt_ends_all_workers(
    configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody starts anything new, and whoever is at work is killed."""

    class Waiting:
        def __init__(self, target: object, daemon: bool):
            assert daemon

        def start(self) -> None: ...

        def is_alive(self) -> bool:
            return True

        def join(self, timeout: float) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "Thread", Waiting)
    trainers = local._Trainers(configs, Orders(Path("root"), 2))
    trainers.workers = [Worker(), Worker()]  # type: ignore[list-item]
    with pytest.raises(KeyboardInterrupt):
        trainers.work(2)
    assert trainers.waiting == []
    assert all(worker.killed for worker in trainers.workers)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("jobs", "apart"), [(1, False), (2, True), (9, True)])
def test_one_job_is_done_in_this_process(
    jobs: int, apart: bool, configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    here: list[RunConfig] = []

    class Pool:
        def __init__(self, given: list[RunConfig], orders: Orders):
            assert given == configs

        def work(self, count: int) -> list[str]:
            asked.append(count)
            return ["from a worker"]

    def train(config: RunConfig, orders: Orders) -> tuple[str, ...]:
        here.append(config)
        return ("from here",)

    monkeypatch.setattr(local, "_Trainers", Pool)
    monkeypatch.setattr(local, "train_in_this_process", train)
    faults = local.train_locally(configs, Orders(Path("root"), jobs))
    assert asked == ([min(jobs, 3)] if apart else [])
    assert here == ([] if apart else configs)
    assert faults == (["from a worker"] if apart else ["from here"] * 3)


class Numbers(pool.Pool[int]):
    """A pool whose own process takes part; it cannot do 3."""

    def __init__(self, things: list[int]):
        super().__init__(things, {})
        self.here: list[int] = []
        self.heard: list[int] = []

    def order(self, thing: int) -> dict[str, Any]:
        return {"thing": thing}

    def do(self, thing: int) -> None:
        if thing == 3:
            raise RegardError("3 cannot be done")
        self.here.append(thing)

    def hear(self, thing: int, news: Any) -> None:
        self.heard.append(thing)

    def explain_death(self, thing: int, code: int | str) -> str:
        return f"{thing} ended with {code}"


def test_a_process_that_takes_part_starts_one_worker_less(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []

    def start(*rest: object) -> Worker:
        started.append(Worker(*[DONE] * 20))
        return started[-1]

    monkeypatch.setattr(pool, "start_worker", start)
    alone = Numbers([1, 2, 3, 4])
    assert alone.work(1, alone.do) == ["3 cannot be done"]
    assert alone.here == alone.heard == [1, 2, 4] and not started
    both = Numbers(list(range(10, 30)))
    assert both.work(2, both.do) == [] and len(started) <= 1
    assert sorted(both.heard) == list(range(10, 30))
    told = [json.loads(line)["thing"] for worker in started for line in worker.stdin.lines]
    assert sorted([*both.here, *told]) == list(range(10, 30)), "each once"
