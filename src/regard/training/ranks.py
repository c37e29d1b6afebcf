"""The processes that train one model together, as one of them sees it.

Each has the whole model and a part of every batch. Gradients are added in the order of ranks, as
one row of numbers, so that the same number of processes always gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as processes
from torch import Tensor
from torch.nn.functional import pad

from regard.errors import RegardError

LOST = (
    "Another process of this run has ended, so this one stopped, too."
    " Ask again and the run goes on from its last checkpoint."
)


class LostProcess(RegardError):
    """Another process of the same run is gone."""


@dataclass(frozen=True)
class Ranks:
    """This process is number `rank` of `size`; numbers are told to the others on `device`."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    def add_gradients(self, parameters: Sequence[Tensor], number: float) -> float:
        """Every parameter gets the sum of all processes' gradients; the sum of a number, too.

        A parameter that has a gradient nowhere gets none.
        """
        if self.size == 1:
            return number
        learned = torch.tensor([p.grad is not None for p in parameters], device=self.device)
        zeros = (torch.zeros_like(p) if p.grad is None else p.grad for p in parameters)
        last = torch.tensor([number], device=self.device)
        total = self.add([*(gradient.flatten() for gradient in zeros), learned.float(), last])
        sizes = [*(p.numel() for p in parameters), len(parameters), 1]
        *sums, known, last = torch.split(total, sizes)
        for parameter, gradient, has in zip(parameters, sums, known.tolist(), strict=True):
            parameter.grad = gradient.view_as(parameter) if has else None
        return float(last)

    def add_number(self, number: float) -> float:
        """The sum of all processes' numbers."""
        if self.size == 1:
            return number
        return float(self.add([torch.tensor([number], dtype=torch.float64, device=self.device)]))

    def add(self, rows: Sequence[Tensor]) -> Tensor:
        """The sum of all processes' numbers, in the order of ranks, the same bits for all.

        Every process adds up its own part of the row, and tells it to the others.
        rows: (numbers,) each -> (numbers of all rows,)
        """
        row = torch.cat(list(rows))
        width = -(-len(row) // self.size)
        padded = pad(row, (0, width * self.size - len(row)))
        heard = torch.empty_like(padded)
        with _hearing():
            processes.all_to_all_single(heard, padded)
            first, *others = torch.split(heard, width)
            for other in others:
                first += other
            processes.all_gather(list(torch.split(padded, width)), first)
        return padded[: len(row)]

    def tell(self, number: float) -> float:
        """The number that the first process has."""
        if self.size == 1:
            return number
        told = torch.tensor([number], dtype=torch.float64, device=self.device)
        with _hearing():
            processes.broadcast(told, 0)
        return float(told)

    def tell_bytes(self, content: bytes) -> bytes:
        """The content that the first process has."""
        if self.size == 1:
            return content
        told = torch.zeros(int(self.tell(len(content))), dtype=torch.uint8, device=self.device)
        if self.rank == 0 and content:
            told.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        if len(told):
            with _hearing():
                processes.broadcast(told, 0)
        return told.cpu().numpy().tobytes()


ALONE = Ranks()


@contextmanager
def _hearing() -> Iterator[None]:
    """What goes wrong between processes, as a sentence: the other one is gone."""
    try:
        yield
    except RuntimeError:  # torch's own errors of this kind are of it
        raise LostProcess(LOST) from None
