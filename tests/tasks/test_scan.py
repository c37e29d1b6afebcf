from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.tasks import Batch
from regard.tasks.scan import Scan
from regard.tasks.scan_grammar import commands

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
