"""What a person sees when something is wrong: what, where, why, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")
MANY = 25  # names that are not listed beside one that is close


class RegardError(Exception):
    """One or more faults in what Regard was asked to do, each a full sentence for a person.

    The command line prints the faults and exits with code 2; nobody sees a traceback for them.
    """

    def __init__(self, *faults: str):
        self.faults = faults
        super().__init__("\n".join(faults))


def in_words(error: OSError) -> str:
    """What the operating system refused, as a sentence."""
    place = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{place}."


def out_of_memory(error: BaseException) -> str | None:
    """The fault of wanting more memory than there is, or None where the error is another."""
    text = str(error)
    refused = "memory" in text and "alloc" in text.lower()  # as torch has it
    if not isinstance(error, MemoryError) and not refused:
        return None
    about = f" ({text.splitlines()[0][:200]})" if text else ""
    return f"There is not enough memory{about}. Take smaller sizes, a smaller batch or less data."


def with_article(noun: str) -> str:
    """`a recording`, `an array`."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def first_line(error: Exception) -> str:
    """What an error of another package says, in short."""
    said = str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__


def kind_of(thing: object) -> str:
    """What a thing is, with its article, to begin a sentence: `An int`, `None`."""
    if thing is None:
        return "None"
    phrase = with_article(type(thing).__name__)
    return phrase[0].upper() + phrase[1:]


def together(calls: Iterable[Callable[[], T]]) -> list[T]:
    """What every call gives; where some fail, the faults of all of them at once."""
    given: list[T] = []
    faults: list[str] = []
    for call in calls:
        try:
            given.append(call())
        except RegardError as error:
            faults += error.faults
    if faults:
        raise RegardError(*dict.fromkeys(faults))
    return given


def nearest(name: str, options: Iterable[str]) -> str | None:
    """The option that `name` was most likely meant to be, or None when nothing is close."""
    matches = get_close_matches(name, list(options), n=1, cutoff=0.5)
    return matches[0] if matches else None


def unknown_key(key: str, options: Iterable[str], listing: str) -> str:
    """A fault for a key that does not exist: the nearest, and where all are listed."""
    close = get_close_matches(key, sorted(options), n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"There is no key '{key}'.{hint} `{listing}` lists them all."


def unknown(what: str, name: str, options: Iterable[str], older: Iterable[str] = ()) -> str:
    """A fault for a name that does not exist: the nearest match, then everything there is.

    A long list is left out where it would bury the match. `older` names are still understood, so
    they are matched, but not listed.
    """
    choices = sorted(options)
    guess = nearest(str(name), [*choices, *older])
    hint = f" Did you mean '{guess}'?" if guess else ""
    if guess and len(choices) > MANY:
        return f"There is no {what} '{name}'.{hint} There are {len(choices)} others."
    return f"There is no {what} '{name}'.{hint} Known: {', '.join(choices) or 'none'}."
