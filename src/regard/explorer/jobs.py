"""Work off the event loop: few at a time, a bounded queue, and nothing for who has gone on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


class Busy(Exception):
    """Too much is waiting."""


class Superseded(Exception):
    """A newer request of the same view came."""


class TooLong(Exception):
    """It took longer than allowed."""


class Jobs:
    """Threads that compute. A view is a place on somebody's page: its newest request counts."""

    def __init__(self, workers: int = 2, waiting: int = 64, seconds: float = 60.0):
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="regard")
        self.waiting, self.seconds = waiting, seconds
        self.open = 0
        self.newest: dict[str, int] = {}
        self.count = 0

    async def run(
        self, view: str, work: Callable[[Callable[[], None]], T], seconds: float | None = None
    ) -> T:
        """What `work` gives. It is handed a function that raises where nobody waits any more."""
        if self.open >= self.waiting:
            raise Busy
        self.count += 1
        mine, until = self.count, monotonic() + (seconds or self.seconds)
        if view:
            self.newest[view] = mine

        def alive() -> None:
            if view and self.newest.get(view) != mine:
                raise Superseded
            if monotonic() > until:
                raise TooLong

        def start() -> T:
            alive()
            return work(alive)

        self.open += 1
        future = asyncio.get_running_loop().run_in_executor(self.pool, start)
        future.add_done_callback(self._close)
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds or self.seconds)
        except TimeoutError:
            raise TooLong from None
        finally:
            if view and self.newest.get(view) == mine:
                del self.newest[view]

    def _close(self, future: asyncio.Future[T]) -> None:
        self.open -= 1
        if not future.cancelled():
            future.exception()  # an answer that came too late is nobody's

    def stop(self) -> None:
        """Let nothing new begin."""
        self.pool.shutdown(wait=False, cancel_futures=True)
