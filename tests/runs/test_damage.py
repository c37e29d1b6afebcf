"""Damage is told: a flipped byte, an edited file, a changed corpus never give other numbers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute
from regard.runs.checksums import SUMS, read_sums
from regard.runs.files import content_hash, packed, read_tensors, write_tensors, write_whole
from regard.runs.places import HOST, find_parts
from regard.training import loop
from regard.training.adam import Adam

SMALL = {"hidden": 6, "batch": 4, "held_out": 10, "evaluate_every": 5, "checkpoint_every": 10}


def config(seed: int = 0, **settings: object) -> RunConfig:
    return assemble("reversal", "chapter36", seed, {**SMALL, "updates": 20, **settings})


def flip(path: Path, place: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return execute(config(), tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(made: Run, tmp_path: Path) -> Run:
    """A run of one's own to damage."""
    folder = tmp_path / made.folder.name
    subprocess.run(["cp", "-r", str(made.folder), str(folder)], check=True)
    return Run.open(folder)


def cut(root: Path, at: int, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Path:
    """The folder of a run that was interrupted before an update."""
    real = loop.Trainer.step

    def step(self: loop.Trainer) -> float:
        if self.update == at:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(loop.Trainer, "step", step)
    with pytest.raises(KeyboardInterrupt):
        execute(config(**settings), root)
    monkeypatch.setattr(loop.Trainer, "step", real)
    return root / config(**settings).name


# Every file that numbers come from.


def test_the_list_is_what_sha256sum_reads(made: Run) -> None:
    answer = subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS], cwd=made.folder, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    listed = {line.split(":")[0] for line in answer.stdout.splitlines()}
    there = {str(p.relative_to(made.folder)) for p in made.folder.rglob("*") if p.is_file()}
    assert there - listed == {"LOCK", SUMS}


READERS: dict[str, Callable[[Run], object]] = {
    "checkpoints/00000020.safetensors": lambda run: run.model(),
    "checkpoints/00000010.safetensors": lambda run: run.weights(10),
    "checkpoints/best.safetensors": lambda run: run.model("best"),
    "metrics.jsonl": lambda run: run.curve("loss"),
    "DONE": lambda run: run.metrics,
    "config.json": lambda run: Run.open(run.folder),
    "sizes.json": lambda run: run.model(),
}


@pytest.mark.parametrize("name", READERS)
def test_every_flip_is_noticed(run: Run, name: str) -> None:
    path, read = run.folder / name, READERS[name]
    whole = path.read_bytes()
    read(run)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 12):
        flip(path, int(place), int(rng.integers(8)))
        with pytest.raises(RegardError, match=f"{path.name} is damaged"):
            read(run)
        path.write_bytes(whole)
    for keep in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(RegardError, match="is damaged"):
            read(run)
    path.write_bytes(whole)
    read(run)


def test_without_a_list_a_run_of_before_opens(run: Run, made: Run) -> None:
    (run.folder / SUMS).unlink()
    assert Run.open(run.folder).metrics == made.metrics
    assert run.weights() == made.weights() == made.summary["weights"]
    run.model()


def test_a_damaged_state_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cut(tmp_path, 12, monkeypatch) / "state.safetensors"
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    harmless = 0
    for place in rng.integers(0, len(whole), 40):
        flip(path, int(place))
        try:
            before, after = read_tensors(path), whole
        except RegardError:
            continue
        finally:
            path.write_bytes(whole)
        harmless += 1  # a blank of the header, or the name of the hash: the numbers are the same
        assert after == whole
        intact = read_tensors(path)
        assert all(torch.equal(before[name], intact[name]) for name in intact)
    assert harmless < 5
    flip(path, len(whole) - 40)
    with pytest.raises(RegardError, match=r"state\.safetensors is damaged"):
        execute(config(), tmp_path)
    path.unlink()
    assert execute(config(), tmp_path).weights() == execute(config(), tmp_path / "b").weights()


def test_tensors_with_and_without_a_seal(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3.0), "a": torch.ones(2, 2, dtype=torch.int64)}
    write_tensors(tmp_path / "sealed", tensors)
    write_whole(tmp_path / "plain", packed(tensors))
    for name in ("sealed", "plain"):
        found = read_tensors(tmp_path / name)
        assert set(found) == {"a", "b"}
        assert all(torch.equal(found[key], value) for key, value in tensors.items())
    swapped = (tmp_path / "sealed").read_bytes().replace(b'"b"', b'"c"')
    (tmp_path / "sealed").write_bytes(swapped)
    with pytest.raises(RegardError, match="sealed is damaged"):
        read_tensors(tmp_path / "sealed")


def test_a_best_checkpoint_may_be_newer_than_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the new best was written and before the state."""
    folder = cut(tmp_path, 12, monkeypatch)
    hashes = read_sums(folder)["checkpoints/best.safetensors"]
    Run.open(folder).model("best")
    assert len(hashes) >= 1
    with (folder / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  checkpoints/best.safetensors\n{'1' * 20}")  # about to be written
    Run.open(folder).model("best")
    done = execute(config(), tmp_path)
    assert (done.folder / SUMS).read_text().count("best.safetensors") == 1
    assert done.model("best")


# What a run rests on.


def test_an_edited_configuration_is_refused(run: Run) -> None:
    path = run.folder / "config.json"
    data = json.loads(path.read_text())
    data["training"]["learning_rate"] = 0.5
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(RegardError, match=r"config\.json is damaged"):
        Run.open(run.folder)
    (run.folder / SUMS).unlink()
    with pytest.raises(RegardError, match=r"config\.json was changed: the folder's name"):
        Run.open(run.folder)


def test_settings_that_an_older_version_did_not_have(run: Run) -> None:
    """The file is hashed as it is: a key that came later stands in no older file."""
    from regard.runs.config import hash_settings
    from regard.runs.names import known_data

    path = run.folder / "config.json"
    data = json.loads(path.read_text())
    del data["training"]["keep_zeros"]
    path.write_text(json.dumps(data))
    (run.folder / SUMS).unlink()
    name = f"reversal-s0-{hash_settings(data, known_data(run.folder))}"
    older = run.folder.rename(run.folder.with_name(name))
    assert Run.open(older).config == run.config


def test_a_renamed_folder_opens(run: Run) -> None:
    assert Run.open(run.folder.rename(run.folder.with_name("mine"))).config == run.config


def test_a_file_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\n")
    os.utime(path, (1000, 1000))
    first = content_hash(path)
    path.write_text("a\tc\n")
    os.utime(path, (1000, 1000))
    assert content_hash(path) != first


def test_a_corpus_that_changed_after_training(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    words = [f"{a}{b}" for a in "abcdefgh" for b in "xyz"]
    path.write_text("".join(f"{a} {b}\t{b} {a}\n" for a in words for b in words))
    wanted = assemble("parallel", "chapter36", 0, {**SMALL, "updates": 2, "source": str(path)})
    run = execute(wanted, tmp_path)
    assert Run.open(run.folder).task().splits
    path.write_text(path.read_text().replace("ax", "ay"))
    with pytest.raises(RegardError, match="trained on has changed since"):
        Run.open(run.folder).task()


# Metrics of a run that was cut.


@pytest.mark.parametrize("damage", ["lost", "shorter", "flipped", "other"])
def test_damaged_metrics_are_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    path = cut(tmp_path, 12, monkeypatch) / "metrics.jsonl"
    if damage == "lost":
        path.unlink()
    elif damage == "shorter":
        path.write_bytes(path.read_bytes()[:20])
    elif damage == "flipped":
        flip(path, 30)
    else:
        path.write_text("not json\n" * 100)
    before = path.read_bytes() if path.exists() else b""
    with pytest.raises(RegardError, match=r"metrics\.jsonl is damaged.*trained anew"):
        execute(config(), tmp_path)
    assert path.read_bytes() == before  # nothing was filled in


def test_rows_that_are_no_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cut(tmp_path, 12, monkeypatch)
    (folder / "metrics.jsonl").write_text("{}\nnonsense\n")
    with pytest.raises(RegardError, match=r"metrics\.jsonl is damaged"):
        Run.open(folder).rows()


# Numbers that are none.


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e400"])
@pytest.mark.parametrize("key", ["learning_rate", "l2", "guidance", "professor_weight", "epsilon"])
def test_settings_are_finite(key: str, value: str) -> None:
    with pytest.raises(RegardError, match=f"training.{key}="):
        config(**{key: value})


def test_weights_are_checked_after_the_last_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Adam.step
    steps = iter(range(100))

    def poisoned(self: Adam, *args: Any) -> None:
        real(self, *args)
        if next(steps) == 19:  # the last: no further loss would show it
            with torch.no_grad():
                self.param_groups[0]["params"][0].fill_(float("nan"))

    monkeypatch.setattr(Adam, "step", poisoned)
    with pytest.raises(RegardError, match="size of the weights became nan at update 20"):
        execute(config(), tmp_path)
    run = Run.open(tmp_path / config().name)
    assert not run.done and run.checkpoints() == [0, 10]
    monkeypatch.setattr(Adam, "step", real)
    assert execute(config(), tmp_path).weights() == execute(config(), tmp_path / "b").weights()


def test_a_run_is_not_done_with_metrics_that_are_not_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "regard.runs.execution.final_metrics", lambda *_: {"loss": float("nan"), "accuracy": 0.5}
    )
    with pytest.raises(RegardError, match="ends with metrics that are not numbers"):
        execute(config(), tmp_path)
    assert not Run.open(tmp_path / config().name).done


# What a dead writer left.


def test_the_next_writer_removes_what_a_dead_one_left(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    dead = tmp_path / f".x.json.{HOST}-{child.pid}.part"
    older = tmp_path / f".x.json.{child.pid}.part"
    living = tmp_path / f".x.json.{HOST}-{os.getppid()}.part"
    elsewhere = tmp_path / f".x.json.00000000-{child.pid}.part"
    other = tmp_path / f".y.json.{HOST}-{child.pid}.part"
    for path in (dead, older, living, elsewhere, other):
        path.write_bytes(b"half")
    assert find_parts(tmp_path) == sorted([dead, older, other])
    write_whole(tmp_path / "x.json", b"{}")
    assert set(tmp_path.iterdir()) == {tmp_path / "x.json", living, elsewhere, other}


def test_a_full_disk_is_named_and_not_kept_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*x\.json'"):
        write_whole(tmp_path / "x.json", b"{}")
    assert list(tmp_path.iterdir()) == []
