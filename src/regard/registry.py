"""Named members of one kind: tasks, cells, attentions, models, experiments, benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from regard.errors import RegardError, unknown

T = TypeVar("T")
M = TypeVar("M")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to members that answers a wrong name with the nearest right one.

    >>> cells = Registry[type]("cell")
    >>> @cells.register("lstm")
    ... class LSTM: ...
    >>> cells["lstm"] is LSTM
    True
    """

    def __init__(self, what: str):
        self.what = what
        self._members: dict[str, T] = {}

    def register(self, name: str) -> Callable[[M], M]:
        """A decorator that files its argument under `name`; a name is given once."""

        def add(member: M) -> M:
            if name in self._members:
                raise ValueError(f"{self.what} '{name}' is registered twice")
            self._members[name] = member  # type: ignore[assignment]  # M is a kind of T
            return member

        return add

    def __getitem__(self, name: str) -> T:
        try:
            return self._members[name]
        except KeyError:
            raise RegardError(unknown(self.what, name, self._members)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)
