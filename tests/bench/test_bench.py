from __future__ import annotations

import json

import pytest
import torch

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


def test_training_equals_the_yardstick_update_by_update() -> None:
    """Same weights, same batches: a plain program in torch.nn has the same losses."""
    fast, plain = ours(padding="read"), PlainTraining()
    weights = fast.model.state_dict()
    names = {"ih_l0": "weight_ih", "hh_l0": "weight_hh"}
    with torch.no_grad():
        plain.model.source_embedding.weight.copy_(weights["source_embedding.weight"])
        plain.model.target_embedding.weight.copy_(weights["target_embedding.weight"])
        for theirs, prefix in (("encoder", "encoder.ahead.0"), ("decoder", "decoder.0")):
            for name, parameter in getattr(plain.model, theirs).named_parameters():
                kind, which = name.split("_", 1)
                own = names[which] if kind == "weight" else names[which].replace("weight", "bias")
                parameter.copy_(weights[f"{prefix}.{own}"])
        plain.model.output.weight.copy_(weights["readout.weight"])
        plain.model.output.bias.copy_(weights["readout.bias"])
    for update in range(12):
        batch = fast.task.train_batch(update, 64, 0)
        target = torch.cat([torch.ones(64, 1, dtype=torch.int64), batch.target], dim=1)
        plain.make_batch = lambda pair=(batch.source, target): pair  # type: ignore[method-assign]
        assert fast.step() == pytest.approx(plain.step(), abs=1e-5)
