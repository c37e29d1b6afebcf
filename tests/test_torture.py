"""The short form of `make torture`: a few of everything, and nothing may fail."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import pytest

import regard
from regard.errors import RegardError
from torture import __main__ as torture
from torture.__main__ import run_all
from torture.inputs import try_training
from torture.tally import Tally, add_up, table


def test_a_few_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = run_all(tmp_path, kills=2, flips=20, inputs=24, seed=random.randrange(10**6))
    assert [failure for row in rows for failure in row.failures] == []
    assert sum(row.tried for row in rows) > 130


@pytest.mark.parametrize(
    ("preset", "task", "settings"),
    [
        ("baan", "lookup", {"context_layer": True}),
        ("snell-translation", "reversal", {"readout": "state"}),
    ],
)
def test_combinations_that_were_found(
    preset: str, task: str, settings: dict[str, object], tmp_path: Path
) -> None:
    """Tracebacks that generated settings have shown, each refused with a sentence now."""
    with pytest.raises(RegardError, match="context_layer needs an output layer that sees it"):
        try_training(tmp_path)((task, preset, settings))


@pytest.mark.parametrize("seed", ["0", -1, 1.5, None, True, [0]])
def test_seeds_are_whole_numbers(seed: object, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="a seed is a whole number"):
        regard.train("reversal", seed=seed, out=tmp_path, updates=1)  # type: ignore[arg-type]


def test_what_counts_as_failed() -> None:
    tally = Tally("x")

    def wrong() -> str:
        raise AssertionError("other numbers")

    def refused() -> str:
        raise RegardError("A sentence.")

    def silent() -> str:
        raise RegardError

    tally.attempt("a", wrong)
    tally.attempt("b", refused)
    tally.attempt("c", lambda: str(1 // 0))
    tally.attempt("d", silent)
    tally.attempt("e", lambda: "fine")
    assert (tally.tried, tally.held) == (5, 2)
    assert "| x | 5 | 2 | 3 | fine 1; refused with a sentence 1 |" in table([tally])


def test_rounds_are_kept_and_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    def run(root: Path, *counts: int) -> list[Tally]:
        asked.append(counts)
        one, two = Tally("one"), Tally("two")
        one.note("held")
        two.note("held") if len(asked) % 2 else two.fail(f"round {len(asked)}")
        return [one, two]

    monkeypatch.setattr(torture, "run_all", run)
    options = argparse.Namespace(
        kills=10, flips=4, inputs=7, seed=5, rounds=3, keep=tmp_path / "kept.json"
    )
    rows = torture.run_rounds(options)
    assert asked == [(4, 2, 3, 5), (4, 2, 3, 6), (4, 2, 3, 7)]
    assert [(row.name, row.tried, row.held) for row in rows] == [("one", 3, 3), ("two", 3, 2)]
    assert rows[1].failures == ["round 2"] and rows[0].outcomes == {"held": 3}
    assert torture.run_rounds(options) == rows and len(asked) == 3, "nothing is done again"
    options.rounds = 4
    assert torture.run_rounds(options)[0].tried == 4 and len(asked) == 4
    assert add_up([]) == []
