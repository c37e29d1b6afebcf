"""One broken run does not hide the others, and the doctor says what is wrong with it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from command import Command

import regard as package

SMALL = {"hidden": 6, "batch": 4, "held_out": 10, "updates": 4}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    for seed in range(2):
        package.train("reversal", seed=seed, out=root, **SMALL)
    return root


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copies"))


@pytest.mark.parametrize("damage", ["DONE", "config.json", "key", "folder"])
def test_ls_goes_on_and_says_which_is_broken(regard: Command, runs: Path, damage: str) -> None:
    broken = sorted(runs.iterdir())[0]
    if damage == "key":
        data = json.loads((broken / "config.json").read_text())
        del data["task"]["name"]
        (broken / "config.json").write_text(json.dumps(data))
        (broken / "SHA256SUMS").unlink()
    elif damage == "folder":
        (broken / "DONE").unlink()
        (broken / "DONE").mkdir()
        (broken / "config.json").chmod(0o600)
        (broken / "config.json").write_bytes(b"\x00" * 50)
    else:
        (broken / damage).write_text("{")
    rows = json.loads(regard("ls", "runs", "--runs", str(runs), "--json").stdout)
    assert [row["state"].split(":")[0] for row in rows] == ["broken", "done"]
    assert broken.name in rows[0]["state"]


def test_a_stray_file_among_checkpoints(runs: Path) -> None:
    run = package.load_run(sorted(runs.iterdir())[0])
    for name in ("00notes.txt", "12", "0000000x.safetensors", ".swp", "99.safetensors"):
        (run.folder / "checkpoints" / name).write_text("stray")
    assert run.checkpoints() == [0, 4]
    run.model()


def test_the_doctor_finds_damage_and_leftovers(regard: Command, runs: Path) -> None:
    answer = regard("doctor", "--runs", str(runs), "--json")
    found = {row["check"]: row for row in json.loads(answer.stdout)}
    assert answer.returncode == 0
    assert "2 runs" in found["files of runs"]["found"]
    child = subprocess.Popen(["true"])
    child.wait()
    left = sorted(runs.iterdir())[0] / "checkpoints" / f".x.safetensors.{child.pid}.part"
    left.write_bytes(b"x" * 2**20)
    path = sorted(runs.iterdir())[1] / "checkpoints" / "00000004.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    answer = regard("doctor", "--runs", str(runs), "--json")
    found = {row["check"]: row for row in json.loads(answer.stdout)}
    assert answer.returncode == 2
    assert "00000004.safetensors is damaged" in found["files of runs"]["found"]
    assert "1 files of 1.0 MiB" in found["leftovers"]["found"] and left.exists()
    regard("doctor", "--runs", str(runs), "--remove")
    assert not left.exists()


def test_the_doctor_finds_old_texts_in_the_cache(
    regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    half = tmp_path / "cache" / "corpora" / f"{'0' * 32}.part"
    half.mkdir(parents=True)
    (half / "train-000000.npz").write_bytes(b"0" * 2**20)

    def ask(*words: str) -> str:
        answer = regard("doctor", "--runs", str(tmp_path), *words, "--json")
        rows = {row["check"]: row["found"] for row in json.loads(answer.stdout)}
        return str(rows["texts in the cache"])

    assert ask().startswith("1 corpora of 1.0 MiB") and half.is_dir()
    assert ask("--remove").endswith("removed") and not half.exists()
    assert ask().startswith("none that is old")
