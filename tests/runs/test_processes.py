"""One run by two processes: killed and gone on with, it has the bits of one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute, execution, processes, run_all

SMALL = {
    "hidden": 8, "batch": 6, "held_out": 10, "evaluate_every": 10, "checkpoint_every": 20,
    "updates": 100, "layers": 2, "dropout": 0.3,
}  # fmt: skip
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


def config(**settings: Any) -> RunConfig:
    return assemble("reversal", "chapter36", 0, {**SMALL, "processes": 2, **settings})


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return execute(config(), tmp_path_factory.mktemp("unbroken"))


def find_ranks() -> dict[int, int]:
    """The processes that train for this one, by their rank."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"regard.runs.worker" in (path / "cmdline").read_bytes():
                words = (path / "environ").read_bytes().split(b"\0")
                rank = next(int(word[5:]) for word in words if word.startswith(b"RANK="))
                found[rank] = int(path.name)
    return found


def agree(run: Run, other: Run) -> None:
    assert run.summary["weights"] == other.summary["weights"]
    assert run.metrics == other.metrics
    assert run.rows() == other.rows()
    for path in other.folder.glob("checkpoints/*"):
        assert (run.folder / "checkpoints" / path.name).read_bytes() == path.read_bytes()
    assert not (run.folder / "state.safetensors").exists()


@linux
def test_a_process_is_killed(unbroken: Run, tmp_path: Path) -> None:
    rank, when, killed = random.randrange(2), random.randrange(1, 60), []

    def watch(update: int, *news: object) -> None:
        if update >= when and not killed:
            os.kill(find_ranks()[rank], signal.SIGKILL)
            killed.append(time.monotonic())

    with pytest.raises(RegardError) as caught:
        execute(config(), tmp_path, watch)
    assert time.monotonic() - killed[0] < 30, "all stop within seconds, also on a busy machine"
    (fault,) = caught.value.faults
    assert f"Process {rank + 1} of 2 that trained {config().name} ended with code -9" in fault
    assert not find_ranks(), "nobody is left behind"
    run = Run(tmp_path / config().name, config())
    assert not run.done
    agree(go_on(run), unbroken)


def go_on(run: Run) -> Run:
    """As torchrun does it: the same command in every process, which finds its rank around it."""
    command = [sys.executable, "-m", "regard", "train", "reversal", "--json"]
    command += ["--runs", str(run.folder.parent), *(f"{k}={v}" for k, v in SMALL.items())]
    common = {"WORLD_SIZE": "2", processes.STORE: str(run.folder.parent / "store")}
    common |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    workers = [
        subprocess.Popen(
            command,
            env={**os.environ, **common, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [worker.communicate(timeout=200) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0, 0], said
    assert json.loads(said[0][0])["run"] == str(run.folder)
    assert said[1] == ("", ""), "one process speaks"
    return run


def tell(*news: tuple[int, dict[str, Any]]) -> tuple[str, ...]:
    """The faults of two processes that tell these news."""
    team = processes._Team(config(), Path("store"))
    for one in news:
        team.news.put(one)
    with pytest.raises(RegardError) as caught:
        team.follow(None)
    return caught.value.faults


def test_what_goes_wrong_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    fault = {"event": "failed", "faults": ["The loss became nan."]}
    lost = {"event": "failed", "faults": [processes.LOST]}
    died = {"event": "died", "code": -9}
    progress = {"event": "progress", "numbers": [1, 2, 0.5, None]}
    assert tell((0, progress), (0, fault), (1, fault)) == ("The loss became nan.",)
    assert tell((0, lost), (1, fault)) == ("The loss became nan.",), "who misses another waits"
    assert "Process 2 of 2" in tell((0, lost), (1, died))[0]
    assert tell((0, lost), (1, lost)) == (processes.LOST,), "and not for ever"


def test_a_run_that_is_there_starts_nobody(unbroken: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "launch", lambda *given: pytest.fail("something was started"))
    settings = {**SMALL, "training.processes": 2}
    run = regard.train("reversal", "chapter36", out=unbroken.folder.parent, **settings)
    assert run.metrics == unbroken.metrics
    alone = assemble("reversal", "chapter36", 0, SMALL)
    assert alone.name != run.folder.name, "another number of processes is another run"


def test_numbers_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(RegardError, match="one of 3, and the run is made by 2"):
        execute(config(), tmp_path)
    with pytest.raises(RegardError, match="leave out --seeds, --jobs and --on"):
        run_all([config(), config(hidden=4)], tmp_path)
    with pytest.raises(RegardError, match="leave out --seeds, --jobs and --on"):
        run_all([config()], tmp_path, on="ray")
    assert execution.as_team({"hidden": 4})["training.processes"] == 3
    assert execution.as_team({"processes": 2}) == {"processes": 2}


def test_what_others_cannot_import_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "is_portable", lambda config: False)
    with pytest.raises(RegardError, match="Put it into a module"):
        execute(config(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_only_who_has_a_fault_of_its_own_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit), processes.one_voice():
        raise RegardError("All know this.")
    monkeypatch.setattr(processes, "_joined", [1])
    with pytest.raises(RegardError, match="no such file here"), processes.one_voice():
        raise RegardError("There is no such file here.")
    with pytest.raises(SystemExit), processes.one_voice():
        raise processes.LostProcess(processes.LOST)
