"""SCAN: commands to sequences of actions, with its four classic splits (Lake & Baroni 2018)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from regard.tasks.batch import Batch, collate
from regard.tasks.corpus import CorpusTask, parted
from regard.tasks.scan_grammar import ACTION_WORDS, COMMAND_WORDS, Words, commands
from regard.tasks.task import TaskConfig, tasks
from regard.tasks.vocabulary import EOS, Vocabulary

LONGEST_TRAINED = 22  # actions, in the length split
TEST_OF_SIMPLE = 4182  # a fifth of all commands
SHUFFLE = 2018  # of the simple split


@tasks.register("scan")
class Scan(CorpusTask):
    """`jump left twice` to `I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP`: 20,910 commands.

    "test" is the whole test side of the chosen split. "validation" is `held_out` distinct commands
    taken out of the training side by a fixed shuffle; the oversampled primitive stays in training.
    """

    class Config(TaskConfig):
        """Which commands are for training, and which for the test."""

        split: Literal["simple", "length", "jump", "turn-left"] = Field(
            "simple",
            description="simple: 80/20 at random; length: train on up to 22 actions;"
            " jump, turn-left: train on this primitive alone, test its compositions",
        )

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        self.source_vocabulary = Vocabulary.of(COMMAND_WORDS)
        self.target_vocabulary = Vocabulary.of(ACTION_WORDS)
        train, test, extra = SPLITS[config.split]()
        chosen, rest = parted(len(train), [config.held_out], "task.held_out")
        self.rows = {
            "train": self.batch([train[i] for i in rest] + extra),
            "validation": self.batch([train[i] for i in chosen]),
            "test": self.batch(test),
        }

    def batch(self, given: list[Words]) -> Batch:
        """Given commands and their actions, `<EOS>` at the end of both."""
        meaning, source, target = commands(), self.source_vocabulary, self.target_vocabulary
        return collate(
            [[*source.encode(command), EOS] for command in given],
            [[*target.encode(meaning[command]), EOS] for command in given],
        )


Sides = tuple[list[Words], list[Words], list[Words]]


def simple() -> Sides:
    """80 % to train on and 20 % to test on, by our own fixed shuffle; nothing extra."""
    every = list(commands())
    order = np.random.default_rng(SHUFFLE).permutation(len(every))
    train, test = np.sort(order[TEST_OF_SIMPLE:]), np.sort(order[:TEST_OF_SIMPLE])
    return [every[i] for i in train], [every[i] for i in test], []


def length() -> Sides:
    """Up to 22 actions to train on, more (24 to 48) to test on; nothing extra."""
    short = [c for c, actions in commands().items() if len(actions) <= LONGEST_TRAINED]
    long = [c for c, actions in commands().items() if len(actions) > LONGEST_TRAINED]
    return short, long, []


def added(primitive: Words) -> Sides:
    """Commands without `primitive` to train on, those that compose it to test on.

    Extra rows for training are the primitive alone, so often that it is a tenth of all of them.
    """
    name = " ".join(primitive)
    using = {command: name in " ".join(command) for command in commands()}
    without = [command for command, used in using.items() if not used]
    composed = [command for command, used in using.items() if used and command != primitive]
    return without, composed, [primitive] * (len(without) // 9)


SPLITS: dict[str, Callable[[], Sides]] = {
    "simple": simple,
    "length": length,
    "jump": partial(added, ("jump",)),
    "turn-left": partial(added, ("turn", "left")),
}
