"""A(u, v) is not A(v, u): which score stands where in the tables of snell2021, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.instruments.scores import Scores, agreement
from regard.papers.snell2021 import _compared
from regard.papers.snell2021._compared import Cell, Compared, Models


def scores(rows: list[list[float]], mask: list[list[bool]] | None = None) -> Scores:
    values = np.array(rows)[:, None]  # one target word a sentence
    given = np.ones_like(values, bool) if mask is None else np.array(mask)[:, None]
    return Scores(values, given)


def test_agreement_is_not_symmetric() -> None:
    """The share of sentences whose highest u is also the highest v; ties count as u has them."""
    u = scores([[3.0, 1, 0], [0, 5, 1], [1, 0, 2], [0, 1, 2]])
    v = scores([[2.0, 1, 0], [4, 3, 0], [0, 1, 9], [1, 2, 0]])
    assert float(agreement(u, v)) == pytest.approx(2 / 4)
    assert float(agreement(u, u)) == 1.0


class MadeRun:
    def __init__(self, name: str, updates: tuple[int, ...] = (0, 10)):
        self.name, self.updates = name, updates

    def checkpoints(self) -> list[int]:
        return list(self.updates)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every comparison that is made, as names of both scores."""
    made: list[tuple[str, str]] = []

    def read(run: Any, batches: Any, what: str, checkpoint: Any = "reported") -> str:
        return f"{what} of {run.name} at {checkpoint}"

    def compare(u: str, v: str) -> Cell:
        made.append((u, v))
        return Cell(len(made) / 1000, 0.0, 0.0)

    monkeypatch.setattr(_compared, "read_scores", read)
    monkeypatch.setattr(Cell, "of", compare)
    monkeypatch.setattr(_compared, "_compare_half", lambda u, v, parity: compare(u, v))
    return made


def test_what_is_compared_with_what(calls: list[tuple[str, str]]) -> None:
    attending: Any = [MadeRun("a"), MadeRun("b"), MadeRun("c")]
    models = Models(attending, MadeRun("uniform"), MadeRun("proxy"))  # type: ignore[arg-type]
    cells = Compared(models, []).cells
    first = {u.split(" of ")[0] for u, _ in calls}
    second = {v.split(" of ")[0] for _, v in calls}
    assert first == {"attention", "saliency", "proxy"} and second == {"lexical"}
    uniform = [(u, v) for u, v in calls if " of uniform " in v]
    assert {v for _, v in uniform} == {f"lexical of uniform at {at}" for at in (0, 10)}
    others = [(u, v) for u, v in calls if " of uniform " not in v]
    names = [(u.split()[2], v.split()[2]) for u, v in others]
    assert sorted(names) == [(a, b) for a in "abc" for b in "abc" if a != b]
    assert all(u.startswith("attention") and u.endswith("reported") for u, _ in others)
    assert [len(cells[column]) for column in cells] == [3, 1, 3, 3]


def test_the_highest_of_several_checkpoints() -> None:
    cells = [Cell(0.2, 0.1, 0.5), Cell(0.6, 0.3, -0.2), Cell(0.4, 0.2, float("nan"))]
    assert Cell.best(cells) == Cell(0.6, 0.3, 0.5)


def test_ends_are_lower_than_the_peak() -> None:
    """The peak is found with even sentences (update 10) and measured with odd ones."""
    made = SimpleNamespace()
    even, odd = {0: 0.1, 10: 0.9, 20: 0.5}, {0: 0.2, 10: 0.7, 20: 0.6}
    made._uniform = {
        at: {"even": [Cell(even[at], 0, 0)], "odd": [Cell(odd[at], 0, 0)]} for at in even
    }
    assert Compared.ends(made, 0) == pytest.approx((0.5, 0.1))  # type: ignore[arg-type]
