"""Changed code is noticed: of runs with a warning, of results by measuring again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, reload
from pathlib import Path

import pytest

import regard
from regard import code
from regard.code import find_changes, hash_code
from regard.models import CELLS
from regard.papers import EXPERIMENTS, LEDGERS, ledger, reproduce
from regard.runs.members import CodeWarning, code_of

Write = Callable[[str, str], None]
TINY = {"hidden": 4, "updates": 2, "held_out": 4, "batch": 4}
CELL = """
from regard.models import CELLS
from mine import helper

@CELLS.register("mine")
class Mine(CELLS["ugrnn"]):
    '''A cell.'''

    def reset_parameters(self):
        super().reset_parameters()
        self.weight_hh.data *= helper.FACTOR  # a comment
"""
EXPERIMENT = """
from pathlib import Path
from regard.papers import LEDGERS
from regard.papers.framework import EXPERIMENTS, Experiment, Findings
from regard.papers.framework.measures import plan_seeds
from regard.statistics import Estimate

LEDGERS.register("mine")(Path(__file__).with_name("claims.toml"))

@EXPERIMENTS.register("mine/one")
class One(Experiment):
    '''One.'''
    title, about, claims = "One", "About it.", ("mine.one",)

    def plan(self, scale):
        return {"all": plan_seeds(1, "reversal", "chapter36", cell="mine", **SETTINGS)}

    def measure(self, runs, scale):
        return Findings({"mine.one": {"value": Estimate.of([1.0])}})
""".replace("SETTINGS", repr(TINY))
CLAIM = """
[[claim]]
id = "mine.one"
paper = "mine"
experiment = "mine/one"
statement = "s"
expected = "e"
headline = "value"
reproduced = "value > 1"
partly = "value > 0"
figure = "f"
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files of a package `mine`, each later than the one before; forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    package, clock = tmp_path / "mine", iter(range(1, 100))
    package.mkdir()
    (package / "__init__.py").touch()

    def add(name: str, text: str) -> None:
        path = package / name
        path.write_text(text)
        when = 1_000_000_000 + next(clock)
        os.utime(path, (when, when))
        code._file.cache_clear()
        for module in ("helper", "cell", "experiment"):  # in the order of their imports
            if f"mine.{module}" in sys.modules:
                reload(sys.modules[f"mine.{module}"])

    add("helper.py", "FACTOR = 1.0\n")
    add("cell.py", CELL)
    yield add
    for name in [name for name in sys.modules if name.split(".")[0] == "mine"]:
        del sys.modules[name]
    for registry, name in ((CELLS, "mine"), (EXPERIMENTS, "mine/one"), (LEDGERS, "mine")):
        registry.forget(name)  # type: ignore[attr-defined]
    ledger().pop("mine.one", None)
    code._file.cache_clear()


def hashes() -> dict[str, str]:
    return hash_code([CELLS["mine"]], ())


def test_what_a_module_does_counts_with_what_it_imports(write: Write) -> None:
    import_module("mine.cell")
    first = hashes()
    assert set(first) == {"mine.cell", "mine.helper"}
    write("cell.py", CELL.replace("a comment", "another").replace("A cell", "The cell"))
    assert hashes() == first, "comments and docstrings do not count"
    write("cell.py", CELL.replace("*= helper", "/= helper"))
    assert find_changes(first, hashes()) == ["mine.cell"]
    write("cell.py", CELL)
    write("helper.py", "FACTOR = 2.0\n")
    assert find_changes(first, hashes()) == ["mine.helper"]
    write("cell.py", CELL.replace("from mine import helper", "from . import helper"))
    assert "mine.helper" in hashes(), "relative imports are followed, too"


def test_of_regard_itself_task_model_and_training_count() -> None:
    config = regard.runs.assemble("reversal", "chapter36", 0, {})
    found = code_of(config)
    assert {"regard.tasks.synthetic.reversal", "regard.models.layers.cells"} <= set(found)
    assert "regard.training.losses" in found and "regard.tasks.synthetic.sorting" not in found
    assert not [name for name in found if name.startswith(("regard.runs", "regard.cli"))]


def test_what_a_notebook_defines_counts_with_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    def define(factor: int) -> type:
        main = sys.modules["__main__"]
        text = f"def helper(x):\n    return {factor} * x\n"
        text += "class Own:\n    def f(self):\n        return helper(2)\n"
        world: dict[str, object] = {"__name__": "__main__"}
        exec(text, world)
        for name in ("helper", "Own"):
            monkeypatch.setattr(main, name, world[name], raising=False)
        return world["Own"]  # type: ignore[return-value]

    first = hash_code([define(1)], ())
    assert list(first) == ["__main__.Own"]
    assert hash_code([define(1)], ()) == first
    assert hash_code([define(2)], ()) != first


def test_a_run_of_other_code_is_told_and_made_again(write: Write, tmp_path: Path) -> None:
    import_module("mine.cell")
    run = regard.train("reversal", cell="mine", **TINY)
    old = run.metrics
    assert regard.train("reversal", cell="mine", **TINY).metrics == old
    write("helper.py", "FACTOR = 3.0\n")
    with pytest.warns(CodeWarning, match=r"mine\.helper changed since.*--again"):
        again = regard.train("reversal", cell="mine", **TINY)
    assert again.folder == run.folder and again.metrics == old
    assert regard.train("reversal", cell="mine", again=True, **TINY).metrics != old
    assert len(list((tmp_path / "runs").glob("*/config.json"))) == 1


def test_a_result_is_measured_again_when_its_code_changed(write: Write, tmp_path: Path) -> None:
    write("claims.toml", CLAIM)
    write("experiment.py", EXPERIMENT)
    import_module("mine.cell")
    import_module("mine.experiment")
    (first,) = reproduce("mine", jobs=1)
    assert first.claims[0]["verdict"] == "partly"
    stamp = first.provenance["started"]
    (kept,) = reproduce("mine", jobs=1)
    assert kept.provenance["started"] == stamp and kept.plan == first.plan
    write("experiment.py", EXPERIMENT.replace("[1.0]", "[2.0]"))
    (second,) = reproduce("mine", jobs=1)
    assert second.claims[0]["verdict"] == "reproduced", "the new measure, without being asked"
    write("helper.py", "FACTOR = 3.0\n")
    with pytest.warns(CodeWarning, match=r"mine\.helper"):
        reproduce("mine", jobs=1)
    (run,) = (path.parent for path in (tmp_path / "runs").glob("*/DONE"))
    before = (run / "DONE").read_text()
    reproduce("mine", jobs=1, again=True)
    assert (run / "DONE").read_text() != before
    reproduce("mine", jobs=1)


def test_a_wrong_file_leaves_no_run_behind(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("one column\n")
    with pytest.raises(regard.RegardError):
        regard.train("parallel", source=str(bad))
    assert not (tmp_path / "runs").exists()


def test_a_run_is_used_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task_files: dict[str, dict[str, str]]
) -> None:
    (tmp_path / "labelled.tsv").write_text(Path(task_files["classification"]["data"]).read_text())
    monkeypatch.chdir(tmp_path)
    settings = {"data": "labelled.tsv", "updates": 0, "held_out": 4}
    run = regard.train("classification", model="snell-classifier", hidden=4, **settings)
    whole = {**settings, "data": str(tmp_path / "labelled.tsv")}
    assert regard.train("classification", model="snell-classifier", hidden=4, **whole) == run
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(regard.load_run(run.folder).task().split("test")) == 4
