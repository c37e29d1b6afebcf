"""The four classic splits of SCAN: which commands are trained on (Lake & Baroni 2018)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from regard.tasks.scan._grammar import Words, commands

LONGEST_TRAINED = 22  # actions, in the length split
TEST_OF_SIMPLE = 4182  # a fifth of all commands
SHUFFLE = 2018  # of the simple split

Sides = tuple[list[Words], list[Words], list[Words]]


def split_at_random() -> Sides:
    """80 % to train on and 20 % to test on, by our own fixed shuffle; nothing extra."""
    every = list(commands())
    order = np.random.default_rng(SHUFFLE).permutation(len(every))
    train, test = np.sort(order[TEST_OF_SIMPLE:]), np.sort(order[:TEST_OF_SIMPLE])
    return [every[i] for i in train], [every[i] for i in test], []


def split_by_length() -> Sides:
    """Up to 22 actions to train on, more (24 to 48) to test on; nothing extra."""
    short = [c for c, actions in commands().items() if len(actions) <= LONGEST_TRAINED]
    long = [c for c, actions in commands().items() if len(actions) > LONGEST_TRAINED]
    return short, long, []


def split_off_primitive(primitive: Words) -> Sides:
    """Commands without `primitive` to train on, those that compose it to test on.

    Extra rows for training are the primitive alone, so often that it is a tenth of all of them.
    """
    name = " ".join(primitive)
    using = {command: name in " ".join(command) for command in commands()}
    without = [command for command, used in using.items() if not used]
    composed = [command for command, used in using.items() if used and command != primitive]
    return without, composed, [primitive] * (len(without) // 9)


SPLITS: dict[str, Callable[[], Sides]] = {
    "simple": split_at_random,
    "length": split_by_length,
    "jump": partial(split_off_primitive, ("jump",)),
    "turn-left": partial(split_off_primitive, ("turn", "left")),
}
