from __future__ import annotations

import json

from regard.bench.benchmark import Benchmark, in_turns
from regard.bench.plain import PlainTraining
from regard.bench.training import ours


def test_the_yardstick_learns_the_same_task() -> None:
    """Plain and ours are compared on equal terms: same sizes, same loss at the start."""
    plain, fast = PlainTraining(), ours()
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
    assert all(t > 0 for t in in_turns(lambda: sum(range(100)), lambda: None, rounds=2, calls=5))
