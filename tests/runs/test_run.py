"""A run folder: the same bits however often it is cut, never half a file, one writer."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute, execution, list_runs, run_all
from regard.runs.files import locked, read_json, read_tensors
from regard.runs.status import read_progress
from regard.training import loop

SMALL = {"hidden": 12, "batch": 8, "held_out": 20, "evaluate_every": 10, "checkpoint_every": 20}


def config(seed: int = 0, **settings: object) -> RunConfig:
    return assemble("reversal", "chapter36", seed, {**SMALL, "updates": 50, **settings})


def contents(run: Run) -> dict[str, bytes]:
    names = ["config.json", "metrics.jsonl"]
    names += [str(p.relative_to(run.folder)) for p in sorted(run.folder.glob("checkpoints/*"))]
    return {name: (run.folder / name).read_bytes() for name in names}


def test_a_run_explains_itself(tmp_path: Path) -> None:
    run = execute(config(), tmp_path, preset="chapter36")
    assert run.done
    assert {p.name for p in run.folder.iterdir()} == {
        "config.json", "provenance.json", "sizes.json", "metrics.jsonl", "checkpoints", "DONE",
        "LOCK", "SHA256SUMS",
    }  # fmt: skip
    assert run.checkpoints() == [0, 20, 40, 50]
    assert len(run.curve("loss")[0]) == 50
    assert run.curve("accuracy", "validation")[0] == [10, 20, 30, 40, 50]
    shares = {"accuracy", "token_accuracy", "forced_token_accuracy"}
    assert set(run.metrics) == {*shares, "loss", "perplexity"}
    assert run.metrics["perplexity"] == pytest.approx(math.exp(run.metrics["loss"]))
    origin = read_json(run.folder / "provenance.json")
    assert origin["preset"] == "chapter36"
    assert origin["torch"] == torch.__version__
    assert Run.open(run.folder).config == run.config


def test_weights_come_back(tmp_path: Path) -> None:
    run = execute(config(), tmp_path)
    fresh, last = run.model(0), run.model()
    start = run.config.make_model(run.task())
    for a, b, c in zip(fresh.parameters(), start.parameters(), last.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
    run.model("best")
    with pytest.raises(RegardError, match="no checkpoint '7'"):
        run.model(7)


def test_the_same_configuration_gives_the_same_bits(tmp_path: Path) -> None:
    first, second = execute(config(), tmp_path / "a"), execute(config(), tmp_path / "b")
    assert contents(first) == contents(second)
    other = execute(config(seed=1), tmp_path / "a")
    assert not set(contents(first).values()) & set(contents(other).values())


def test_seeds_differ_from_the_first_weight_on() -> None:
    first = [
        next(config(seed).make_model(config().make_task()).parameters()).flatten()[:40].tolist()
        for seed in range(5)
    ]
    assert len({tuple(weights) for weights in first}) == 5


def test_asking_again_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(config(), tmp_path)
    monkeypatch.setattr(loop.Trainer, "step", lambda self: pytest.fail("trained again"))
    execute(config(), tmp_path)


@pytest.mark.parametrize("forcing", ["ratio", "professor"])
def test_stopped_anywhere_it_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forcing: str
) -> None:
    whole = execute(config(forcing=forcing), tmp_path / "whole")
    real = loop.Trainer.step
    for stop in (1, 7, 10, 23, 49):

        def step(self: loop.Trainer, stop: int = stop) -> float:
            if self.update == stop:
                raise KeyboardInterrupt
            return real(self)

        monkeypatch.setattr(loop.Trainer, "step", step)
        with pytest.raises(KeyboardInterrupt):
            execute(config(forcing=forcing), tmp_path / "cut")
        cut = Run.open(tmp_path / "cut" / whole.config.name)
        assert not cut.done
        with pytest.raises(RegardError, match="not finished"):
            _ = cut.metrics
    monkeypatch.setattr(loop.Trainer, "step", real)
    cut = execute(config(forcing=forcing), tmp_path / "cut")
    assert contents(cut) == contents(whole)
    assert cut.metrics == whole.metrics


def test_killed_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """A real process, killed without warning at arbitrary moments."""
    wanted = config(updates=400)
    whole = execute(wanted, tmp_path / "whole")
    command = [sys.executable, "-m", "regard.runs.worker"]
    order = {"config": wanted.to_json(), "root": str(tmp_path / "cut"), "preset": ""}
    kills = 0
    for pause in (0.15, 0.4, 0.8):
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert worker.stdin
        worker.stdin.write(json.dumps(order) + "\n")
        worker.stdin.flush()
        folder = tmp_path / "cut" / wanted.name
        deadline = time.monotonic() + 60
        while not (folder / "state.safetensors").exists() and time.monotonic() < deadline:
            if (folder / "DONE").exists():
                break
            time.sleep(0.01)
        time.sleep(pause)
        kills += worker.poll() is None and not (folder / "DONE").exists()
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        worker.stdin.close()
    assert kills, "the run was over before anybody could kill it"
    assert contents(execute(wanted, tmp_path / "cut")) == contents(whole)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / config().name
    with locked(folder), pytest.raises(RegardError, match=f"another process .id {os.getpid()}"):
        execute(config(), tmp_path)
    assert execute(config(), tmp_path).done


def test_a_loss_that_is_not_a_number_keeps_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.likelihood

    def poisoned(*args: torch.Tensor) -> torch.Tensor:
        value = real(*args)
        return value * float("nan") if calls.pop(0) else value

    calls = [False] * 25 + [True] * 100
    monkeypatch.setattr(loop, "likelihood", poisoned)
    with pytest.raises(RegardError, match=r"became nan at update 26.*learning_rate"):
        execute(config(), tmp_path)
    run = Run.open(tmp_path / config().name)
    assert not run.done
    assert run.checkpoints() == [0, 20]
    assert all(t.isfinite().all() for t in read_tensors(run.folder / "state.safetensors").values())
    monkeypatch.setattr(loop, "likelihood", real)
    assert contents(execute(config(), tmp_path)) == contents(execute(config(), tmp_path / "new"))


def test_stops_early_when_good_enough(tmp_path: Path) -> None:
    easy = {"shortest": 1, "longest": 1, "alphabet": 2, "updates": 2000, "stop_accuracy": 0.9}
    run = execute(config(**easy, learning_rate=1e-2), tmp_path)
    assert run.summary["updates"] < 2000
    assert run.checkpoints()[-1] == run.summary["updates"]
    assert run.metrics["accuracy"] >= 0.9


def test_cut_after_stopping_early_it_does_not_train_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the last checkpoint and DONE."""
    easy = {"shortest": 1, "longest": 1, "alphabet": 2, "updates": 2000, "stop_accuracy": 0.9}
    wanted = config(**easy, learning_rate=1e-2)
    whole = execute(wanted, tmp_path / "whole")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    real = execution.final_metrics
    monkeypatch.setattr(execution, "final_metrics", killed)
    with pytest.raises(KeyboardInterrupt):
        execute(wanted, tmp_path / "cut")
    monkeypatch.setattr(execution, "final_metrics", real)
    cut = execute(wanted, tmp_path / "cut")
    assert contents(cut) == contents(whole)
    assert cut.summary["updates"] == whole.summary["updates"]


def test_a_gradient_that_is_not_a_number_never_reaches_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = torch.Tensor.backward
    updates = iter(range(100))

    def poisoned(self: torch.Tensor, *args: object, **more: object) -> None:
        real(self, *args, **more)
        if next(updates) == 12:
            parameter.grad.fill_(float("inf"))

    built = RunConfig.make_model

    def remembered(self: RunConfig, task: object) -> object:
        nonlocal parameter
        model = built(self, task)
        parameter = next(model.parameters())
        return model

    parameter = torch.zeros(1)
    monkeypatch.setattr(RunConfig, "make_model", remembered)
    monkeypatch.setattr(torch.Tensor, "backward", poisoned)
    with pytest.raises(RegardError, match="gradient became inf at update 13"):
        execute(config(), tmp_path)
    state = read_tensors(tmp_path / config().name / "state.safetensors")
    assert all(t.isfinite().all() for t in state.values())


def test_damaged_files_are_named(tmp_path: Path) -> None:
    run = execute(config(), tmp_path)
    (run.folder / "checkpoints" / "00000050.safetensors").write_bytes(b"not tensors")
    with pytest.raises(RegardError, match=r"00000050\.safetensors is damaged"):
        run.model()
    (run.folder / "config.json").write_text("{")
    with pytest.raises(RegardError, match=r"config\.json is damaged"):
        Run.open(run.folder)
    (run.folder / "SHA256SUMS").unlink()  # as runs of before have none
    with pytest.raises(RegardError, match=r"00000050\.safetensors is not a whole"):
        run.model()
    with pytest.raises(RegardError, match=r"config\.json is not valid JSON"):
        Run.open(run.folder)
    for text in ("{}", "[]", '{"task": 3, "model": {}}'):
        (run.folder / "config.json").write_text(text)
        with pytest.raises(RegardError, match=r"config\.json: A configuration needs"):
            Run.open(run.folder)
    assert list(list_runs(tmp_path)) == []
    with pytest.raises(RegardError, match="is not a run"):
        Run.open(tmp_path / "nowhere")


def test_many_runs_side_by_side_are_the_same_runs(tmp_path: Path) -> None:
    configs = [config(seed) for seed in range(3)]
    apart = [execute(c, tmp_path / "apart") for c in configs]
    seen: list[str] = []

    class Monitor:
        def expect(self, count: int) -> None:
            assert count == 3

        def progress(self, config: RunConfig, *news: object) -> None:
            seen.append("progress")

        def finished(self, config: RunConfig) -> None:
            seen.append(config.name)

    together = run_all([*configs, configs[0]], tmp_path / "together", 2, Monitor())
    assert [run.config for run in together] == [*configs, configs[0]]
    for a, b in zip(apart, together, strict=False):
        assert contents(a) == contents(b)
    assert sorted(name for name in seen if name != "progress") == sorted(c.name for c in configs)
    assert [run.config.seed for run in list_runs(tmp_path / "together")] == [0, 1, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_failure_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    good, bad, ugly = config(1), config(0), config(2)
    with locked(tmp_path / bad.name), pytest.raises(RegardError, match=bad.name):
        run_all([bad, good, ugly], tmp_path, jobs)
    assert Run.open(tmp_path / good.name).done
    assert Run.open(tmp_path / ugly.name).done
    rows = {row["run"]: row for row in read_progress(tmp_path)}
    assert [rows[c.name]["state"] for c in (bad, good, ugly)] == ["failed", "done", "done"]
    assert bad.name in rows[bad.name]["faults"][0] and not rows[good.name]["faults"]
