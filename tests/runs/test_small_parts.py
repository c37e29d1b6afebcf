"""What runs tell, count and write beside their numbers, by hand."""

from __future__ import annotations

import io
import json
import os
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.errors import RegardError
from regard.runs import assemble, execute, execution, provenance, reckoning, status, worker
from regard.runs.checksums import SUMS, final_list, note
from regard.runs.files import locked
from regard.runs.progress import BarMonitor
from regard.runs.status import Status

SMALL = {"hidden": 4, "batch": 2, "held_out": 4, "updates": 4, "evaluate_every": 2}


def test_who_watches_is_told_of_every_update(tmp_path: Path) -> None:
    told: list[tuple[Any, ...]] = []
    config = assemble("reversal", "chapter36", 0, SMALL)
    run = execute(config, tmp_path, lambda *news: told.append(news))
    losses = [row["loss"] for row in run.rows() if "split" not in row]
    known = [row["accuracy"] for row in run.rows() if "split" in row]
    accuracies = [None, None, known[0], known[0]] if len(known) == 2 else [*known[:1] * 2]
    assert [(update, total) for update, total, *_ in told] == [(n, 4) for n in range(1, 5)]
    assert [loss for _, _, loss, _ in told] == losses
    assert len(known) != 2 or [accuracy for *_, accuracy in told] == accuracies
    assert 0 <= run.summary["seconds"] < 600 and run.summary["updates"] == 4
    assert 0 < run.summary["core_seconds"] < 600


@pytest.mark.parametrize("end", [KeyboardInterrupt, BrokenPipeError])
def test_a_worker_whose_driver_is_gone_ends_with_a_code(
    end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(order: Any, watch: Any) -> dict[str, Any]:
        raise end

    monkeypatch.setattr(worker.sys, "stdin", io.StringIO('{"a": 1}\n{"a": 2}\n'))
    monkeypatch.setattr(worker.sys, "stdout", io.StringIO())
    monkeypatch.setattr(worker.sys, "stderr", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        worker.serve(work)
    assert ended.value.code == 1


@pytest.mark.parametrize("accuracy", [None, 0.25])
def test_a_bar_says_the_loss_and_the_accuracy_once_there_is_one(
    accuracy: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[Any, ...]] = []
    monkeypatch.setattr(execution, "make_bar", lambda what, on: lambda *news: shown.append(news))

    def fake(config: Any, root: Any, watch: Any, preset: str) -> None:
        watch(3, 9, 1.23456, accuracy)

    monkeypatch.setattr(execution, "execute", fake)
    execution.train("reversal", progress=True, **SMALL)
    end = "" if accuracy is None else ", accuracy 0.250"
    assert shown == [(3, 9, f"loss 1.235{end}")]


class Stream(io.StringIO):
    """Counts what is sent off at once."""

    flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def serve(order: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    news = Stream()
    worker._serve(worker.train, order, news)
    return [json.loads(line) for line in news.getvalue().splitlines()], news.flushed


def test_a_worker_tells_how_far_it_is_and_that_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SECONDS_BETWEEN_NEWS", 1e9)
    config = assemble("reversal", "chapter36", 0, SMALL)
    order = {"config": config.to_json(), "root": str(tmp_path), "preset": "x"}
    news, flushed = serve(order)
    assert [one["event"] for one in news] == ["progress", "done"]
    assert news[0]["numbers"][:2] == [4, 4], "the last update is told, whatever the time"
    assert news[1]["folder"] == str(tmp_path / config.name) and flushed == 2
    monkeypatch.setattr(worker, "SECONDS_BETWEEN_NEWS", -1.0)
    other = assemble("reversal", "chapter36", 1, SMALL)
    news, _ = serve({**order, "config": other.to_json()})
    assert [one["numbers"][0] for one in news[:-1]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RegardError("One.", "Two."), ["One.", "Two."]),
        (OSError(28, "No space left on device", "/x"), ["/x"]),
        (ZeroDivisionError("oh"), ["A run ended unexpectedly.", "ZeroDivisionError: oh"]),
        (MemoryError(), ["memory"]),
    ],
)
def test_a_worker_tells_what_went_wrong(
    error: Exception, says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*about: Any) -> None:
        raise error

    monkeypatch.setattr(worker, "execute", fail)
    config = assemble("reversal", "chapter36", 0, SMALL)
    (news,), flushed = serve({"config": config.to_json(), "root": "x", "preset": ""})
    assert news["event"] == "failed" and flushed == 1
    for words in says:
        assert any(words in fault for fault in news["faults"])
    assert not isinstance(error, RegardError) or news["faults"] == says


def test_a_worker_whom_nobody_hears_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*about: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(worker, "execute", fail)
    config = assemble("reversal", "chapter36", 0, SMALL)
    with pytest.raises(BrokenPipeError):
        serve({"config": config.to_json(), "root": "x", "preset": ""})


def test_a_lock_names_its_holder_alone(tmp_path: Path) -> None:
    (tmp_path / "LOCK").write_text("12345678901234567890")
    with locked(tmp_path):
        assert (tmp_path / "LOCK").read_text() == str(os.getpid())


def test_the_last_hash_of_a_file_is_the_one_it_has(tmp_path: Path) -> None:
    old, new = (sha256(text).hexdigest() for text in (b"old", b"new"))
    for name in ("a", "b", "c", "d"):
        note(tmp_path, tmp_path / name, old)
    for name in ("a", "b", "c"):
        note(tmp_path, tmp_path / name, new)
    (tmp_path / "a").write_bytes(b"old")  # its new hash was noted, and then it was not written
    (tmp_path / "b").write_bytes(b"new")
    (tmp_path / "c").write_bytes(b"damaged")
    (tmp_path / "d").write_bytes(b"damaged, and noted once")
    wanted = {"a": old, "b": new, "c": new, "d": old}
    assert final_list(tmp_path).decode() == "".join(f"{wanted[n]}  {n}\n" for n in "abcd")
    assert (tmp_path / SUMS).read_text().count("\n") == 7


def test_what_a_run_takes_by_hand() -> None:
    """4 bytes · 4 copies of the weights, 60 of a word, 8 of a held-out place, 4 of a unit."""
    task: Any = SimpleNamespace(vocabulary=50, longest=7, shortest=3, held_out=20)
    model: Any = SimpleNamespace(hidden=10, layers=2, embedding=6, attention_size=5, heads=3)
    weights = 16 * 10 * ((10 + 6 + 5 + 3) * 2 + 6)
    assert reckoning.reckon(task, model, 4) == weights + 60 * 51 + 8 * 7 * 20 + 4 * 4 * 7 * 10
    assert reckoning.reckon(task, model, 30) == weights + 60 * 51 + 8 * 7 * 30 + 4 * 30 * 7 * 10
    text: Any = SimpleNamespace(source="file", vocabulary=50, longest=99, held_out=20)
    assert reckoning.reckon(text, model, 4) == weights + 60 + 8 * 20 + 4 * 4 * 10
    tables: Any = SimpleNamespace(tables=8, bits=3)
    assert reckoning.reckon(tables, model, 4) == weights + 60 * 64 + 8 * 4 + 4 * 4 * 10


def test_a_bar_is_told_how_much_of_how_much() -> None:
    told: list[tuple[float, int, str]] = []
    monitor = BarMonitor(lambda done, total, note: told.append((done, total, note)))
    config = assemble("reversal", "chapter36", 0, {})
    monitor.expect(3)
    monitor.progress(config, 50, 200, 1.5, None)
    monitor.finished(config)
    assert told[-2:] == [(0.25, 3, f"{config.name}: loss 1.500"), (1, 3, config.name)]


def test_how_runs_are_doing_is_written_at_work_and_not_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, wrote = [100.0], list[float]()
    monkeypatch.setattr(status.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(status, "write_json", lambda path, about: wrote.append(clock[0]))
    kept = Status(tmp_path)
    kept.write()
    assert not wrote, "nothing is to be done yet"
    with kept:
        assert wrote == [100.0]
        kept.write(soon=True)
        clock[0] += status.BETWEEN / 2
        kept.write(soon=True)
        assert wrote == [100.0]
        clock[0] += status.BETWEEN
        kept.write(soon=True)
        kept.write()
        assert wrote == [100.0, clock[0], clock[0]]


@pytest.mark.parametrize(
    ("head", "tracked", "changes", "wanted"),
    [("abc", "a.py", "", "abc"), ("abc", "a.py", "M a.py", "abc+"), ("abc", None, "", None),
     (None, "a.py", "", None)],
)  # fmt: skip
def test_the_commit_of_a_run(
    head: str | None, tracked: str | None, changes: str, wanted: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    answers = {"rev-parse": head, "ls-files": tracked, "status": changes}

    def run(words: list[str], **_: Any) -> Any:
        said = answers[words[3]]
        return SimpleNamespace(stdout=f"{said or ''}\n", returncode=int(said is None))

    monkeypatch.setattr(provenance.subprocess, "run", run)
    assert provenance.commit.__wrapped__() == wanted


def test_what_a_file_of_progress_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program, said in (
        ("/bin/regard", "regard"),
        ("x/__main__.py", "regard"),
        ("me.py", "me.py"),
    ):
        monkeypatch.setattr(status.sys, "argv", [program, "train", "reversal"])
        found = status._about_process.__wrapped__(tmp_path)
        assert found["command"] == f"{said} train reversal" and found["runs"] == {}
