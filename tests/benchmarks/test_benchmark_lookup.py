from __future__ import annotations

import json

import pytest
import torch

from benchmarks import BENCHMARKS
from benchmarks.lookup import lookup
from benchmarks.lookup_groups import groups_ratio
from benchmarks.plain_guided import guided, renamed
from benchmarks.profile import MOVES, PARTS, profile_updates, stopwatch
from regard.errors import RegardError
from regard.training.forcing import forward
from regard.training.losses import guidance, likelihood


@pytest.mark.parametrize("row", [0, 100])
@pytest.mark.parametrize("which", [0, 1])
def test_the_plain_loop_has_the_same_losses_and_gradients(row: int, which: int) -> None:
    trainer, *loops = guided(hidden=24)
    model, plain = trainer.model.double(), loops[which]
    plain.model.double().load_state_dict(renamed(model.state_dict()))

    batch = trainer.task.rows["train"][row : row + 1]  # type: ignore[attr-defined]
    output = forward(model, batch, torch.zeros(batch.target.shape[1], dtype=torch.bool))
    ours = (
        likelihood(output.logits, batch.target, batch.target_mask, "sequences"),
        guidance(output.sites, batch, "sequences"),
    )
    theirs = plain.model(batch)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)

    (ours[0] + ours[1]).backward()
    plain.backward(theirs)
    wanted = renamed({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    found = {name: p.grad for name, p in plain.model.named_parameters()}
    assert set(wanted) == set(found)
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-8, atol=1e-12)


def test_training_equals_the_plain_loop_update_by_update() -> None:
    """The same examples in the same order, own predictions, clipping and Adam."""
    ours, twice, once = guided(hidden=32)
    for _ in range(12):
        loss = ours.step()
        assert twice.step() == pytest.approx(loss, abs=1e-4)
        assert once.step() == pytest.approx(loss, abs=1e-4)


def test_the_model_has_the_size_of_the_paper() -> None:
    ours, plain, _ = guided()
    count = sum(p.numel() for p in plain.model.parameters())
    assert ours.model.parameter_count == count == 3_451_708


def test_a_profile_tells_all_of_the_time_and_changes_nothing() -> None:
    watched, other = guided(hidden=32)[0], guided(hidden=32)[0]
    before = {place: getattr(*place) for places in PARTS.values() for place in places}
    found = profile_updates(watched, 4)
    assert {place: getattr(*place) for place in before} == before
    assert set(found["shares"]) == {*PARTS, "rest"}
    assert all(share > 0 for share in found["shares"].values())
    assert sum(found["shares"].values()) == pytest.approx(1)
    count = sum(p.numel() for p in watched.model.parameters())
    assert found["adam_bytes"] == 4 * MOVES * count
    for _ in range(watched.update):
        other.step()
    for a, b in zip(watched.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_stopwatch_lets_go_when_something_fails() -> None:
    class Owner:
        @staticmethod
        def fails() -> None:
            raise ValueError("as planned")

    before = Owner.fails
    with (
        pytest.raises(ValueError, match="planned"),
        stopwatch({"a": ((Owner, "fails"),)}) as seconds,
    ):
        Owner.fails()
    assert Owner.fails is before
    assert seconds["a"] > 0


def test_groups_are_compared_where_their_sizes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = groups_ratio(problems=1, units=48)
    assert found["ratio"] == found["plain_seconds"][0] / found["seconds"][0] > 0
    assert abs(found["units"][0] - found["plain_units"][0]) <= 1
    monkeypatch.setattr("benchmarks.lookup_groups.APART", -1)
    with pytest.raises(RegardError, match="sizes of groups"):
        groups_ratio(problems=1, units=16)


def test_the_benchmark_runs_small() -> None:
    found = lookup(rounds=2, updates=3, problems=1, units=32, hidden=32)
    assert {name: goal for name, (_, goal, _) in found.ratios.items()} == {
        "guided_epoch": 2.0,
        "groups": 3.0,
    }
    assert all(measured > 0 for measured, _, _ in found.ratios.values())
    raw = json.loads(json.dumps(found.to_json()))["raw"]
    assert raw["seconds_per_epoch"] > 0
    assert raw["plain_seconds_per_epoch"] > 0
    assert BENCHMARKS["lookup"] is lookup
