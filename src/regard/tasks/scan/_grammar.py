"""The grammar of SCAN: every command, the actions that it means, and the words that say so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

Words = tuple[str, ...]
Places = tuple[int, ...]
Meaning = tuple[tuple[str, int], ...]  # actions, and the position of the word that makes each

VERBS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES = {"twice": 2, "thrice": 3}

COMMAND_WORDS = (*VERBS, "turn", *TURNS, "opposite", "around", *TIMES, "and", "after")
ACTION_WORDS = (*VERBS.values(), *TURNS.values())


@cache
def commands() -> dict[Words, Words]:
    """All 20,910 commands and their actions, always in the same order (Lake & Baroni 2018)."""
    return {command: tuple(act for act, _ in does) for command, does in _meanings()}


@cache
def origins() -> dict[Words, Places]:
    """For every command, the position of the word that makes each of its actions.

    A verb makes what it does, a side makes the turns; other words only repeat or order these.
    """
    return {command: tuple(place for _, place in does) for command, does in _meanings()}


def _meanings() -> Iterator[tuple[Words, Meaning]]:
    parts = list(_parts())
    yield from parts
    for first, does_first in parts:
        for second, does_second in parts:
            later = tuple((act, place + len(first) + 1) for act, place in does_second)
            yield (*first, "and", *second), does_first + later
            yield (*first, "after", *second), later + does_first


def _parts() -> Iterator[tuple[Words, Meaning]]:
    """What `and` and `after` join: a phrase, alone or repeated (102)."""
    for phrase, does in _phrases():
        yield phrase, does
        for word, times in TIMES.items():
            yield (*phrase, word), does * times


def _phrases() -> Iterator[tuple[Words, Meaning]]:
    """A verb alone, or a verb with a direction; `turn` is a verb that does nothing more (34)."""
    doing: dict[str, Meaning] = {verb: ((action, 0),) for verb, action in VERBS.items()}
    for verb, does in doing.items():
        yield (verb,), does
    for verb, does in (doing | {"turn": ()}).items():
        for side, turn in TURNS.items():
            yield (verb, side), ((turn, 1), *does)
            yield (verb, "opposite", side), ((turn, 2), (turn, 2), *does)
            yield (verb, "around", side), ((turn, 2), *does) * 4
