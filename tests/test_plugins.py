"""Members from outside are found by every way to name a plugin, and one that fails is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from regard import plugins
from regard.errors import RegardError
from regard.papers import EXPERIMENTS, LEDGERS, ledger
from regard.plugins import PluginWarning
from regard.registry import Registry
from regard.runs.config import assemble
from regard.runs.members import environment_for, is_portable
from regard.runs.presets import PRESETS
from regard.tasks import TASKS

Write = Callable[[str, str], Path]
TASK = """
from regard.tasks import EOS, TASKS, Task, Vocabulary, collate

@TASKS.register("echo")
class Echo(Task):
    '''A string, and the same string.'''

    def __init__(self, config):
        super().__init__(config)
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of("abcdefgh")

    def draw(self, rng, size):
        rows = [[*row, EOS] for row in rng.integers(3, 11, size=(size, 4)).tolist()]
        return collate(rows, rows)
"""
CLAIM = """
[[claim]]
id = "own.effect"
paper = "own"
experiment = "own/effect"
statement = "It is so."
expected = "more"
headline = "gain"
reproduced = "low(gain) > 0"
partly = "gain > 0"
figure = "Table 1"
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into the current folder; what their modules registered is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_asked", set())
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    before = set(sys.modules)

    def add(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    yield add
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    for registry in (TASKS, PRESETS, EXPERIMENTS, LEDGERS):
        forget(registry)


def forget(registry: Registry[object]) -> None:
    for name in [name for name in registry._members if registry.origin(name) != "regard"]:
        registry.forget(name)


def test_a_plugin_is_found_in_the_current_folder(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("echoing.py", TASK)
    assert "echo" not in TASKS
    monkeypatch.setenv("REGARD_PLUGINS", "echoing")
    assert "echo" in TASKS and "echo" in list(TASKS)
    assert TASKS.origin("echo") == "echoing" and TASKS.origin("reversal") == "regard"


def test_installed_packages_name_plugins_by_entry_points(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("echoing.py", TASK)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("mine", "echoing", "regard.plugins")
    found = {"regard.plugins": [point]}
    monkeypatch.setattr(plugins, "entry_points", lambda group: found[group])
    plugins._installed.cache_clear()
    try:
        assert "echo" in TASKS
    finally:
        plugins._installed.cache_clear()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nothing_like_it", "No module named 'nothing_like_it'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (TASK.replace('"echo"', '"reversal"'), r"regard\.tasks\.synthetic\.reversal and in broken"),
        ("from regard.runs.presets import PRESETS\nPRESETS.register('aed')({})", "'aed' is regis"),
        (
            "from regard.instruments import INSTRUMENTS\nINSTRUMENTS.register('lean')(3)",
            "'lean' is",
        ),
    ],
)
def test_one_that_fails_is_told_and_the_rest_goes_on(
    text: str, reason: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("broken.py", text)
    write("echoing.py", TASK)
    monkeypatch.setenv("REGARD_PLUGINS", "broken, echoing")
    with pytest.warns(PluginWarning, match=rf"'broken' could not be imported \(.*{reason}"):
        assert "echo" in TASKS
    assert "echo" in TASKS, "it is told once"
    assert PRESETS["aed"], "what Regard has of its own stays"


def test_a_file_is_not_a_module(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("echoing.py", TASK)
    monkeypatch.setenv("REGARD_PLUGINS", "echoing.py")
    with pytest.warns(PluginWarning, match="name the module: echoing"):
        list(TASKS)


def test_what_is_named_on_the_command_line_reaches_workers(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_PLUGINS", "one")
    plugins.name_plugins(["two", "one"])
    assert os.environ["REGARD_PLUGINS"] == "one,two"


def test_what_a_program_imported_reaches_workers(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("echoing.py", TASK)
    monkeypatch.syspath_prepend(tmp_path)
    __import__("echoing")
    config = assemble("echo", "chapter36", 0, {"hidden": 4})
    needed = environment_for([config])
    assert needed["REGARD_PLUGINS"] == "echoing"
    assert str(tmp_path) in needed["PYTHONPATH"].split(os.pathsep)
    assert is_portable(config)
    monkeypatch.setattr(TASKS["echo"], "__module__", "__main__")
    assert not is_portable(config), "a notebook's task is trained where the notebook is"


def test_claims_of_a_plugin(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("claims.toml", CLAIM)
    register = "from pathlib import Path\nfrom regard.papers import LEDGERS\n"
    write("own.py", f"{register}LEDGERS.register('own')(Path({str(path)!r}))\n")
    monkeypatch.setenv("REGARD_PLUGINS", "own")
    assert ledger()["own.effect"].paper == "own"
    path.write_text(CLAIM.replace("own.effect", "own.other"))
    os.utime(path, (1, 1))
    assert "own.other" in ledger() and "own.effect" not in ledger(), "a changed file is read again"
    ledger().pop("own.other")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("headline", "hedline", "Did you mean 'headline'"),
        ("low(gain)", "lwo(gain)", r"own.effect.*reproduced: A rule may not say 'lwo\(gain\)'"),
        ("gain > 0", "gain = 0", "cannot be read"),
        ('"gain > 0"', '"gain"', "A rule compares"),
        ('id = "own.effect"', "id = 3", "id has to be a text"),
        ("[[claim]]", "[[claim]", "cannot be read"),
        ("own.effect", "c36.loss", "'c36.loss' has two rows"),
    ],
)
def test_a_typo_in_a_ledger_is_told(old: str, new: str, fault: str, write: Write) -> None:
    path = write("claims.toml", CLAIM.replace(old, new))
    LEDGERS.register("own")(path)
    with pytest.raises(RegardError, match=fault):
        ledger()


def test_modules_are_not_hidden_by_registries() -> None:
    import regard.models.cells

    assert regard.models.cells.CELLS["lstm"].__module__ == regard.models.cells.__name__
