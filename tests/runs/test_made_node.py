"""What a node of a cluster does with an order, without a cluster: where a run is trained, what is
sent, which files it is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.errors import RegardError
from regard.runs import RunConfig, assemble, execute, ray_node
from regard.runs.files import content_hash
from regard.runs.parcels import pack

SMALL = {"hidden": 4, "batch": 2, "updates": 4, "held_out": 4, "evaluate_every": 2,
         "checkpoint_every": 2}  # fmt: skip


class Unavailable(Exception): ...


class Mailbox:
    """Takes news; the first calls break."""

    def __init__(self, breaks: int = 0):
        self.news: list[tuple[str, dict[str, Any], str]] = []
        self.breaks = breaks
        self.put = SimpleNamespace(remote=self._put)

    def _put(self, name: str, event: dict[str, Any], stamp: str) -> Any:
        self.news.append((name, event, stamp))
        if len(self.news) <= self.breaks:
            return Unavailable()
        return None


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    def get(ref: Any) -> Any:
        if isinstance(ref, Exception):
            raise ref
        return ref

    made = SimpleNamespace(get=get, exceptions=SimpleNamespace(ActorUnavailableError=Unavailable))
    known = ray_node.import_module
    monkeypatch.setattr(ray_node, "import_module", lambda n: made if n == "ray" else known(n))
    monkeypatch.setattr(ray_node.time, "sleep", lambda seconds: None)
    return made


class Worker:
    def __init__(self) -> None:
        self.killed = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> int:
        return -9


@pytest.fixture
def trains(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Workers that train in this process; where they did, and by which preset."""
    places: list[tuple[str, str]] = []

    def order(worker: Any, config: Any, root: str, preset: str) -> Any:
        places.append((root, preset))
        yield {"event": "progress", "numbers": [1, 4, 0.5, None]}
        execute(RunConfig.from_json(config), Path(root))
        yield {"event": "done"}

    monkeypatch.setattr(ray_node, "start_worker", lambda environment: Worker())
    monkeypatch.setattr(ray_node, "order_run", order)
    return places


def make_order(root: Path, config: RunConfig, **more: Any) -> dict[str, Any]:
    return {
        "name": config.name, "config": config.to_json(), "root": str(root), "mark": "m",
        "hashes": {}, "parcel": [], "environment": {}, "preset": "chapter36", **more,
    }  # fmt: skip


def test_a_node_that_shares_the_folder_trains_there(
    trains: list[tuple[str, str]], tmp_path: Path
) -> None:
    config = assemble("reversal", "chapter36", 0, SMALL)
    (tmp_path / ray_node.MARK).write_text("m")
    box = Mailbox()
    news = ray_node.train_on_node(make_order(tmp_path, config), {}, box)
    assert news == {"event": "done"} and trains == [(str(tmp_path), "chapter36")]
    assert [(name, event["event"]) for name, event, _ in box.news] == [(config.name, "progress")]
    assert (tmp_path / config.name / "DONE").is_file()


def test_a_node_without_the_folder_sends_what_it_makes(
    trains: list[tuple[str, str]], tmp_path: Path
) -> None:
    config = assemble("reversal", "chapter36", 0, SMALL)
    box = Mailbox()
    order = make_order(tmp_path / "runs", config, parcel=pack(tmp_path / "runs" / config.name))
    assert ray_node.train_on_node(order, {}, box) == {"event": "done"}
    ((place, _),) = trains
    assert Path(place).name == "runs" and not Path(place).exists(), "it is gone afterwards"
    sent = [event for _, event, _ in box.news if event["event"] == "files"]
    assert sent and any("DONE" in str(one[0]) for event in sent for one in event["files"])
    assert not (tmp_path / "runs").exists()


def test_news_that_were_not_taken_are_told_again_with_the_same_stamp(
    trains: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = assemble("reversal", "chapter36", 0, SMALL)
    (tmp_path / ray_node.MARK).write_text("m")
    box = Mailbox(breaks=2)
    assert ray_node.train_on_node(make_order(tmp_path, config), {}, box) == {"event": "done"}
    assert len(box.news) == 3 and len({stamp for _, _, stamp in box.news}) == 1
    clock = iter(range(0, 1000, 40))
    monkeypatch.setattr(ray_node.time, "monotonic", lambda: float(next(clock)))
    deaf = Mailbox(breaks=99)
    with pytest.raises(Unavailable):
        ray_node.train_on_node(make_order(tmp_path, config), {}, deaf)
    assert len(deaf.news) == 2, "for a minute, not for ever"


def test_a_worker_that_died_is_told_of_and_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker()
    monkeypatch.setattr(ray_node, "start_worker", lambda environment: worker)
    monkeypatch.setattr(ray_node, "order_run", lambda *about: iter(()))
    (tmp_path / ray_node.MARK).write_text("m")
    config = assemble("reversal", "chapter36", 0, SMALL)
    news = ray_node.train_on_node(make_order(tmp_path, config), {}, Mailbox())
    assert news == {"event": "died", "code": -9} and worker.killed


def test_who_shares_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ray_node.MARK).write_text("m")
    file = tmp_path / "data.txt"
    file.write_text("a")
    same, other = {str(file): content_hash(file)}, {str(file): "0"}
    shares = ray_node.shares_folder
    assert shares(str(tmp_path), "m", same)
    assert not shares(str(tmp_path), "x", same) and not shares(str(tmp_path), "m", other)
    assert not shares(str(tmp_path / "no"), "m", same)
    monkeypatch.setenv(ray_node.ALONE, "no")
    assert not shares(str(tmp_path), "m", same)


def test_what_a_node_says_of_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    found = ray_node.describe_node(
        str(tmp_path), "m", ["mine.part", "json", "nobodys"], f"{tmp_path}:/nowhere", {}
    )
    assert found["missing"] == ["nobodys"] and found["shared"] is False
    assert set(found["versions"]) == {"Regard", "torch", "Python"}


def test_files_that_a_node_lacks_are_written_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name in ("a.txt", "b.txt"):
        (there / name).write_text(name)
    hashes = {str(there / n): content_hash(there / n) for n in ("a.txt", "b.txt")}
    contents = {digest: Path(path).read_bytes() for path, digest in hashes.items()}
    assert ray_node._place_files(hashes, contents, tmp_path / "to") == {}, "they are here"
    monkeypatch.setenv(ray_node.ALONE, "no")
    places = ray_node._place_files(hashes, contents, tmp_path / "to")
    assert places[there] == tmp_path / "to" / "0" / "there"
    assert places[there / "a.txt"].read_text() == "a.txt"
    assert places[there / "b.txt"] == places[there] / "b.txt"
    with pytest.raises(RegardError, match=r"The node has no .*a\.txt, unlike the others"):
        ray_node._place_files(hashes, {}, tmp_path / "again")
    told = ray_node._speak_of(
        {"event": "failed", "faults": [f"{places[there / 'a.txt']} is bad."]}, places
    )
    assert told["faults"] == [f"{there / 'a.txt'} is bad."]
    assert ray_node._speak_of({"event": "done"}, places) == {"event": "done"}


def test_a_worker_stays_until_it_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lasting(Worker):
        alive = True

        def poll(self) -> int | None:
            return None if self.alive else 1

    started: list[tuple[dict[str, str], str]] = []
    workers = [Lasting(), Lasting()]

    def start(environment: dict[str, str], module: str) -> Any:
        started.append((environment, module))
        return workers[len(started) - 1]

    news: list[list[dict[str, Any]]] = [
        [{"event": "progress"}, {"event": "done", "n": 1}], [{"event": "done", "n": 2}],
        [{"event": "done", "n": 3}], [],
    ]  # fmt: skip
    monkeypatch.setattr(ray_node, "_kept", {})
    monkeypatch.setattr(ray_node, "start_worker", start)
    monkeypatch.setattr(ray_node, "give_order", lambda worker, order: iter(news.pop(0)))
    assert ray_node.do_on_node({}, "m", {"A": "1"}) == {"event": "done", "n": 1}
    assert ray_node.do_on_node({}, "m", {"A": "1"})["n"] == 2 and len(started) == 1
    workers[0].alive = False
    assert ray_node.do_on_node({}, "m", {"A": "1"})["n"] == 3 and len(started) == 2
    assert ray_node.do_on_node({}, "m", {"A": "1"}) == {"event": "died", "code": -9}
    assert ray_node._kept == {} and started[0] == ({"A": "1"}, "m")
