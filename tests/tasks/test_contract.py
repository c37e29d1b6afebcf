"""One contract, kept by every registered task."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.tasks import EOS, PAD, SOS, TASKS, Batch, CorpusTask, Task
from regard.tasks.batch import mask


@pytest.fixture(params=list(TASKS))
def task(request: pytest.FixtureRequest, task_files: dict[str, dict[str, Any]]) -> Task:
    kind = TASKS[request.param]
    settings = {"held_out": 20, **task_files.get(request.param, {})}
    return kind(kind.Config.model_validate(settings))


def test_batches_are_well_formed(task: Task) -> None:
    batch = task.train_batch(3, 16, seed=0)
    assert len(batch) == 16
    for words, lengths, vocabulary in (
        (batch.source, batch.source_lengths, task.source_vocabulary),
        (batch.target, batch.target_lengths, task.target_vocabulary),
    ):
        inside = mask(lengths, words.shape[1])
        assert words.dtype == torch.int64
        assert int(lengths.max()) == words.shape[1]
        assert int(words.max()) < len(vocabulary)
        assert (words[~inside] == PAD).all()
        assert (words[inside] != PAD).all()
        starts = task.starts and vocabulary is task.source_vocabulary and words is batch.source
        assert (words[:, 0] == SOS).all() == starts
        assert (words[:, 1:] != SOS).all()
    ends = batch.target[torch.arange(16), batch.target_lengths - 1] == EOS
    assert ends.all() if task.ends else not (ends.any() and task.target_vocabulary.ends)
    ends = batch.source[torch.arange(16), batch.source_lengths - 1] == EOS
    assert ends.all() or not task.source_vocabulary.ends
    assert (batch.inputs[:, 0] == SOS).all()
    assert (batch.inputs[:, 1:] == batch.target[:, :-1]).all()


def test_a_batch_is_a_function_of_seed_and_update(task: Task) -> None:
    first, again = (task.train_batch(5, 8, seed=1) for _ in range(2))
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.target, again.target)
    others = [task.train_batch(6, 8, seed=1), task.train_batch(5, 8, seed=2)]
    assert all(
        other.source.shape != first.source.shape or not torch.equal(other.source, first.source)
        for other in others
    )


def test_splits_are_fixed_and_differ(task: Task) -> None:
    assert "validation" in task.splits
    for name in task.splits:
        assert torch.equal(task.split(name).source, task.split(name).source)
    a, b = task.split("validation").source, task.split("test").source
    assert a.shape != b.shape or not torch.equal(a, b)


def test_the_metric_knows_right_from_wrong(task: Task) -> None:
    batch = task.split("test")
    assert task.correct(batch.target, batch).all()
    longer = torch.nn.functional.pad(batch.target, (0, 3), value=7)
    assert task.correct(longer, batch).all(), "what comes after the end does not count"
    wrong = batch.target.clone()
    last = batch.target_lengths - 1 - int(task.ends)  # the last word before <EOS>
    rows = torch.arange(len(batch))
    wrong[rows, last] = torch.where(wrong[rows, last] == 3, 4, 3)
    assert not task.correct(wrong, batch).any()
    assert not task.correct(batch.target[:, :0], batch).any(), "nothing said is not right"


def test_source_can_be_fed_backwards(task: Task) -> None:
    turned = type(task)(task.config.model_copy(update={"reverse_source": True}))
    plain, other = task.split("test"), turned.split("test")
    assert torch.equal(plain.target, other.target)
    for row, back, length in zip(plain.source, other.source, plain.source_lengths, strict=True):
        first, n = int(task.starts), int(length) - int(task.source_vocabulary.ends)
        assert back[first:n].tolist() == row[first:n].tolist()[::-1]
        assert torch.equal(back[n:], row[n:])
        assert torch.equal(back[:first], row[:first])


def test_padding_can_be_read_in_training_only(task: Task) -> None:
    reading = type(task)(task.config.model_copy(update={"padding": "read"}))
    batch = reading.train_batch(0, 16, seed=0)
    assert (batch.source_lengths == batch.source.shape[1]).all()
    assert torch.equal(batch.source, task.train_batch(0, 16, seed=0).source)
    assert torch.equal(reading.split("test").source_lengths, task.split("test").source_lengths)


def test_alignments_point_at_words(task: Task) -> None:
    batch = task.train_batch(0, 16, seed=0)
    if batch.alignment is None:
        return
    assert batch.alignment.dtype == torch.int64
    assert batch.alignment.shape == batch.target.shape
    assert (batch.alignment < batch.source_lengths[:, None]).all()
    assert (batch.alignment >= -1).all()
    assert (batch.alignment[~batch.target_mask] == -1).all()


def test_what_determines_a_task_is_said(
    task: Task, request: pytest.FixtureRequest, task_files: dict[str, dict[str, Any]]
) -> None:
    name = request.node.callspec.params["task"]
    assert [*map(str, task.config.files())] == [
        value for value in task_files.get(name, {}).values() if isinstance(value, str)
    ]


def pairs(batch: Batch) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    rows = zip(
        batch.source.tolist(), batch.source_lengths.tolist(),
        batch.target.tolist(), batch.target_lengths.tolist(), strict=True,
    )  # fmt: skip
    return {(tuple(s[:n]), tuple(t[:m])) for s, n, t, m in rows}


def test_fixed_rows_are_held_out_and_all_trained_on(task: Task) -> None:
    if not isinstance(task, CorpusTask):
        return
    assert set(task.rows) == {"train", *task.splits}
    train = pairs(task.rows["train"])
    assert pairs(task.train_batch(0, len(task.rows["train"]), seed=3)) == train
    for name in task.splits:
        seen = pairs(task.split(name)) & train
        assert not seen or (name == task.default_split and seen == train)
    assert task.default_split in task.splits
    assert len(task.split("validation")) == task.config.held_out


def test_strange_words_are_named(task: Task) -> None:
    with pytest.raises(RegardError, match="§"):
        task.source_vocabulary.encode(["§"])
