"""The plan of the room: one file one task, and nothing heavy before a task is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regard import tasks
from regard.errors import RegardError
from regard.tasks import TASKS, Vocabulary

ROOT = Path(tasks.__file__).parent
ROOMS = ("synthetic", "lookup", "scan", "text")
PUBLIC = [file for room in ROOMS for file in ROOT.glob(f"{room}/[!_]*.py")]


def test_a_public_file_is_one_task_of_its_name() -> None:
    files = {file.stem.replace("_", "-"): f"regard.tasks.{file.parent.name}.{file.stem}"
             for file in PUBLIC}  # fmt: skip
    assert files == {name: task.__module__ for name, task in TASKS.items()}
    assert {folder.name for folder in ROOT.iterdir() if list(folder.glob("*.py"))} == {*ROOMS}


PROGRAM = f"""
import importlib, sys, types
regard = sys.modules["regard"] = types.ModuleType("regard")
regard.__path__ = [{str(ROOT.parent)!r}]
for name in sys.argv[1:]:
    importlib.import_module(name)
for task in sys.modules["regard.tasks.task"].TASKS.values():
    assert task.__doc__ and task.Config.model_fields
print(*{{"torch", "scipy", "sentencepiece"}}.intersection(sys.modules))
"""


def test_tasks_are_known_without_torch() -> None:
    """The room alone, without what `import regard` may bring along."""
    files = (file.relative_to(ROOT.parent).with_suffix("") for file in ROOT.rglob("*.py"))
    names = [".".join(("regard", *file.parts)).removesuffix(".__init__") for file in files]
    assert "regard.tasks.text._pieces" in names
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=False
    )
    assert (found.stdout.strip(), found.stderr) == ("", "")


@pytest.mark.parametrize(("words", "more"), [(47, False), (48, True)])
def test_a_message_names_fifty_words(words: int, more: bool) -> None:
    vocabulary = Vocabulary.of(f"w{n}" for n in range(words))
    with pytest.raises(RegardError) as error:
        vocabulary.encode(["strange"])
    assert ("and more" in str(error.value)) == more
    assert "w46" in str(error.value)
