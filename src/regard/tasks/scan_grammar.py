"""The grammar of SCAN: every command, and the actions that it means (Lake & Baroni 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

Words = tuple[str, ...]

VERBS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES = {"twice": 2, "thrice": 3}

COMMAND_WORDS = (*VERBS, "turn", *TURNS, "opposite", "around", *TIMES, "and", "after")
ACTION_WORDS = (*VERBS.values(), *TURNS.values())


@cache
def commands() -> dict[Words, Words]:
    """All 20,910 commands and their actions, always in the same order."""
    parts = dict(_parts())
    pairs = dict(parts)
    for first, does_first in parts.items():
        for second, does_second in parts.items():
            pairs[(*first, "and", *second)] = does_first + does_second
            pairs[(*first, "after", *second)] = does_second + does_first
    return pairs


def _parts() -> Iterator[tuple[Words, Words]]:
    """What `and` and `after` join: a phrase, alone or repeated (102)."""
    for phrase, actions in _phrases():
        yield phrase, actions
        for word, times in TIMES.items():
            yield (*phrase, word), actions * times


def _phrases() -> Iterator[tuple[Words, Words]]:
    """A verb alone, or a verb with a direction; `turn` is a verb that does nothing more (34)."""
    for verb, action in VERBS.items():
        yield (verb,), (action,)
    doing = {verb: (action,) for verb, action in VERBS.items()} | {"turn": ()}
    for verb, done in doing.items():
        for side, turn in TURNS.items():
            yield (verb, side), (turn, *done)
            yield (verb, "opposite", side), (turn, turn, *done)
            yield (verb, "around", side), (turn, *done) * 4
