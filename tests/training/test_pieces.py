"""A batch in pieces gives what it gives whole, up to rounding: in one process, and in two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import team
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.dropping import drop_out, part_of
from regard.runs import assemble
from regard.tasks import TASKS
from regard.training import TrainingConfig, losses
from regard.training.pieces import cut, require_separable
from regard.training.ranks import ALONE, Ranks

State = dict[str, Tensor]


def assert_alike(whole: tuple[list[float], State], cut_up: tuple[list[float], State]) -> None:
    assert cut_up[0] == pytest.approx(whole[0], rel=2e-5)
    assert whole[1].keys() == cut_up[1].keys()
    for name, tensor in whole[1].items():
        torch.testing.assert_close(cut_up[1][name], tensor, rtol=1e-3, atol=2e-5, msg=name)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes on loopback make of all cases."""
    folder = tmp_path_factory.mktemp("together")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    given = (str(folder / "store"), str(folder))
    workers = [
        subprocess.Popen([sys.executable, team.__file__, str(rank), *given], env=environment)
        for rank in range(2)
    ]
    try:
        assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names the loopback of Linux")
@pytest.mark.parametrize("name", team.CASES)
def test_two_processes_give_what_one_gives(name: str, together: Path) -> None:
    first, second = (load_file(together / f"{name}.{rank}") for rank in range(2))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first), "they drift apart"
    assert_alike(team.train(name), (first.pop("losses").tolist(), first))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names the loopback of Linux")
@pytest.mark.parametrize("name", [name for name in team.CASES if name != "professor"])
def test_two_processes_add_as_two_pieces_do(name: str, together: Path) -> None:
    """A sum of two has one order: to the bit."""
    _, pieces = team.train(name, accumulate=2)
    shared = load_file(together / f"{name}.0")
    assert all(torch.equal(shared[key], pieces[key]) for key in pieces)


@pytest.mark.parametrize("name", [name for name in team.CASES if name != "professor"])
def test_three_pieces_give_what_the_batch_gives(name: str) -> None:
    assert_alike(team.train(name), team.train(name, accumulate=3))


def test_a_batch_is_cut_into_all_of_its_rows() -> None:
    task = TASKS["reversal"](TASKS["reversal"].Config())
    batch = task.train_batch(0, 11, 0)
    pieces = [piece for rank in range(2) for piece in cut(batch, Ranks(rank, 2), 2)]
    assert [(piece.start, len(piece.batch)) for piece in pieces] == [(0, 2), (2, 3), (5, 3), (8, 3)]
    assert torch.equal(torch.cat([piece.batch.target for piece in pieces]), batch.target)
    assert sum(piece.share for piece in pieces) == pytest.approx(1)
    assert [piece.whole for piece in cut(batch, ALONE, 1)] == [None]
    with pytest.raises(RegardError, match="11 rows, too few"):
        next(iter(cut(batch, Ranks(0, 3), 4)))


def test_parts_of_losses_by_hand() -> None:
    """Sums over a piece's words, divided by the whole batch's."""
    task = TASKS["lookup"](TASKS["lookup"].Config())
    batch = task.train_batch(0, 5, 0)
    whole = losses.Counts.of(batch)
    lengths = batch.target_lengths.tolist()
    assert (whole.sequences, whole.words) == (5, sum(lengths))
    aligned = sum(int(p) >= 0 for row, n in enumerate(lengths) for p in batch.alignment[row, :n])
    assert whole.aligned == aligned > 0
    part, words = batch.part(3, 5), len(task.target_vocabulary)
    logits = torch.randn(2, part.target.shape[1], words)
    numbers = logits.double().numpy()
    chances = numbers - np.log(np.exp(numbers).sum(2, keepdims=True))
    total = -sum(chances[b, t, part.target[b, t]] for b in range(2) for t in range(lengths[3 + b]))
    given = (logits, part.target, part.target_mask)
    for average, count in (("words", sum(lengths)), ("sequences", 5)):
        found = losses.likelihood(*given, average, whole)  # type: ignore[arg-type]
        assert float(found) == pytest.approx(total / count, rel=1e-5)


def test_a_mask_belongs_to_a_row_of_the_batch() -> None:
    x = torch.rand(6, 4, 3) + 1
    torch.manual_seed(5)
    whole = drop_out(x, 0.4)
    parts = []
    for start, end in ((0, 1), (1, 4), (4, 6)):
        torch.manual_seed(5)
        with part_of(start, 6):
            parts.append(drop_out(x[start:end], 0.4))
    assert torch.equal(torch.cat(parts), whole)
    assert 0 < int((whole == 0).sum()) < whole.numel()


@pytest.mark.parametrize(
    "part", [nn.Dropout(0.1), nn.BatchNorm1d(3), nn.LSTM(2, 2, 2, dropout=0.1)]
)
def test_what_mixes_rows_is_refused(part: nn.Module) -> None:
    with pytest.raises(RegardError, match=f"part inner.0 .{type(part).__name__}. would give other"):
        require_separable(nn.ModuleDict({"inner": nn.Sequential(part)}))
    require_separable(nn.Sequential(nn.Dropout(0.0), nn.LSTM(2, 2), nn.Linear(2, 2)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"batch": 3, "processes": 2, "accumulate": 2}, "batch=3 is too small for processes=2"),
        ({"accumulate": 2, "forcing": "professor"}, "has to see the whole batch"),
        ({"processes": 0}, "greater than or equal to 1"),
        ({"precision": "fp8"}, "'float32' or 'bf16'"),
    ],
)
def test_what_does_not_go_together(settings: dict[str, object], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        assemble("reversal", "chapter36", 0, settings)


def test_settings_that_came_later_leave_names_alone() -> None:
    plain = assemble("reversal", "chapter36", 0, {})
    said = {"processes": 1, "accumulate": "1", "precision": "float32"}
    assert assemble("reversal", "chapter36", 0, said).name == plain.name
    assert not TrainingConfig.later & plain.to_json()["training"].keys()
    for key, value in {"processes": 2, "accumulate": 2, "precision": "bf16"}.items():
        other = assemble("reversal", "chapter36", 0, {key: value})
        assert other.name != plain.name
        assert type(other).from_json(other.to_json()) == other


@pytest.mark.filterwarnings("ignore:This processor has no instructions")
@pytest.mark.parametrize("name", [name for name in team.CASES if name not in ("dropout", "labels")])
def test_half_the_bits_give_nearly_the_same(name: str) -> None:
    whole, half = team.train(name), team.train(name, precision="bf16")
    assert half[0] == pytest.approx(whole[0], rel=0.02)
    assert half[0] != whole[0], "nothing was computed otherwise"
    assert {tensor.dtype for tensor in half[1].values()} <= {torch.float32, torch.float64}
    again = team.train(name, precision="bf16")
    assert all(torch.equal(half[1][key], again[1][key]) for key in again[1])
