"""`regard timelapse` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

import regard as library

SMALL = {"hidden": 6, "updates": 4, "held_out": 10, "batch": 8, "checkpoint_every": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("made")
    runs = [library.train("one-to-one", "aed", seed, out, **SMALL) for seed in range(2)]
    (out / "text").write_text("no run")
    return {"run": runs[0].folder, "other": runs[1].folder, "text": out / "text"}


def test_json_and_files(regard: Command, made: dict[str, Path], tmp_path: Path) -> None:
    done = regard(
        "timelapse", made["run"], "breakdown", "top=2", "--with", made["other"], "-n", "10",
        "--checkpoints", "4,0", "--out", tmp_path / "new", "--json",
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    assert (found["of"], found["seeds"], found["checkpoints"]) == ("breakdown", 2, [0, 4])
    wanted = library.timelapse(
        [made["run"], made["other"]], "breakdown", n=10, checkpoints=[0, 4], top=2
    )
    assert found == json.loads(json.dumps(wanted.to_json()))
    ends = ("csv", "html", "json", "svg")
    assert sorted(f.name for f in (tmp_path / "new").iterdir()) == [
        f"timelapse-breakdown.{end}" for end in ends
    ]


def test_a_table_for_people(regard: Command, made: dict[str, Path]) -> None:
    done = regard("timelapse", made["run"], "decompose", "-n", "10")
    assert done.returncode == 0, done.stderr
    assert "sizes over training" in done.stdout and "update" in done.stdout


FAULTS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "instrument": (("run", "breakdwn"), ["Did you mean 'breakdown'"]),
    "trains": (("run", "prune"), ["cannot be asked at a checkpoint"]),
    "setting": (("run", "breakdown", "tpo=3"), ["Did you mean 'top'"]),
    "not a setting": (("run", "breakdown", "tpo"), ["write key=value"]),
    "samples": (("run", "ablate", "n=3"), ["write -n instead"]),
    "one checkpoint": (("run", "weights", "checkpoint=0"), ["instead of checkpoint"]),
    "checkpoints": (("run", "weights", "--checkpoints", "0,b"), ["with commas"]),
    "not kept": (("run", "weights", "--checkpoints", "0,3"), ["no checkpoint 3. Kept: 0, 2, 4"]),
    "text": (("text", "weights"), ["Give the run's folder"]),
    "nowhere": (("nowhere", "weights"), ["is not a run"]),
    "out": (("run", "weights", "--out", "text"), ["Give --out a folder"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(regard: Command, fault: str, made: dict[str, Path], tmp_path: Path) -> None:
    words, parts = FAULTS[fault]
    done = regard("timelapse", *(made.get(word, word) for word in words), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == "" and all(part in done.stderr for part in parts), done.stderr
    assert len(done.stderr.strip().splitlines()) == len(parts), done.stderr
    assert list(tmp_path.iterdir()) == []
