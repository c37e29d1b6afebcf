"""`regard ls runs` and `regard ls settings`: filtered, sorted, and fitting the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

from regard import train
from regard.cli import _console

TINY = {"updates": 1, "hidden": 4, "held_out": 4}


@pytest.fixture
def three(tmp_path: Path) -> None:
    for seed, more in ((0, {}), (1, {}), (0, {"hidden": 5})):
        train("reversal", seed=seed, out=tmp_path / "runs", **{**TINY, **more})


def test_runs_are_filtered_and_sorted(regard: Command, three: None, tmp_path: Path) -> None:
    rows = json.loads(regard("ls", "runs", "--json").stdout)
    assert [row["differs"] for row in rows].count("hidden=4") == 2
    assert {row["preset"] for row in rows} == {"chapter36"} and Path(rows[0]["run"]).is_dir()
    found = json.loads(regard("ls", "runs", "hidden=4", "--sort", "seed", "--json").stdout)
    assert [row["seed"] for row in found] == [0, 1]
    assert json.loads(regard("ls", "runs", "task=addition", "--json").stdout) == []
    done = regard("ls", "runs", "hiden=4")
    assert done.returncode == 2 and "Did you mean 'hidden'" in done.stderr
    done = regard("ls", "runs", "--sort", "acuracy")
    assert done.returncode == 2 and "Did you mean 'accuracy'" in done.stderr


def test_runs_fit_the_terminal(
    regard: Command, three: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.json").write_text("{}")
    monkeypatch.setattr(_console.out, "_width", 100)
    lines = regard("ls", "runs").stdout.splitlines()
    top = next(number for number, line in enumerate(lines) if line.startswith("┏"))
    table, below = lines[top:-1], lines[-1]
    assert max(map(len, table)) <= 100 and "broken" in "".join(table)
    assert str(tmp_path) not in "".join(table)
    assert str(tmp_path / "runs" / "broken") in below  # why, in a sentence
    for config in (tmp_path / "runs").glob("*/config.json"):
        assert any(config.parent.name in line for line in table)  # whole, so that it can be copied


def test_a_run_of_a_plugin_names_it(regard: Command, three: None, tmp_path: Path) -> None:
    folder = next(path.parent for path in (tmp_path / "runs").glob("*/config.json"))
    (folder / "SHA256SUMS").unlink()  # as runs of before have none
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "task": {"name": "doubling"}}))
    about = json.loads((folder / "provenance.json").read_text())
    made = {**about, "code": {"doubling_lab": "0", **about["code"]}}
    (folder / "provenance.json").write_text(json.dumps(made))
    done = regard("inspect", str(folder), "breakdown")
    assert done.returncode == 2 and "--plugin doubling_lab" in done.stderr


def test_settings_of_a_task_and_a_model(regard: Command) -> None:
    rows = json.loads(regard("ls", "settings", "reversal", "aed", "--json").stdout)
    assert {row["where"] for row in rows} == {"task reversal", "model encoder-decoder", "training"}
    done = regard("ls", "settings", "revresal")
    assert done.returncode == 2 and "Did you mean 'reversal'" in done.stderr
    done = regard("ls", "tasks", "reversal")
    assert done.returncode == 2 and "takes no further words" in done.stderr
