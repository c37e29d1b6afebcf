"""The examples of docs/extending.md are whole files that work, and keep their contracts."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard import plugins
from regard.contracts.check import examine_member, find_registries
from regard.papers import LEDGERS, ledger

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
FILE = re.compile(r"```(?:python|toml)\n# (?P<name>[\w./]+)\n(?P<text>.*?)^```", re.S | re.M)
FILES = {match["name"]: match["text"] for match in FILE.finditer(PAGE)}
MEMBERS = [
    ("echo", "task", "echo"), ("softsign", "cell", "ugrnn-softsign"),
    ("shared", "attention", "shared"), ("small", "preset", "chapter36-small"),
    ("norms", "instrument", "norms"), ("spread", "instrument", "spread"),
    ("npz", "adapter", "npz"),
    ("mypaper", "experiment", "mypaper/effect"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_asked", set())
    for name, text in FILES.items():
        if "/" not in name:
            (tmp_path / name).write_text(text)
    yield tmp_path
    for module, _, _ in MEMBERS:
        sys.modules.pop(module, None)
    for registry in (*find_registries().values(), LEDGERS):
        for name in [n for n in registry._members if registry.origin(n) != "regard"]:
            registry.forget(name)
    ledger().pop("my.effect", None)


@pytest.mark.parametrize(("module", "kind", "name"), MEMBERS)
def test_an_example_keeps_its_contract(module: str, kind: str, name: str, folder: Path) -> None:
    importlib.import_module(module)
    faults = [outcome for outcome in examine_member(kind, name) if outcome.fault]
    assert not faults


def test_every_block_is_one_of_them() -> None:
    known = {f"{module}.py" for module, _, _ in MEMBERS} | {"mypaper_claims.toml"}
    assert set(FILES) == known | {"benchmarks/adding.py"}
    exec(compile(FILES["benchmarks/adding.py"], "adding.py", "exec"), {"__name__": "adding"})
