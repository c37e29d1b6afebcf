"""Where work is done: on this machine, or on a cluster."""

from __future__ import annotations

import os

from regard.errors import RegardError, unknown

VARIABLE = "REGARD_ON"
LOCAL = "local"


def choose_place(on: str | None = None) -> str:
    """`local`, `ray` or `ray://HOST:PORT`: as it is named, else by $REGARD_ON, else local."""
    wanted = on or os.environ.get(VARIABLE) or LOCAL
    if wanted in (LOCAL, "ray") or wanted.startswith("ray://"):
        return wanted
    raise RegardError(unknown("place to work", wanted, (LOCAL, "ray", "ray://HOST:PORT")))


def find_address(place: str) -> str | None:
    """The address of a cluster; None for the one that Ray finds or starts."""
    return None if place == "ray" else place
