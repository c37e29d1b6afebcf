"""The short form of `make torture`: a few of everything, and nothing may fail."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from regard.errors import RegardError
from torture.__main__ import run_all
from torture.tally import Tally, table


def test_a_few_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = run_all(tmp_path, kills=2, flips=20, inputs=24, seed=random.randrange(10**6))
    assert [failure for row in rows for failure in row.failures] == []
    assert sum(row.tried for row in rows) > 130


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
