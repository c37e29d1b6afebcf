"""Adapters of a user's own: how something that Regard does not know becomes a recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from regard.recordings.recording import Recording
from regard.registry import Registry


class Adapter(ABC):
    """One kind of thing that can be recorded, beside those that `regard.record` knows itself."""

    @abstractmethod
    def accepts(self, what: Any) -> bool:
        """Whether this is a thing of the kind."""

    @abstractmethod
    def record(self, what: Any, **options: Any) -> Recording:
        """What it did; the options are those that the user gave to `regard.record`."""


ADAPTERS: Registry[type[Adapter]] = Registry("adapter")


def find_adapter(what: Any) -> Adapter | None:
    """The first adapter that accepts a thing."""
    made = (ADAPTERS[name]() for name in ADAPTERS)
    return next((adapter for adapter in made if adapter.accepts(what)), None)
