"""`record(…, shards=N)`: what one file would hold, by one process or several, killed or not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import WORDS, phrases, recurrent

import regard
from regard import RegardError
from regard.recordings import Recording, load_recording, record
from regard.recordings.manifest import MANIFEST, Manifest
from regard.recordings.samples import PIECE
from regard.runs import Run
from regard.runs.files import hash_file


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings: dict[str, Any] = {"updates": 0, "held_out": 10, "hidden": 8}
    return regard.train("one-to-one", "aed", 0, tmp_path_factory.mktemp("runs"), **settings)


def equal(many: Recording, one: Recording) -> None:
    assert many.names() == one.names()
    for name in one.names():
        np.testing.assert_array_equal(many[name], one[name], err_msg=name)
    assert many.metadata == one.metadata


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 40])
def test_the_same_samples_in_the_same_order(shards: int, run: Run, tmp_path: Path) -> None:
    """Shards end amid the batches that the model reads, and the bits stay."""
    n = PIECE + 90
    one = run.record(n=n, also=("gates",), seed=3)
    many = run.record(n=n, also=("gates",), seed=3, shards=shards, jobs=1, out=tmp_path / "many")
    equal(many, one)
    manifest = Manifest.read(tmp_path / "many")
    assert len(manifest.shards) == shards and manifest.samples == n
    assert manifest.of["run"] == run.folder.name and manifest.of["samples"]["n"] == n
    for one_shard in manifest.shards:
        path = tmp_path / "many" / one_shard.file
        assert hash_file(path) == one_shard.sha256
        assert len(load_recording(path)) == one_shard.rows  # an ordinary recording


def test_pairs_of_words_are_scored_alike(run: Run, tmp_path: Path) -> None:
    """With `lexical` the model reads smaller pieces: those of one file."""
    options: dict[str, Any] = {"n": 150, "inputs": "teacher", "also": ("lexical", "saliency")}
    equal(run.record(**options, shards=4, jobs=1, out=tmp_path / "many"), run.record(**options))


def test_several_processes_record_the_same_bits(run: Run, tmp_path: Path) -> None:
    equal(run.record(n=300, shards=4, jobs=2, out=tmp_path / "many"), run.record(n=300))


def test_it_goes_on_with_the_shards_that_are_there(run: Run, tmp_path: Path) -> None:
    first = run.record(n=120, shards=4, jobs=1, out=tmp_path)
    files = sorted(tmp_path.glob("recording-*"))
    times = {path: path.stat().st_mtime_ns for path in files}
    kept = first["decoder.states"]
    (tmp_path / MANIFEST).unlink()
    files[1].unlink()
    content = bytearray(files[2].read_bytes())
    content[-1] ^= 1
    files[2].write_bytes(bytes(content))
    with pytest.raises(RegardError, match="not finished: 3 of 4"):
        regard.load_recording(tmp_path)
    with pytest.raises(RegardError, match="not finished: 3 of 4"):
        regard.inspect(tmp_path, "sizes")
    again = run.record(n=120, shards=4, jobs=1, out=tmp_path)
    np.testing.assert_array_equal(again["decoder.states"], kept)
    same = [path for path in files if path.stat().st_mtime_ns == times[path]]
    assert same == [files[0], files[3]]


def test_killed_and_started_again(run: Run, tmp_path: Path) -> None:
    """Killed when the first shard is there; the rest is made by the next process."""
    program = (
        "import sys, regard\n"
        "run = regard.load_run(sys.argv[1])\n"
        "run.record(n=4000, shards=8, jobs=1, out=sys.argv[2])\n"
    )
    folder = tmp_path / "many"
    command = [sys.executable, "-c", program, str(run.folder), str(folder)]
    child = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while not list(folder.glob("recording-*")):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    there = {path.name: path.stat().st_mtime_ns for path in folder.glob("recording-*")}
    assert there and not (folder / MANIFEST).exists()
    many = run.record(n=4000, shards=8, jobs=1, out=folder)
    assert all((folder / name).stat().st_mtime_ns == when for name, when in there.items())
    equal(many, run.record(n=4000))
    assert not list(folder.glob(".*.part"))


def test_another_recording_is_not_mixed_in(run: Run, tmp_path: Path) -> None:
    run.record(n=40, shards=2, jobs=1, out=tmp_path / "many")
    with pytest.raises(RegardError, match="is of another recording"):
        run.record(n=40, shards=2, jobs=1, seed=1, out=tmp_path / "many")
    with pytest.raises(RegardError, match="shards of another split"):
        run.record(n=40, shards=4, jobs=1, out=tmp_path / "many")
    with pytest.raises(RegardError, match="is a run"):
        run.record(n=40, shards=4, jobs=1, out=run.folder)
    with pytest.raises(RegardError, match="at most one for each of the 40 samples"):
        run.record(n=40, shards=41, jobs=1, out=tmp_path / "other")
    with pytest.raises(RegardError, match="give out=FOLDER"):
        run.record(n=40, shards=2)
    with pytest.raises(RegardError, match="shards=0 does not fit"):
        run.record(n=40, shards=0, out=tmp_path / "other")


def test_models_with_batches_of_ones_own(tmp_path: Path) -> None:
    model, batches = recurrent("dot"), [phrases(9), phrases(5, seed=1)]
    options: dict[str, Any] = {"vocabularies": (WORDS, WORDS), "batches": batches}
    many = record(model, **options, shards=3, out=tmp_path / "many")
    equal(many, record(model, **options))
    other = {**options, "batches": [phrases(9), phrases(5, seed=2)]}
    with pytest.raises(RegardError, match="is of another recording"):
        record(model, **other, shards=3, out=tmp_path / "many")


def test_the_same_door(run: Run, tmp_path: Path) -> None:
    """A path, a recording, a run's folder with shards inside: each is what it is."""
    inside = run.folder / "recording-50-in-2-shards"
    many = run.record(n=50, shards=2, jobs=1, out=inside)
    found = regard.inspect(str(inside), "breakdown", top=2).to_json()
    assert many.inspect("breakdown", top=2).to_json() == found
    assert isinstance(regard.load_run(run.folder), Run)
    assert regard.inspect(run, "sizes", n=50).n == 1
    with pytest.raises(RegardError, match="needs the model itself"):
        regard.inspect(inside, "ablate")
    with pytest.raises(RegardError, match="given twice"):
        regard.inspect([inside, many], "sizes")
    assert json.loads((inside / MANIFEST).read_text())["of"]["checkpoint"] == "reported"
