"""Two processes that add up, as two threads that a made network joins."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread, local
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.training import ranks
from regard.training.ranks import LostProcess, Ranks


class Network:
    """What `torch.distributed` does between two, through memory."""

    def __init__(self) -> None:
        self.barrier, self.me = Barrier(2, timeout=20), local()
        self.sent: dict[int, Tensor] = {}

    def exchange(self, row: Tensor) -> list[Tensor]:
        """The rows of both, in the order of ranks."""
        self.sent[self.me.rank] = row.clone()
        self.barrier.wait()
        found = [self.sent[0], self.sent[1]]
        self.barrier.wait()
        return found

    def all_to_all_single(self, heard: Tensor, row: Tensor) -> None:
        """Each hears its own part of every row."""
        half = len(row) // 2
        assert len(row) == 2 * half
        parts = [other.split(half)[self.me.rank] for other in self.exchange(row)]
        heard.copy_(torch.cat(parts))

    def all_gather(self, places: list[Tensor], row: Tensor) -> None:
        """Everybody hears everything."""
        for place, other in zip(places, self.exchange(row), strict=True):
            place.copy_(other)

    def broadcast(self, row: Tensor, source: int) -> None:
        """All hear one of them."""
        row.copy_(self.exchange(row)[source])


def run_two(work: Callable[[Ranks], Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What both processes get."""
    network, found = Network(), [None, None]
    monkeypatch.setattr(ranks, "processes", network)

    def run(rank: int) -> None:
        network.me.rank = rank
        found[rank] = work(Ranks(rank, 2))

    threads = [Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_gradients_are_added_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first parameter has a gradient in both, the second in one, the third in none."""

    def work(own: Ranks) -> Any:
        parameters = [torch.zeros(2, 2), torch.zeros(3), torch.zeros(1)]
        parameters[0].grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (1 + 9 * own.rank)
        if own.rank:
            parameters[1].grad = torch.tensor([5.0, 6.0, 7.0])
        total = own.add_gradients(parameters, 1.5 + own.rank)
        return total, [None if p.grad is None else p.grad.tolist() for p in parameters]

    wanted = (4.0, [[[11.0, 22.0], [33.0, 44.0]], [5.0, 6.0, 7.0], None])
    assert run_two(work, monkeypatch) == [wanted, wanted]


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_rows_of_any_length_add_up(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(own: Ranks) -> Any:
        return own.add([torch.arange(length - 1.0) + 10 * own.rank, torch.ones(1)]).tolist()

    row = [10.0 + 2 * n for n in range(length - 1)] + [2.0]
    assert run_two(work, monkeypatch) == [row, row]


def test_what_the_first_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(own: Ranks) -> Any:
        number, total = own.tell(3.25 + own.rank), own.add_number(0.1 + own.rank)
        return number, total, own.tell_bytes(b"weights" if own.rank == 0 else b"")

    wanted = (3.25, pytest.approx(1.2), b"weights")
    assert run_two(work, monkeypatch) == [wanted, wanted]
    assert run_two(lambda own: own.tell_bytes(b""), monkeypatch) == [b"", b""]


def test_one_alone_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "processes", None)
    alone, parameter = Ranks(), torch.zeros(2)
    assert alone.add_gradients([parameter], 2.5) == 2.5 and parameter.grad is None
    assert alone.add_number(7.0) == alone.tell(7.0) == 7.0
    assert alone.tell_bytes(b"x") == b"x"


def test_another_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def broadcast(self, *rest: object) -> None:
            raise RuntimeError("connection reset")

    monkeypatch.setattr(ranks, "processes", Broken())
    with pytest.raises(LostProcess, match="Another process of this run has ended"):
        Ranks(1, 2).tell(1.0)
