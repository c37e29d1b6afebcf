"""`regard new` writes what works, and `regard check` says so; a fault is found and told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard import plugins
from regard.contracts.check import examine_member, find_registries
from regard.contracts.new import KINDS, write_new
from regard.errors import RegardError
from regard.papers import LEDGERS, ledger

MEMBERS = {"instrument": "my_own", "experiment": "my_own/size", "plugin": "my_own"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose modules are forgotten with all that they registered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "my_own"), *sys.path])
    monkeypatch.setattr(plugins, "_asked", set())
    monkeypatch.setenv(plugins.VARIABLE, "")
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0].startswith("my_own")]:
        del sys.modules[name]
    for registry in (*find_registries().values(), LEDGERS):
        for name in [n for n in registry._members if registry.origin(n).startswith("my_own")]:
            registry.forget(name)
    for claim in [claim for claim in ledger() if claim.startswith("my_own")]:
        ledger().pop(claim)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_keeps_its_contract(kind: str, folder: Path) -> None:
    name = "my_own" if kind in ("plugin", "instrument") else "my-own"
    made = write_new(kind, name, folder)
    assert all(path.is_file() for path in made.files) and made.commands
    assert not [path for path in made.files if "{{" in path.read_text()]
    plugins.name_plugins(["my_own"])
    outcomes = examine_member(kind, MEMBERS.get(kind, "my-own"))
    assert outcomes and not [outcome for outcome in outcomes if outcome.fault]
    with pytest.raises(RegardError, match="is there already"):
        write_new(kind, name, folder)


@pytest.mark.parametrize(
    ("kind", "name", "fault"),
    [
        ("instrment", "x", "Did you mean 'instrument'"),
        ("task", "reversal", "There is a task 'reversal' in Regard"),
        ("instrument", "breakdown", "There is an? instrument 'breakdown'"),
        ("cell", "1x", "not a name for a cell"),
        ("cell", "class", "not a name"),
        ("cell", "../x", "not a name"),
    ],
)
def test_bad_names_write_nothing(kind: str, name: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=fault):
        write_new(kind, name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_tests_that_are_written_pass_and_the_command_finds_faults(tmp_path: Path) -> None:
    """As a user has it: another folder, another process."""
    write_new("cell", "leaky", tmp_path)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    path = tmp_path / "leaky.py"
    path.write_text(path.read_text().replace('"keeps"}', '"writes"}'))
    words = ["--plugin", "leaky", "check", "cell", "leaky", "--json"]
    done = run([sys.executable, "-m", "regard", *words], tmp_path, env)
    assert done.returncode == 2, done.stderr
    broken = [row for row in json.loads(done.stdout) if not row["kept"]]
    assert len(broken) == 1 and "update writes, but open" in broken[0]["fault"]
    path.write_text(path.read_text().replace('"writes"}', '"keeps"}'))
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path, env)
    assert done.returncode == 0, done.stdout


def run(words: list[str], folder: Path, env: dict[str, str]) -> Any:
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
