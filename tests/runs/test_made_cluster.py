"""A cluster that is made up: what a driver does when tasks end, fail, die or are out of reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.errors import RegardError
from regard.runs import RunConfig, assemble, execute, on_ray, ray_cluster, ray_pool
from regard.runs.files import BUSY
from regard.runs.orders import Orders
from regard.runs.pool import Needs, Pool
from regard.runs.ray_node import MARK, own_versions

SMALL = {"hidden": 4, "batch": 2, "updates": 2, "held_out": 4, "evaluate_every": 2}


class RayError(Exception): ...


class RayTaskError(RayError):
    def __init__(self, cause: Exception | None = None, text: str = "it broke"):
        super().__init__(text)
        self.cause = cause


class RayActorError(RayError): ...


class ActorUnavailableError(RayActorError): ...


class ActorDiedError(RayActorError): ...


class NodeDied(RayError): ...


class Ref:
    """The promise of a task: `ends` says what comes of it, news or an exception."""

    def __init__(self, what: str, options: Mapping[str, Any], args: tuple[Any, ...], ends: Any):
        self.what, self.options, self.args, self.ends = what, options, args, ends


class Remote:
    def __init__(self, ray: MadeRay, what: Any, options: Mapping[str, Any]):
        self.ray, self.what, self.given = ray, what, options

    def options(self, **more: Any) -> Remote:
        return Remote(self.ray, self.what, {**self.given, **more})

    def remote(self, *args: Any) -> Any:
        if isinstance(self.what, type):
            return self.ray.open(self.given)
        ref = Ref(self.what.__name__, self.given, args, None)
        ref.ends = self.ray.answer(ref)
        self.ray.asked.append(ref)
        return ref


class Box:
    """A mailbox that answers with scripted news, all at once."""

    def __init__(self, news: list[Any]):
        self.news, self.heard = news, list[int]()
        self.take = SimpleNamespace(remote=self._take)

    def _take(self, heard: int) -> Ref:
        self.heard.append(heard)
        return Ref("take", {}, (), self.news.pop(0) if self.news else [])


class MadeRay:
    """As much of Ray as a driver needs; what each task comes to is looked up by a function."""

    exceptions = SimpleNamespace(
        RayError=RayError, RayTaskError=RayTaskError, RayActorError=RayActorError,
        ActorUnavailableError=ActorUnavailableError, ActorDiedError=ActorDiedError,
    )  # fmt: skip

    def __init__(
        self,
        outcome: Callable[[Any], Any],
        news: Sequence[Any] = (),
        cpus: Sequence[int] = (2, 3),
        shared: bool = True,
        versions: Mapping[str, str] | None = None,
    ):
        self.outcome, self.news, self.cpus, self.shared = outcome, [*news], cpus, shared
        self.versions = versions or own_versions()
        self.asked: list[Ref] = []
        self.cancelled: list[tuple[Ref, bool]] = []
        self.boxes: list[Box] = []
        self.killed: list[Any] = []
        self.missing: list[str] = []
        self.flying: list[int] = []
        self.stuck: set[str] = set()  # tasks that never end by themselves
        self.dead: set[str] = set()

    def remote(self, **options: Any) -> Callable[[Any], Remote]:
        return lambda what: Remote(self, what, options)

    def open(self, options: Mapping[str, Any]) -> Box:
        self.boxes.append(Box(self.news if not self.boxes else []))
        self.boxes[-1].options = options  # type: ignore[attr-defined]
        return self.boxes[-1]

    def answer(self, ref: Ref) -> Any:
        if ref.what == "describe_node":
            return {"versions": self.versions, "shared": self.shared, "missing": self.missing}
        return self.outcome(ref.args[0])

    def get(self, ref: Any, timeout: float | None = None) -> Any:
        if isinstance(ref.ends, BaseException):
            raise ref.ends
        return ref.ends

    def put(self, content: bytes) -> bytes:
        return content

    def wait(self, refs: list[Ref], timeout: float) -> tuple[list[Ref], list[Ref]]:
        self.flying.append(len(refs))
        ended = [ref for ref in refs if str(ref.args[0].get("name")) not in self.stuck][:1]
        return ended, [ref for ref in refs if ref not in ended]

    def cancel(self, ref: Ref, force: bool = False) -> None:
        self.cancelled.append((ref, force))

    def kill(self, actor: Any) -> None:
        self.killed.append(actor)

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": f"n{k}", "NodeName": f"node{k}", "Alive": f"n{k}" not in self.dead,
             "Resources": {"CPU": float(cpus)}}
            for k, cpus in enumerate(self.cpus)
        ]  # fmt: skip

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(sum(self.cpus))}

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")


class Monitor:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.given_up: dict[str, tuple[str, ...]] = {}
        self.numbers: list[tuple[object, ...]] = []

    def progress(self, config: RunConfig, *numbers: object) -> None:
        self.numbers.append((config.seed, *numbers))

    def finished(self, config: RunConfig) -> None:
        self.done.append(config.name)

    def failed(self, config: RunConfig, faults: Any) -> None:
        self.given_up[config.name] = tuple(faults)


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was slept; nothing waits. Affinity to a node is told by its name."""
    slept: list[float] = []

    def stay(node: str, soft: bool = False) -> dict[str, Any]:
        return {"node": node, "soft": soft}

    for module in (on_ray, ray_pool):
        monkeypatch.setattr(module.time, "sleep", slept.append)
    for module in (on_ray, ray_pool, ray_cluster):
        monkeypatch.setattr(module, "stay_on", stay)
    return slept


def plan(count: int, **more: Any) -> list[RunConfig]:
    return [assemble("reversal", "chapter36", k, {**SMALL, **more}) for k in range(count)]


def drive(
    ray: MadeRay, configs: list[RunConfig], root: Path, jobs: int | None = None
) -> tuple[list[str], Monitor]:
    monitor = Monitor()
    orders = Orders(root, jobs, monitor, "chapter36")
    return on_ray._Driver(ray, configs, orders).work(), monitor


def train_here(root: Path, configs: list[RunConfig]) -> Callable[[Any], Any]:
    """Tasks that train at once, as a node that shares the folder does."""
    by_name = {config.name: config for config in configs}

    def outcome(order: Any) -> Any:
        execute(by_name[order["name"]], root)
        return {"event": "done"}

    return outcome


def trainings(ray: MadeRay) -> list[Ref]:
    return [ref for ref in ray.asked if ref.what == "train_on_node"]


def test_all_is_done_and_told(tmp_path: Path) -> None:
    configs = plan(3)
    news = [[(configs[1].name, {"event": "progress", "numbers": [1, 2, 0.5, None]})], []]
    ray = MadeRay(train_here(tmp_path, configs), news)
    faults, monitor = drive(ray, configs, tmp_path)
    assert faults == [] and sorted(monitor.done) == sorted(c.name for c in configs)
    assert monitor.numbers == [(1, 1, 2, 0.5, None)]
    orders = [ref.args[0] for ref in trainings(ray)]
    assert [order["name"] for order in orders] == [config.name for config in configs]
    assert all(order["parcel"] == [] and order["preset"] == "chapter36" for order in orders)
    assert {order["mark"] for order in orders} == {(tmp_path / MARK).read_text()}
    assert [ref.options for ref in trainings(ray)] == [{"num_cpus": 1, "max_retries": 0}] * 3
    assert ray.flying[0] == 3 and ray.killed == ray.boxes and len(ray.boxes) == 1
    assert ray.boxes[0].options == {"num_cpus": 0, "node": "here", "soft": True}  # type: ignore[attr-defined]
    assert ray.boxes[0].heard == [0, 1, 1]
    asked = [ref for ref in ray.asked if ref.what == "describe_node"]
    assert [ref.options["node"] for ref in asked] == ["n0", "n1"]
    assert all(ref.options["num_cpus"] == 0 and not ref.options["soft"] for ref in asked)


@pytest.mark.parametrize(("cpus", "jobs", "most"), [((1, 1), None, 3), ((5,), 2, 2), ((), None, 1)])
def test_no_more_fly_than_there_is_room_for(
    cpus: Sequence[int], jobs: int | None, most: int, tmp_path: Path
) -> None:
    configs = plan(4)
    ray = MadeRay(train_here(tmp_path, configs), cpus=cpus)
    faults, _ = drive(ray, configs, tmp_path, jobs)
    assert not faults and max(ray.flying) == most


def test_wide_runs_need_a_wide_node(tmp_path: Path) -> None:
    configs = plan(2, processes=2)
    ray = MadeRay(train_here(tmp_path, plan(2)), cpus=(1, 1))
    with pytest.raises(
        RegardError, match=r"the 2 CPUs that .*processes=2 takes; the largest has 1"
    ):
        drive(ray, configs, tmp_path)
    wide = MadeRay(lambda order: {"event": "failed", "faults": ["No."]}, cpus=(2, 4))
    faults, _ = drive(wide, configs, tmp_path)
    assert faults == ["No.", "No."]
    assert {ref.options["num_cpus"] for ref in trainings(wide)} == {2}
    assert max(wide.flying) == 2, "six CPUs have room for three runs of two, but there are two"


def test_what_failed_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    configs = plan(2)
    good = train_here(tmp_path, configs)

    def outcome(order: Any) -> Any:
        bad = order["name"] == configs[0].name
        return {"event": "failed", "faults": ["Too bad."]} if bad else good(order)

    faults, monitor = drive(MadeRay(outcome), configs, tmp_path)
    assert faults == ["Too bad."] and monitor.done == [configs[1].name]
    assert monitor.given_up == {configs[0].name: ("Too bad.",)}


@pytest.mark.parametrize("death", [NodeDied(), {"event": "died", "code": -9},
                                   RayTaskError(ActorDiedError())])  # fmt: skip
def test_what_died_is_done_again(death: Any, tmp_path: Path, naps: list[float]) -> None:
    (config,) = configs = plan(1)
    good, tries = train_here(tmp_path, configs), list[str]()

    def outcome(order: Any) -> Any:
        tries.append(order["name"])
        return death if len(tries) < 4 else good(order)

    faults, monitor = drive(MadeRay(outcome), configs, tmp_path)
    assert not faults and len(tries) == 4 and monitor.done == [config.name]
    assert naps == pytest.approx([0.4, 0.6, 0.8]), "each time a little longer"


def test_what_always_dies_is_given_up(tmp_path: Path) -> None:
    (config,) = configs = plan(1)
    ray = MadeRay(lambda order: NodeDied())
    faults, monitor = drive(ray, configs, tmp_path)
    assert len(trainings(ray)) == 11
    assert faults == [
        f"{config.name} was tried 10 times, and its process died each time, at last with"
        " NodeDied. Ask again and it goes on from its last checkpoint."
    ]
    assert list(monitor.given_up) == [config.name]


def test_a_run_that_died_when_it_was_done_is_done(tmp_path: Path) -> None:
    configs = plan(1)
    good = train_here(tmp_path, configs)

    def outcome(order: Any) -> Any:
        good(order)
        return NodeDied()

    ray = MadeRay(outcome)
    faults, monitor = drive(ray, configs, tmp_path)
    assert not faults and len(trainings(ray)) == 1 and monitor.done == [configs[0].name]


def test_a_task_that_broke_is_told_with_its_reason(tmp_path: Path) -> None:
    (config,) = configs = plan(1)
    ray = MadeRay(lambda order: RayTaskError(ValueError("no"), "ValueError: no"))
    faults, _ = drive(ray, configs, tmp_path)
    assert faults == [f"{config.name} ended unexpectedly.\nValueError: no"]
    assert len(trainings(ray)) == 1


def test_a_run_that_another_has_is_given_time_not_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config,) = configs = plan(1)
    clock = iter(range(0, 10_000, 2))  # two seconds a look
    monkeypatch.setattr(on_ray.time, "monotonic", lambda: float(next(clock)))
    busy = {"event": "failed", "faults": [f"It is there, {BUSY}."]}
    ray = MadeRay(lambda order: busy)
    faults, monitor = drive(ray, configs, tmp_path)
    assert faults == busy["faults"] and list(monitor.given_up) == [config.name]
    assert 11 < len(trainings(ray)) < 40, "more than the tries of a dead one, within a minute"


def test_a_mailbox_that_died_is_opened_anew(tmp_path: Path) -> None:
    configs = plan(2)
    ray = MadeRay(train_here(tmp_path, configs), [ActorDiedError()])
    faults, monitor = drive(ray, configs, tmp_path)
    assert not faults and len(ray.boxes) == 2 and len(monitor.done) == 2
    assert [force for _, force in ray.cancelled] == [True, True]
    assert ray.killed == [ray.boxes[1]] and ray.boxes[1].heard[0] == 0


def test_a_mailbox_out_of_reach_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = plan(1)
    ray = MadeRay(train_here(tmp_path, configs), [ActorUnavailableError(), ActorUnavailableError()])
    assert drive(ray, configs, tmp_path)[0] == [] and len(ray.boxes) == 1
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(on_ray.time, "monotonic", lambda: float(next(clock)))
    lost = MadeRay(lambda order: {"event": "done"}, [ActorUnavailableError()] * 9)
    lost.stuck = {configs[0].name}
    faults, _ = drive(lost, configs, tmp_path / "other")
    assert faults == ["The cluster was lost (ActorUnavailableError)."
                      " Ask again and the runs go on from their last checkpoints."]  # fmt: skip
    assert len(lost.boxes[0].heard) == 3 and [force for _, force in lost.cancelled] == [True]
    assert lost.killed == lost.boxes


def test_files_of_a_node_without_the_folder_are_written_here(tmp_path: Path) -> None:
    """What cannot be written gives the run up, and its task is ended by force."""
    (config,) = configs = plan(1)
    sent = {"event": "files", "files": [("../out", b"", 0)]}
    ray = MadeRay(lambda order: {"event": "done"}, [[(config.name, sent)]], shared=False)
    ray.stuck = {config.name}
    faults, monitor = drive(ray, configs, tmp_path)
    assert len(faults) == 1 and list(monitor.given_up) == [config.name]
    assert [(ref.args[0]["name"], force) for ref, force in ray.cancelled] == [(config.name, True)]
    assert not (tmp_path.parent / "out").exists()


def test_nodes_that_differ_are_refused(tmp_path: Path) -> None:
    other = {**own_versions(), "torch": "1.0"}
    ray = MadeRay(lambda order: None, versions=other)
    with pytest.raises(RegardError) as caught:
        drive(ray, plan(1), tmp_path)
    assert len(caught.value.faults) == 2 and "node1 has torch 1.0" in caught.value.faults[1]
    lacking = MadeRay(lambda order: None, cpus=(1,))
    lacking.missing = ["mine"]
    with pytest.raises(RegardError, match="node0 does not have the module 'mine'"):
        drive(lacking, plan(1), tmp_path)


class Sums(Pool[int]):
    """Numbers that are doubled somewhere."""

    def __init__(self, count: int):
        super().__init__(range(count), {"PYTHONPATH": "there"})
        self.found: dict[int, int] = {}

    def order(self, thing: int) -> Mapping[str, Any]:
        return {"name": str(thing), "number": thing}

    def hear(self, thing: int, news: Mapping[str, Any]) -> None:
        self.found[thing] = news["twice"]

    def explain_death(self, thing: int, code: int | str) -> str:
        return f"{thing} died with {code}."


def double(order: Any) -> Any:
    return {"event": "done", "twice": 2 * order["number"]}


def shift(ray: MadeRay, pool: Sums, root: Path, jobs: int | None = None) -> list[str]:
    return ray_pool._Shift(ray, pool, jobs, Needs(root, (), ())).work()


def test_things_go_to_nodes_that_see_the_folder(tmp_path: Path) -> None:
    pool, ray = Sums(7), MadeRay(double, cpus=(1, 2))
    assert shift(ray, pool, tmp_path) == []
    assert pool.found == {k: 2 * k for k in range(7)} and max(ray.flying) == 3
    done = [ref for ref in ray.asked if ref.what == "do_on_node"]
    assert [ref.args[0]["number"] for ref in done] == [*range(7)]
    assert [ref.options["node"] for ref in done[:3]] == ["n0", "n1", "n1"]
    assert {ref.args[2]["PYTHONPATH"] for ref in done} == {"there"}
    assert all(ref.options["num_cpus"] == 1 and ref.options["max_retries"] == 0 for ref in done)
    few = MadeRay(double, cpus=(1, 2))
    assert shift(few, Sums(7), tmp_path, jobs=2) == [] and max(few.flying) == 2


def test_a_node_that_is_gone_gets_nothing(tmp_path: Path) -> None:
    ray = MadeRay(double, cpus=(1, 1))
    ray.dead = {"n0"}
    assert shift(ray, Sums(2), tmp_path) == []
    assert {ref.options["node"] for ref in ray.asked if ref.what == "do_on_node"} == {"n1"}


def test_no_node_that_sees_the_folder_is_told(tmp_path: Path) -> None:
    pool = Sums(2)
    with pytest.raises(RegardError, match="No node of the cluster sees"):
        shift(MadeRay(double, shared=False), pool, tmp_path)
    assert pool.waiting == []


def test_things_that_die_are_done_again_and_given_up_at_last(
    tmp_path: Path, naps: list[float]
) -> None:
    tries: list[int] = []

    def outcome(order: Any) -> Any:
        tries.append(order["number"])
        if order["number"] == 1:
            return {"event": "died", "code": 9}
        return NodeDied() if tries.count(0) < 3 else double(order)

    pool = Sums(2)
    assert shift(MadeRay(outcome, cpus=(1,)), pool, tmp_path) == ["1 died with 9."]
    assert tries.count(1) == 11 and pool.found == {0: 0}
    assert naps[:2] == pytest.approx([0.2, 0.4])


def test_faults_of_things_are_told_once(tmp_path: Path) -> None:
    faults = shift(MadeRay(lambda order: {"event": "failed", "faults": ["No."]}), Sums(1), tmp_path)
    assert faults == ["No."]
    (broken,) = shift(MadeRay(lambda order: RayTaskError(None, "Oh")), Sums(1), tmp_path)
    assert broken == "A node ended unexpectedly.\nOh"


def test_a_lost_cluster_leaves_nothing_behind(tmp_path: Path) -> None:
    ray, pool = MadeRay(double, cpus=(2,)), Sums(3)

    def lost(refs: Any, timeout: float) -> Any:
        raise NodeDied

    ray.wait = lost  # type: ignore[method-assign]
    assert shift(ray, pool, tmp_path) == [
        "The cluster was lost (NodeDied). Ask again: what is done stays."
    ]
    assert [force for _, force in ray.cancelled] == [True, True] and pool.waiting == []
