"""Outputs go to regular files inside of the folder that was named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.errors import RegardError
from regard.runs import assemble, execute
from regard.runs.files import write_whole

SMALL = {"hidden": 6, "batch": 4, "held_out": 10, "updates": 3}


def config() -> object:
    return assemble("reversal", "chapter36", 0, SMALL)


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "encoder.states": rng.normal(size=(4, 3, 2)),
        "encoder.words": rng.integers(0, 3, (4, 3)),
    }


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "link"])
def test_what_is_no_regular_file_stays(kind: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "out.safetensors"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(outside)
    before = path.lstat().st_mode
    with pytest.raises(RegardError, match=r"nothing was written|is a folder"):
        regard.record(arrays(), out=path)
    with pytest.raises(RegardError, match="nothing was written"):
        write_whole(path, b"x")
    assert path.lstat().st_mode == before and outside.read_text() == "mine"
    assert not list(folder.glob(".*"))


def test_a_link_inside_of_its_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_text() == "new"
    assert (tmp_path / "real").read_text() == "old"


@pytest.mark.parametrize("name", ["metrics.jsonl", "LOCK", "SHA256SUMS", "DONE", "config.json"])
def test_links_out_of_a_run_are_refused(name: str, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("mine")
    wanted = config()
    folder = tmp_path / "runs" / wanted.name  # type: ignore[attr-defined]
    folder.mkdir(parents=True)
    (folder / name).symlink_to(outside)
    if name == "DONE":  # it counts as done, and cannot be read
        with pytest.raises(RegardError):
            _ = execute(wanted, tmp_path / "runs").metrics  # type: ignore[arg-type]
    else:
        with pytest.raises(RegardError, match="leads out of its folder"):
            execute(wanted, tmp_path / "runs")  # type: ignore[arg-type]
    assert outside.read_text() == "mine"


def test_checkpoints_do_not_leave_the_run(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    wanted = config()
    folder = tmp_path / "runs" / wanted.name  # type: ignore[attr-defined]
    folder.mkdir(parents=True)
    (folder / "checkpoints").symlink_to(outside)
    with pytest.raises(RegardError, match="leads out of"):
        execute(wanted, tmp_path / "runs")  # type: ignore[arg-type]
    assert not list(outside.iterdir())
