"""What every task keeps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from regard.cache import cache_folder
from regard.contracts.contract import Check, require, require_docs, require_plain, same
from regard.errors import RegardError
from regard.tasks import EOS, PAD, SOS, TASKS, Batch, CorpusTask, Task
from regard.tasks.batch import mask

SIZE = 16


def make_task(name: str, settings: dict[str, Any]) -> Task:
    """A task with small held-out splits, and with settings of the user's."""
    kind = TASKS[name]
    config = kind.Config.model_validate({"held_out": 20, **settings})
    read: list[str] = []
    with watch_files(read):
        made = kind(config)
        made.train_batch(0, 2, seed=0)
    _read[id(made)] = read
    return made


_read: dict[int, list[str]] = {}  # what was read while a task was made


def check_settings(task: Task) -> None:
    """It says what it is, and its settings are plain and explained."""
    require_docs(type(task), "The task")
    require_plain(task.config.model_dump(), "The task's")
    for key, field in type(task.config).model_fields.items():
        require(field.description, f"The setting {key} has no description.")


def check_files(task: Task) -> None:
    """What it reads, it names: other content has to make another run."""
    known = {Path(path).resolve() for path in task.config.files()}
    for path in known:
        require(path.is_file(), f"`files` names {path}, which is no file: name each file alone.")
    for file in _read.pop(id(task), []):
        place = Path(file).resolve()
        require(place in known, f"It reads {file}, which `Config.files` does not name.")


def check_batches(task: Task) -> None:
    """Batches are well formed: padding, ends, and numbers of the vocabularies."""
    batch = task.train_batch(3, SIZE, seed=0)
    require(len(batch) == SIZE, f"A batch of {SIZE} has {len(batch)} rows.")
    sides = {
        "source": (batch.source, batch.source_lengths, task.source_vocabulary),
        "target": (batch.target, batch.target_lengths, task.target_vocabulary),
    }
    for side, (words, lengths, vocabulary) in sides.items():
        inside = mask(lengths, words.shape[1])
        require(words.dtype == torch.int64, f"The {side} is not of 64 bit integers.")
        require(int(lengths.max()) == words.shape[1], f"The {side} is wider than its longest row.")
        require(int(words.max()) < len(vocabulary), f"The {side} has numbers that are no words.")
        require((words[~inside] == PAD).all(), f"The {side} has words in its padding.")
        require((words[inside] != PAD).all(), f"The {side} has padding inside.")
        starts = task.starts and side == "source"
        require((words[:, 0] == SOS).all() == starts, f"<SOS> at the start of the {side}?")
        require((words[:, 1:] != SOS).all(), f"The {side} has <SOS> inside.")
    _check_ends(task, batch)
    require((batch.inputs[:, 0] == SOS).all(), "The decoder's first input is not <SOS>.")
    require(same(batch.inputs[:, 1:], batch.target[:, :-1]), "Inputs are not the target, shifted.")


def _check_ends(task: Task, batch: Batch) -> None:
    rows = torch.arange(len(batch))
    ends = batch.target[rows, batch.target_lengths - 1] == EOS
    right = ends.all() if task.ends else not (ends.any() and task.target_vocabulary.ends)
    require(right, "Targets should end in <EOS>, or the task say ends = False.")
    ends = batch.source[rows, batch.source_lengths - 1] == EOS
    require(ends.all() or not task.source_vocabulary.ends, "Sources should end in <EOS>.")


def check_repeatable(task: Task) -> None:
    """A batch is a function of seed and update, so that a run can be resumed."""
    first, again = (task.train_batch(5, SIZE, seed=1) for _ in range(2))
    fault = "The same update and seed give other batches: draw from the given generator alone."
    require(same(first.source, again.source) and same(first.target, again.target), fault)
    for other in (task.train_batch(6, SIZE, seed=1), task.train_batch(5, SIZE, seed=2)):
        require(
            not same(other.source, first.source), "Another update or seed gives the same batch."
        )


def check_splits(task: Task) -> None:
    """Splits are fixed, and differ from each other."""
    require({"validation", "test"} <= {*task.splits}, "There has to be a validation and a test.")
    for name in task.splits:
        again = same(task.split(name).source, task.split(name).source)
        require(again, f"The split {name} changes from call to call.")
    a, b = (task.split(name).source for name in ("validation", "test"))
    require(not same(a, b), "validation and test are the same.")


def check_metric(task: Task) -> None:
    """`correct` knows right from wrong."""
    batch = task.split("test")
    require(task.correct(batch.target, batch).all(), "The right answer is not correct.")
    longer = torch.nn.functional.pad(batch.target, (0, 3), value=7)
    require(task.correct(longer, batch).all(), "What comes after the end must not count.")
    wrong = batch.target.clone()
    last = batch.target_lengths - 1 - int(task.ends)  # the last word before <EOS>
    rows = torch.arange(len(batch))
    wrong[rows, last] = torch.where(wrong[rows, last] == 3, 4, 3)
    require(not task.correct(wrong, batch).any(), "A wrong last word counts as correct.")
    require(not task.correct(batch.target[:, :0], batch).any(), "Saying nothing is correct.")


def check_reversal(task: Task) -> None:
    """With `reverse_source` only the source is turned, and `correct` still knows the answer."""
    turned = type(task)(task.config.model_copy(update={"reverse_source": True}))
    plain, other = task.split("test"), turned.split("test")
    require(same(plain.target, other.target), "The target changes when the source is turned.")
    for row, back, length in zip(plain.source, other.source, plain.source_lengths, strict=True):
        first, n = int(task.starts), int(length) - int(task.source_vocabulary.ends)
        require(back[first:n].tolist() == row[first:n].tolist()[::-1], "The source is not turned.")
        rest = torch.equal(back[n:], row[n:]) and torch.equal(back[:first], row[:first])
        require(rest, "Ends and padding must stay where they are.")
    require(turned.correct(other.target, other).all(), "Turned, the right answer is not correct.")
    wrong = torch.where(other.target == 3, 4, torch.where(other.target > EOS, 3, other.target))
    judged = turned.correct(wrong, other) == task.correct(wrong, plain)
    require(judged.all(), "`correct` judges an answer otherwise when the source is turned.")


def check_padding(task: Task) -> None:
    """With `padding=read` padding is read in training, and nowhere else."""
    reading = type(task)(task.config.model_copy(update={"padding": "read"}))
    batch = reading.train_batch(0, SIZE, seed=0)
    require((batch.source_lengths == batch.source.shape[1]).all(), "Padding is not read.")
    require(same(batch.source, task.train_batch(0, SIZE, seed=0).source), "The words change.")
    held = same(reading.split("test").source_lengths, task.split("test").source_lengths)
    require(held, "Padding is read in a held-out split.")


def check_alignments(task: Task) -> None:
    """Attention targets, where there are any, point at words."""
    batch = task.train_batch(0, SIZE, seed=0)
    if batch.alignment is None:
        return
    require(batch.alignment.dtype == torch.int64, "Attention targets are 64 bit integers.")
    require(batch.alignment.shape == batch.target.shape, "One attention target for each word.")
    inside = (batch.alignment < batch.source_lengths[:, None]).all()
    require(inside and (batch.alignment >= -1).all(), "An attention target is outside the source.")
    require((batch.alignment[~batch.target_mask] == -1).all(), "In padding they are -1.")


def check_rows(task: Task) -> None:
    """Fixed rows are all trained on, and held-out rows are not."""
    if not isinstance(task, CorpusTask):
        return
    require(set(task.rows) == {"train", *task.splits}, "`rows` are those of train and each split.")
    train = pairs(task.rows["train"])
    epoch = pairs(task.train_batch(0, len(task.rows["train"]), seed=3))
    require(epoch == train, "An epoch is not all training rows.")
    require(task.default_split in task.splits, "`default_split` is none of the splits.")
    for name in task.splits:
        seen = pairs(task.split(name)) & train
        whole = name == task.default_split and seen == train
        require(not seen or whole, f"The split {name} holds training rows.")


def check_words(task: Task) -> None:
    """A word that is not in the vocabulary is named."""
    try:
        task.source_vocabulary.encode(["§"])
    except RegardError as error:
        require("§" in str(error), "The fault does not name the word.")
    else:
        require(False, "The source vocabulary takes any word.")


def pairs(batch: Batch) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The rows of a batch without their padding."""
    columns = (batch.source, batch.source_lengths, batch.target, batch.target_lengths)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(tuple(s[:n]), tuple(t[:m])) for s, n, t, m in rows}


@contextmanager
def watch_files(into: list[str]) -> Iterator[None]:
    """Note the data files that are opened meanwhile: no code, nothing installed, no cache."""
    if not _listeners:
        sys.addaudithook(_hear)  # such a hook stays for good; it only listens when asked to
    _listeners.append(into)
    try:
        yield
    finally:
        _listeners.pop()


_listeners: list[list[str]] = []
OWN = str(Path(__file__).parents[1])  # what comes with Regard does not change
CODE = {".py", ".pyc", ".so", ".pyd", ".dll", ".toml", ".model", ".vocab"}


def _hear(event: str, details: Any) -> None:
    if event != "open" or not _listeners or not isinstance(details[0], str):
        return
    path, how = Path(details[0]), str(details[1] or "r")
    system = ("/proc", "/sys", "/dev", sys.prefix, sys.base_prefix, OWN, str(cache_folder()))
    if "r" in how and path.suffix not in CODE and not str(path).startswith(system):
        _listeners[-1].append(str(path))


CONTRACT: tuple[Check, ...] = (
    check_settings, check_files, check_batches, check_repeatable, check_splits, check_metric,
    check_reversal, check_padding, check_alignments, check_rows, check_words,
)  # fmt: skip
