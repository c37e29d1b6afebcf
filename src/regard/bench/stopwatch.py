"""What parts of a program take, without a word about it in the program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

Function = Callable[..., Any]


class Stopwatch:
    """Counts the processor seconds of named functions, while it is open.

    A part is one function or more, each given by its owner (a module or a class) and its name.
    Of parts that call each other, both would count the time.
    """

    def __init__(self, parts: Mapping[str, tuple[tuple[object, str], ...]]):
        self.parts = parts
        self.seconds = dict.fromkeys(parts, 0.0)
        self._before: list[tuple[object, str, Function]] = []

    def __enter__(self) -> Stopwatch:
        for part, functions in self.parts.items():
            for owner, name in functions:
                function = getattr(owner, name)
                self._before.append((owner, name, function))
                setattr(owner, name, self._timed(part, function))
        return self

    def __exit__(self, *_: object) -> None:
        while self._before:
            setattr(*self._before.pop())

    def _timed(self, part: str, function: Function) -> Function:
        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[part] += time.process_time() - began

        return timed
