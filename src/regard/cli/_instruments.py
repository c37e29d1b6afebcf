"""What the commands that look inside share: runs to look at, and settings of instruments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from regard.cli._console import say
from regard.errors import RegardError, together, unknown
from regard.instruments import INSTRUMENTS
from regard.runs.run import Run


def remark_unfinished(run: Run) -> None:
    """A remark where a run goes on: what is seen of it now is not its end."""
    if not run.done:
        say(f"{run.folder} is not finished: this is how far it has come.")


def remark_places(places: Sequence[Path]) -> None:
    """The same of all runs among some places."""
    for place in places:
        if (place / "config.json").is_file():
            remark_unfinished(Run.open(place))


def share_settings(
    names: Sequence[str], values: dict[str, str], faults: Sequence[str]
) -> dict[str, dict[str, str]]:
    """The settings of each instrument among those given.

    What is wrong with them is said at once, after the `faults` that are known already.
    """
    faults = list(faults)
    if "n" in values:
        faults.append("How many samples is an option: write -n instead of n=.")
        values = {key: value for key, value in values.items() if key != "n"}
    accepted = {name: INSTRUMENTS[name].accepted - {"n", "watch", "train"} for name in names}
    every = sorted(set().union(*accepted.values()))
    shared = {
        name: {key: value for key, value in values.items() if key in known}
        for name, known in accepted.items()
    }
    faults += [unknown("setting", key, every) for key in values if names and key not in every]
    try:
        together(partial(INSTRUMENTS[name].read_settings, given) for name, given in shared.items())
    except RegardError as error:
        faults += error.faults
    if faults:
        raise RegardError(*faults)
    return shared
