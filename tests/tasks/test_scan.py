from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.runs.config import assemble
from regard.tasks import Batch
from regard.tasks.scan._grammar import commands, origins
from regard.tasks.scan.scan import Scan

BY_HAND = {
    "jump": "I_JUMP",
    "turn left": "I_TURN_LEFT",
    "walk right thrice": "I_TURN_RIGHT I_WALK I_TURN_RIGHT I_WALK I_TURN_RIGHT I_WALK",
    "look opposite left": "I_TURN_LEFT I_TURN_LEFT I_LOOK",
    "turn opposite right": "I_TURN_RIGHT I_TURN_RIGHT",
    "turn around left": "I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT",
    "run around left": " ".join(["I_TURN_LEFT I_RUN"] * 4),
    "run twice and jump": "I_RUN I_RUN I_JUMP",
    "run twice after jump left": "I_TURN_LEFT I_JUMP I_RUN I_RUN",
}
ORIGINS = {
    "jump": "0",
    "turn left": "1",
    "walk right thrice": "1 0 1 0 1 0",
    "turn opposite right": "2 2",
    "run around left": "2 0 2 0 2 0 2 0",
    "run twice and jump": "0 0 3",
    "run twice after jump left": "4 3 0 0",
}
SIZES = {
    "simple": (16_728, 4_182),
    "length": (16_990, 3_920),
    "jump": (14_670, 7_706),
    "turn-left": (21_890, 1_208),
}
Pairs = Counter[tuple[str, str]]


def in_words(task: Scan, batch: Batch) -> Pairs:
    return Counter(
        (
            " ".join(task.source_vocabulary.decode(source)),
            " ".join(task.target_vocabulary.decode(target)),
        )
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    )


def published(path: Path) -> Pairs:
    with gzip.open(path, "rt") as file:
        pairs = [line.strip().removeprefix("IN: ").split(" OUT: ") for line in file]
    return Counter((command, actions) for command, actions in pairs)


def sides(split: str, held_out: int = 100) -> tuple[Pairs, Pairs, Pairs]:
    task = Scan(Scan.Config(split=split, held_out=held_out))
    train, validation, test = (
        in_words(task, task.rows[name]) for name in ("train", "validation", "test")
    )
    return train, validation, test


def test_there_are_20910_commands() -> None:
    assert len(commands()) == 20_910


@pytest.mark.parametrize("command", BY_HAND)
def test_commands_by_hand(command: str) -> None:
    assert " ".join(commands()[tuple(command.split())]) == BY_HAND[command]


@pytest.mark.parametrize("command", ORIGINS)
def test_origins_by_hand(command: str) -> None:
    assert " ".join(map(str, origins()[tuple(command.split())])) == ORIGINS[command]


def test_the_end_is_aligned_with_the_end() -> None:
    batch = Scan(Scan.Config()).split("test")
    assert batch.alignment is not None
    rows = torch.arange(len(batch))
    ends = batch.alignment[rows, batch.target_lengths - 1]
    assert torch.equal(ends, batch.source_lengths - 1)
    assert torch.equal(batch.alignment == -1, ~batch.target_mask)


@pytest.mark.parametrize("split", SIZES)
def test_sides_have_their_sizes_and_share_nothing(split: str) -> None:
    train, validation, test = sides(split)
    assert (train.total() + validation.total(), test.total()) == SIZES[split]
    assert validation.total() == len(validation) == 100
    assert not (set(train) & set(validation) or set(train) & set(test))
    assert not set(validation) & set(test)


def test_length_split_is_by_actions() -> None:
    train, _, test = sides("length")
    assert max(len(actions.split()) for _, actions in train) == 22
    assert min(len(actions.split()) for _, actions in test) == 24


@pytest.mark.parametrize("primitive", ["jump", "turn left"])
def test_a_primitive_is_seen_alone_only(primitive: str) -> None:
    train, validation, test = sides(primitive.replace(" ", "-"))
    using = {pair: count for pair, count in train.items() if primitive in pair[0]}
    assert [command for command, _ in using] == [primitive]
    assert not any(primitive in command for command, _ in validation)
    assert all(primitive in command for command, _ in test)


def test_too_large_a_validation_set_is_told() -> None:
    with pytest.raises(RegardError, match=r"task.held_out=20000 .* leaves none to train on"):
        Scan(Scan.Config(held_out=20_000))


def test_commands_equal_the_published_ones(real: Callable[[str], Path]) -> None:
    ours = Counter((" ".join(command), " ".join(does)) for command, does in commands().items())
    assert ours == published(real("scan/tasks.txt.gz"))


@pytest.mark.parametrize(
    ("split", "file"),
    [("length", "length"), ("jump", "addprim_jump"), ("turn-left", "addprim_turn_left")],
)
def test_splits_equal_the_published_ones(
    split: str, file: str, real: Callable[[str], Path]
) -> None:
    train, validation, test = sides(split)
    assert train + validation == published(real(f"scan/tasks_train_{file}.txt.gz"))
    assert test == published(real(f"scan/tasks_test_{file}.txt.gz"))


def aligned(task: Scan, name: str) -> Counter[tuple[str, ...]]:
    """Rows as the published files have them: source, target, attention targets."""
    batch = task.rows[name]
    assert batch.alignment is not None
    return Counter(
        (
            " ".join([*task.source_vocabulary.decode(source), "."]),
            " ".join(task.target_vocabulary.decode(target)),
            " ".join(str(place) for place in places if place >= 0),
        )
        for source, target, places in zip(
            batch.source.tolist(), batch.target.tolist(), batch.alignment.tolist(), strict=True
        )
    )


def test_alignments_equal_the_published_ones(real: Callable[[str], Path]) -> None:
    ours = {
        (*command, "."): (does, (*origins()[command], len(command)))
        for command, does in commands().items()
    }
    files = sorted(real("scan_attention").glob("*.tsv.gz"))
    assert files
    for file in files:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                source, target, places = (column.split() for column in line.split("\t"))
                assert ours[tuple(source)] == (tuple(target), tuple(map(int, places)))


@pytest.mark.parametrize("split", ["simple", "jump", "length"])
def test_published_splits_can_be_read(split: str, real: Callable[[str], Path]) -> None:
    task = Scan(Scan.Config(split=split, data=str(real("scan_attention"))))
    train, validation, test = (aligned(task, name) for name in ("train", "validation", "test"))
    assert (train.total() + validation.total(), test.total()) == SIZES[split]
    assert validation.total() == (3920 if split == "length" else 500)
    assert not (train & validation or train & test or validation & test)
    if split != "simple":
        ours = Scan(Scan.Config(split=split))
        assert aligned(ours, "train") + aligned(ours, "validation") == train + validation
        assert aligned(ours, "test") == test


def test_an_incomplete_published_split_is_told(real: Callable[[str], Path]) -> None:
    with pytest.raises(RegardError, match=r"has no addprim_turn_left_split_train\.tsv\. The"):
        Scan(Scan.Config(split="turn-left", data=str(real("scan_attention"))))


ROWS = ["run .\tI_RUN\t0 1\n", "walk .\tI_WALK\t0 1\n", "jump .\tI_JUMP\t0 1\n" * 2]


def folder(path: Path, test: str, validation: str = "") -> str:
    (path / "addprim_jump_split_train.tsv").write_text("".join(ROWS), encoding="utf-8")
    (path / "addprim_jump_split_test.tsv").write_text(test, encoding="utf-8")
    if validation:
        (path / "addprim_jump_split_validation.tsv").write_text(validation, encoding="utf-8")
    return str(path)


TURN = "turn left .\tI_TURN_LEFT\t1 2\n"


def test_validation_is_taken_from_training_where_it_has_no_file(tmp_path: Path) -> None:
    data = folder(tmp_path, TURN)
    task = Scan(Scan.Config(split="jump", data=data, held_out=1))
    assert in_words(task, task.rows["train"])["jump", "I_JUMP"] == 2, "what is repeated stays"
    assert len(task.rows["train"]) == 3
    assert len(task.rows["validation"]) == 1
    assert aligned(task, "test") == Counter([tuple(TURN.strip().split("\t"))])


def test_held_out_is_refused_where_validation_has_a_file(tmp_path: Path) -> None:
    data = folder(tmp_path, TURN, validation=TURN.replace("left", "right").replace("LEFT", "RIGHT"))
    assert len(Scan(Scan.Config(split="jump", data=data)).rows["train"]) == 4
    with pytest.raises(RegardError, match=r"task.held_out=1 has no effect, as there are files"):
        Scan(Scan.Config(split="jump", data=data, held_out=1))


@pytest.mark.parametrize("row", ["fly .\tI_RUN\t0 1\n", "run .\trun\t0 1\n"])
def test_words_that_scan_does_not_have_are_named(tmp_path: Path, row: str) -> None:
    data = folder(tmp_path, TURN + row)
    with pytest.raises(RegardError, match=r"split_test\.tsv, line 2: '(fly|run)' is not a word"):
        Scan(Scan.Config(split="jump", data=data, held_out=1))


def test_other_content_makes_another_run(tmp_path: Path) -> None:
    names = []
    for test in (TURN, TURN * 2, TURN):
        settings = {"split": "jump", "data": folder(tmp_path, test)}
        names.append(assemble("scan", "chapter36", 0, settings).name)
    assert names[0] == names[2] != names[1]
