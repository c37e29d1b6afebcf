"""What is kept between requests: the newest of a kind, up to a number and a size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Kept(Generic[V]):
    """The last values made, by key, at most `count` and `size` bytes of them.

    A value is made once, also when several ask for it at the same time: the others wait.
    """

    def __init__(self, count: int, size: int = 1 << 62, measure: Callable[[V], int] = lambda _: 0):
        self.count, self.size, self.measure = count, size, measure
        self.values: OrderedDict[Hashable, V] = OrderedDict()
        self.making: dict[Hashable, Lock] = {}
        self.lock = Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made if it is not there."""
        with self.lock:
            if key in self.values:
                self.values.move_to_end(key)
                return self.values[key]
            making = self.making.setdefault(key, Lock())
        with making:
            with self.lock:
                if key in self.values:
                    return self.values[key]
            try:
                made = make()
            finally:
                with self.lock:
                    self.making.pop(key, None)
            with self.lock:
                self.values[key] = made
                self._forget()
        return made

    def _forget(self) -> None:
        total = sum(map(self.measure, self.values.values()))
        while len(self.values) > 1 and (len(self.values) > self.count or total > self.size):
            _, old = self.values.popitem(last=False)
            total -= self.measure(old)
