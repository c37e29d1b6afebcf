from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import BENCHMARKS
from benchmarks.benchmark import Benchmark, agree, medians_in_turns
from benchmarks.plain_loop import PlainLoop, rename
from benchmarks.plain_reversal import PlainReversal, plain_reversal
from benchmarks.training import reversal
from regard.errors import RegardError


def test_the_yardstick_learns_the_same_task() -> None:
    """Plain and ours are compared on equal terms: same sizes, same loss at the start."""
    plain, fast = plain_reversal(), reversal()
    assert sum(p.numel() for p in plain.model.parameters()) == fast.model.parameter_count
    a, b = [plain.step() for _ in range(30)], [fast.step() for _ in range(30)]
    assert abs(a[0] - b[0]) < 0.2
    assert a[-1] < a[0]
    assert b[-1] < b[0]


def test_ratios_are_reported_with_their_goals() -> None:
    found = Benchmark("b", {"x": (2.0, 1.5, "means"), "y": (1.0, 1.5, "means")}, {"raw": 1})
    data = json.loads(json.dumps(found.to_json()))
    assert [data["ratios"][k]["reached"] for k in ("x", "y")] == [True, False]
    assert found.table().cells()[0][:4] == ["x", "2", "1.5", "yes"]


def test_times_are_positive() -> None:
    works = (lambda: sum(range(100)), lambda: None)
    assert all(t > 0 for t in medians_in_turns(*works, rounds=2, calls=5))


def test_different_results_are_not_compared() -> None:
    agree("Losses", 1.0, 1.00005)
    agree("Shares", [0.5, 0.5], (0.50005, 0.49995))
    for wrong in (1.1, float("nan")):
        with pytest.raises(RegardError, match=r"Losses: .* apart, so there is nothing to compare"):
            agree("Losses", 1.0, wrong)
    with pytest.raises(RegardError, match="Shares"):
        agree("Shares", [0.5, 0.5], [0.6, 0.4], 0.05)


def test_training_equals_the_yardstick_update_by_update() -> None:
    """Same weights, same batches: a plain program in torch.nn has the same losses."""
    ours = reversal(padding="read")
    weights = ours.model.state_dict()
    cells = rename(weights, {"encoder.": "encoder.ahead.0.", "decoder.": "decoder.0."})
    own = {name: w for name, w in weights.items() if not name.startswith(("encoder", "decoder"))}
    own |= {f"{name}_l0": weight for name, weight in cells.items()}
    plain = PlainLoop.beside(ours, PlainReversal(), own)
    for _ in range(12):
        assert ours.step() == pytest.approx(plain.step(), abs=1e-5)


def test_a_wrong_name_is_told_with_exit_code_2() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "benchmarks", "trainig"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "training" in done.stderr and "Traceback" not in done.stderr
    assert {"training", "instruments", "lookup", "snell"} <= set(BENCHMARKS)
