"""Nothing heavy is imported before it is used, and every name is there all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import regard

HEAVY = {"torch", "scipy", "sklearn", "matplotlib", "plotly", "pandas", "numpy"}
LAZY = ("regard", "regard.models", "regard.papers", "regard.runs", "regard.tasks")


def imported_by(code: str) -> set[str]:
    """The modules that a fresh Python has imported after some code."""
    tell = "\nimport sys, json; sys.stderr.write('MODULES' + json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.split("MODULES")[1]))


def command(*words: str) -> str:
    return f"""
import sys
sys.argv = ["regard", *{words!r}]
from regard.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


@pytest.mark.parametrize(
    "words",
    [("--help",), ("train", "--help"), ("--version",), ("ls", "models")],
    ids=" ".join,
)
def test_what_needs_no_network_imports_none(words: tuple[str, ...]) -> None:
    assert not HEAVY & imported_by(command(*words))


def test_claims_are_listed_without_torch() -> None:
    found = imported_by(command("claims", "chapter36"))
    assert not (HEAVY - {"numpy", "scipy"}) & found  # published numbers come with intervals


def test_tasks_are_listed_without_torch() -> None:
    found = imported_by(command("ls", "tasks", "--json"))
    assert not (HEAVY - {"numpy"}) & found
    assert not {name for name in found if name.startswith(("regard.models", "regard.papers"))}


@pytest.mark.parametrize("package", LAZY)
def test_packages_are_light(package: str) -> None:
    assert not HEAVY & imported_by(f"import {package}")


def test_a_worker_imports_what_its_run_needs() -> None:
    code = """
import tempfile
from pathlib import Path
from regard.runs import worker
from regard.runs.config import assemble
few = {"updates": 1, "hidden": 4, "held_out": 2}
config = assemble("reversal", "chapter36", 0, few).to_json()
order = {"id": "x", "config": config, "root": tempfile.mkdtemp(), "preset": ""}
worker._serve(worker.train, order, open("/dev/null", "w"))
assert list(Path(order["root"]).glob("*/DONE"))
"""
    found = imported_by(code)
    assert {"regard.tasks.synthetic.reversal", "torch"} <= found
    assert not (HEAVY - {"torch", "numpy"}) & found
    for part in ("papers", "recordings", "instruments", "report", "cli", "tasks.text"):
        assert f"regard.{part}" not in found, part
    assert "regard.models.transformer" not in found


def packages() -> list[ModuleType]:
    return [import_module(name) for name in LAZY]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.__name__)
def test_every_name_is_there(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018
    assert not hasattr(package, "__wrapped__")


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.__name__)
def test_no_name_hides_a_module(package: ModuleType) -> None:
    """Importing a module binds its name in its package, whatever was there."""
    modules = {path.stem for path in Path(str(package.__file__)).parent.iterdir()}
    assert not modules & set(package.__all__)


def test_parts_are_found_by_their_names() -> None:
    code = "import regard; print(regard.instruments.__path__, regard.papers.chapter36.addition)"
    assert "regard.instruments" in imported_by(code)
    assert regard.instruments.words.Alignment.of
