"""What a command leaves, for tests that run it in their own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]
