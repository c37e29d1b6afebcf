"""The contract of tasks, kept by every registered task; and it finds what does not keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from regard.contracts.contract import Check, examine
from regard.contracts.task import CONTRACT, make_task
from regard.tasks import EOS, TASKS, Batch, Task, TaskConfig, Vocabulary, collate


@pytest.fixture(params=list(TASKS))
def task(request: pytest.FixtureRequest, task_files: dict[str, dict[str, Any]]) -> Task:
    return make_task(request.param, task_files.get(request.param, {}))


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_contract(task: Task, check: Check) -> None:
    check(task)


def test_what_determines_a_task_is_said(
    task: Task, request: pytest.FixtureRequest, task_files: dict[str, dict[str, Any]]
) -> None:
    name = request.node.callspec.params["task"]
    assert [*map(str, task.config.files())] == [
        value for value in task_files.get(name, {}).values() if isinstance(value, str)
    ]


class Echo(Task):
    """A string, and the same string."""

    def __init__(self, config: TaskConfig):
        super().__init__(config)
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of("abcdefgh")

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        rows = [[*row, EOS] for row in rng.integers(3, 11, size=(size, 4)).tolist()]
        return collate(rows, rows)


class Careless(Echo):
    """Draws from a generator of its own."""

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        return super().draw(np.random.default_rng(), size)


class Turned(Echo):
    """Judges by the source, and forgets that it may be turned."""

    def correct(self, predictions: Tensor, batch: Batch) -> Tensor:
        said = predictions[:, : batch.source.shape[1]]
        if said.shape != batch.source.shape:
            return batch.source_lengths < 0
        return (said == batch.source).all(dim=1)


class Typed(Echo):
    """Has a setting that is no JSON."""

    class Config(TaskConfig):
        place: Path = Path("x")


class Reader(Echo):
    """Reads a folder and names none of its files."""

    folder = ""

    def __init__(self, config: TaskConfig):
        super().__init__(config)
        for file in Path(self.folder).glob("*.txt"):
            file.read_text()


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Careless, "draw from the given generator alone"),
        (Turned, "right answer is not correct"),
        (Typed, "is not JSON"),
        (Reader, "which `Config.files` does not name"),
    ],
)
def test_the_contract_finds(kind: type[Echo], fault: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("words")
    Reader.folder = str(tmp_path)
    TASKS.register("echo")(kind)
    try:
        outcomes = examine(CONTRACT, make_task("echo", {}))
    finally:
        TASKS.forget("echo")
    assert [o for o in outcomes if o.fault and fault in o.fault], outcomes
