"""Runs on a real Ray cluster of three nodes: whatever dies, the bits are those of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

import regard
from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute, run_all
from regard.runs.ray_node import ALONE, Mailbox

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's word for loopback only
os.environ.setdefault("RAY_worker_niceness", "0")  # else workers wait for all that runs besides
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'regard[ray]'")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of files and of what is to come
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

MARK = f"REGARD_TEST_{uuid4().hex}"  # in the environment of all processes that begin here
SMALL = {"hidden": 8, "batch": 4, "held_out": 10, "evaluate_every": 500, "checkpoint_every": 25}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a node that share the folder of runs, and a node that does not."""
    os.environ.update({MARK: "1", "RAY_USAGE_STATS_ENABLED": "0"})
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        add_node(made)
        add_node(made, **{ALONE: "no"})
        ray.init(made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        del os.environ[MARK]


def add_node(cluster: Any, **environment: str) -> Any:
    return cluster.add_node(
        num_cpus=1, object_store_memory=80 * 2**20, env_vars=environment, include_dashboard=False
    )


def configs(count: int, updates: int = 60, **settings: object) -> list[RunConfig]:
    given = {**SMALL, "updates": updates, **settings}
    return [assemble("reversal", "chapter36", seed, given) for seed in range(count)]


def agree(runs: Sequence[Run], folder: Path) -> None:
    """The weights and metrics of runs are those that this process gives alone."""
    for run in runs:
        alone = execute(run.config, folder)
        assert run.summary["weights"] == alone.summary["weights"]
        assert run.metrics == alone.metrics
        names = ["config.json", "metrics.jsonl"]
        names += [f"checkpoints/{path.name}" for path in alone.folder.glob("checkpoints/*")]
        for name in names:
            assert (run.folder / name).read_bytes() == (alone.folder / name).read_bytes(), name
        assert run.model() and not (run.folder / "state.safetensors").exists()


class When:
    """A monitor that does something once, when enough runs are at work."""

    def __init__(self, act: Callable[[], None], runs: int = 3):
        self.act, self.runs = act, runs
        self.seen: set[str] = set()
        self.acted = False

    def expect(self, count: int) -> None:
        """Nothing."""

    def progress(self, config: RunConfig, update: int, *rest: object) -> None:
        """Act when this many runs are under way, all beyond their first checkpoint."""
        if update > 30:
            self.seen.add(config.name)
        if len(self.seen) == self.runs and not self.acted:
            self.acted = True
            self.act()

    def finished(self, config: RunConfig) -> None:
        """Nothing."""


def processes(name: str, mark: str = MARK) -> list[int]:
    """The processes with this in their command, of those that this test (or a node) began."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = mark.encode() in (folder / "environ").read_bytes()
            if ours and name.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def workers() -> list[int]:
    """The processes that train."""
    return processes("regard.runs.worker")


def test_the_bits_do_not_depend_on_the_place(cluster: Any, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a b{i} c\tx{i} y\n" for i in range(60)))
    settings = {**SMALL, "updates": 60, "held_out": 5, "source": str(pairs)}
    with_files = [assemble("parallel", "chapter36", seed, settings) for seed in range(2)]
    wanted = [*configs(3), *with_files]
    runs = run_all(wanted, tmp_path / "ray", on="ray")
    assert [run.config for run in runs] == wanted
    agree(runs, tmp_path / "alone")


def test_dead_nodes_and_workers_cost_nothing(cluster: Any, tmp_path: Path) -> None:
    node = add_node(cluster, **{ALONE: "no"})
    removed: list[Any] = []

    def strike() -> None:
        os.kill(workers()[0], signal.SIGKILL)
        cluster.remove_node(node, allow_graceful=False)
        removed.append(node)

    monitor = When(strike)
    try:
        runs = run_all(configs(4, 1200), tmp_path / "ray", monitor=monitor, on="ray")
    finally:
        if not removed:
            cluster.remove_node(node, allow_graceful=False)
    assert monitor.acted, "all runs were done before anything was killed"
    agree(runs, tmp_path / "alone")


def test_a_dead_mailbox_costs_nothing(cluster: Any, tmp_path: Path) -> None:
    def strike() -> None:
        (mailbox,) = processes("ray::Mailbox")
        os.kill(mailbox, signal.SIGKILL)

    monitor = When(strike, 2)
    runs = run_all(configs(2, 1000), tmp_path / "ray", monitor=monitor, on="ray")
    assert monitor.acted, "all runs were done before anything was killed"
    agree(runs, tmp_path / "alone")


def test_news_come_once_and_are_kept_until_they_were_heard() -> None:
    mailbox = Mailbox()
    for stamp, event in [("a", {"event": "files"}), ("a", {"event": "files"}), ("b", {})]:
        mailbox.put("run", event, stamp)
    both = [("run", {"event": "files"}), ("run", {})]
    assert mailbox.take(0) == both
    assert mailbox.take(0) == both, "the first answer may have been lost"
    mailbox.put("other", {}, "c")
    assert mailbox.take(2) == [("other", {})]
    assert mailbox.take(3) == []


def test_a_driver_that_was_killed_goes_on(cluster: Any, tmp_path: Path) -> None:
    wanted = configs(2, 1200)
    command = [sys.executable, "-m", "regard", "train", "reversal", "--seeds", "2", "--on", "ray"]
    command += ["--runs", str(tmp_path / "ray"), *(f"{k}={v}" for k, v in SMALL.items())]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    driver = subprocess.Popen([*command, "updates=1200"], env=environment)
    states = [tmp_path / "ray" / config.name / "state.safetensors" for config in wanted]
    try:
        until = time.monotonic() + 120
        while not any(path.is_file() for path in states) and time.monotonic() < until:
            assert driver.poll() is None, "the driver ended by itself"
            time.sleep(0.1)
    finally:
        driver.kill()
        driver.wait()
    assert not all(Run(tmp_path / "ray" / config.name, config).done for config in wanted)
    runs = run_all(wanted, tmp_path / "ray", on="ray")
    agree(runs, tmp_path / "alone")


def test_faults_are_told(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.runs.ray_cluster.own_versions", lambda: {"Regard": "0.0"})
    with pytest.raises(RegardError, match=r"and here is 0\.0: the numbers might differ"):
        run_all(configs(1), tmp_path, on="ray")
    monkeypatch.undo()
    monkeypatch.setattr("regard.runs.on_ray.modules_of", lambda configs: ["no_such_plugin"])
    with pytest.raises(RegardError, match="does not have the module 'no_such_plugin'"):
        run_all(configs(1), tmp_path, on="ray")
    assert not list(tmp_path.glob("*/config.json")), "nothing was started"


def test_processes_of_one_run_need_one_node(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"No node has the 2 CPUs .*the largest has 1"):
        run_all(configs(1, processes=2), tmp_path, on="ray")


# Recordings in shards.


def wait_for(name: str, mark: str = MARK) -> int:
    """A process of this name, as soon as there is one."""
    until = time.monotonic() + 120
    while not (found := processes(name, mark)):
        assert time.monotonic() < until, f"there never was a process {name}"
        time.sleep(0.02)
    return found[0]


def hash_shards(folder: Path) -> list[str]:
    paths = sorted(folder.glob("*.safetensors"))
    return [sha256(path.read_bytes()).hexdigest() for path in paths]


def test_shards_are_recorded_and_added_up_whatever_dies(cluster: Any, tmp_path: Path) -> None:
    config = assemble("reversal", "aed", 0, {**SMALL, "updates": 5})
    run = execute(config, tmp_path / "runs")
    here = regard.record(run, n=90, out=tmp_path / "here", shards=6, jobs=1)
    doomed = add_node(cluster, REGARD_TEST_NODE="doomed")
    struck = []

    def strike() -> None:
        struck.append(wait_for("regard.recordings.worker", "REGARD_TEST_NODE=doomed"))
        cluster.remove_node(doomed, allow_graceful=False)
        struck.append(wait_for("regard.recordings.worker"))
        with suppress(ProcessLookupError):
            os.kill(struck[-1], signal.SIGKILL)

    killer = Thread(target=strike)
    killer.start()
    seen: list[tuple[int, int]] = []
    there = regard.record(
        run, n=90, out=tmp_path / "there", shards=6, on="ray", watch=lambda *far: seen.append(far)
    )
    killer.join()
    assert len(struck) == 2 and seen[-1] == (90, 90)
    assert hash_shards(tmp_path / "there") == hash_shards(tmp_path / "here")

    alone = processes("regard.recordings.worker", f"{ALONE}=no")
    assert not alone, "a node without the folder was asked to write to it"
    here, there = (replace(one, rows=15) for one in (here, there))  # pieces as small as shards
    plain = here.inspect("breakdown", jobs=1)
    asked = regard.inspect(there, "breakdown", on="ray")
    assert asked.to_json() == plain.to_json()
    sums = tmp_path / "there" / "sums"
    kept = {path: path.stat().st_mtime_ns for path in sums.glob("*.safetensors")}
    assert len(kept) == len(list((tmp_path / "here" / "sums").glob("*.safetensors"))) == 12
    regard.inspect(there, "breakdown", on="ray")
    assert kept == {path: path.stat().st_mtime_ns for path in sums.glob("*.safetensors")}


def test_shards_need_a_folder_that_nodes_share(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = execute(assemble("reversal", "aed", 0, {**SMALL, "updates": 5}), tmp_path / "runs")
    monkeypatch.setattr("regard.runs.ray_pool.mark_folder", lambda root: "another")
    with pytest.raises(RegardError, match=r"No node of the cluster sees .*there"):
        regard.record(run, n=8, out=tmp_path / "there", shards=2, on="ray")
    with pytest.raises(RegardError, match="give shards=N"):
        regard.record(run, n=8, on="ray")
    whole = regard.record(run, n=8)
    with pytest.raises(RegardError, match="on is for recordings in shards"):
        whole.inspect("breakdown", on="ray")
