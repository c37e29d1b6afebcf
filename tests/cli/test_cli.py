"""The command line as its users meet it: a process, its output, its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SMALL = ["hidden=12", "updates=12", "batch=8", "held_out=20"]


def regard(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regard.cli.main", *words], capture_output=True, text=True, cwd=cwd
    )


def test_train_prints_json() -> None:
    done = regard("train", "reversal", "--model", "chapter36", "--seed", "0", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "quiet where there is no terminal"
    found = json.loads(done.stdout)
    assert Path(found["run"]).is_dir()
    assert 0 <= found["metrics"]["accuracy"] <= 1
    runs = json.loads(regard("ls", "runs", "--json").stdout)
    assert [run["run"] for run in runs] == [found["run"]]


def test_train_many_seeds() -> None:
    done = regard("train", "addition", "--seeds", "2", "--jobs", "2", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metrics"]["accuracy"]["seeds"] == 2
    assert len(found["runs"]) == 2
    table = regard("train", "addition", "--seeds", "2", *SMALL)
    assert "(n = 2)" in table.stdout


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    done = regard("train", "reversl", "--model", "chapter3", "hiden=4", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for guess in ("'reversal'", "'chapter36'", "'hidden'"):
        assert f"Did you mean {guess}" in done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_faults_of_all_kinds_come_together() -> None:
    done = regard("train", "reversl", "foo", "hiden=3", "clip=1", "clip=2")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 4


def test_errors_in_workers_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = regard("train", "reversal", "--seeds", "2", "--runs", str(tmp_path / "file"), *SMALL)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_interrupt_is_answered() -> None:
    runs = Path(os.environ["REGARD_RUNS"])
    with subprocess.Popen(
        [sys.executable, "-m", "regard.cli.main", "train", "reversal", "updates=100000"],
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests may have interrupts switched off
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(runs.glob("*/metrics.jsonl")) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, message = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "goes on where it stopped" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    "words",
    [
        ("train", "reversal", "hidden"),
        ("train", "reversal", "hidden=many"),
        ("train", "reversal", "--seeds", "0"),
        ("ls", "tsaks"),
        ("reproduce", "chapter37"),
        ("reproduce", "chapter36", "--scale", "huge"),
        ("claims", "chapter37"),
        ("report", "nowhere"),
        ("bench", "training", "--json"),
        ("nonsense",),
    ],
)
def test_bad_input_gets_a_message_and_exit_code_2(words: tuple[str, ...], tmp_path: Path) -> None:
    done = regard(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "what", ["all", "tasks", "models", "settings", "cells", "attentions", "papers", "runs"]
)
def test_every_listing_has_json(what: str) -> None:
    done = regard("ls", what, "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), list)


def test_claims_are_a_list_of_objects() -> None:
    rows = json.loads(regard("claims", "chapter36", "--json").stdout)
    assert len(rows) == 14
    keys = {"id", "paper", "statement", "expected", "measured", "interval", "seeds", "scale",
            "rule", "verdict"}  # fmt: skip
    assert all(keys <= set(row) for row in rows)
    assert {row["source"] for row in rows} <= {"published", None}
    assert "c36.loss" in regard("claims").stdout


def test_doctor_is_healthy() -> None:
    done = regard("doctor", "--json")
    assert done.returncode == 0, done.stdout
    assert {row["state"] for row in json.loads(done.stdout)} == {"ok"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = regard("train", "reversal", "--runs", str(tmp_path / "file"), *SMALL)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "file" in done.stderr


def test_a_pipe_that_closes_early_is_no_error() -> None:
    script = f"{sys.executable} -m regard.cli.main ls tasks | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
