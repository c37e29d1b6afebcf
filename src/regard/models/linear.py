"""Linear maps that are used at every step of a loop, and whose gradient is taken once.

Autograd multiplies a weight's gradient out at every step and adds the products up, which for a
batch of one is most of the work. Inside `gathered()` each use only notes its input and the
gradient of its output; when all uses are through, the weight's gradient is one product of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Uses = list[tuple[Tensor, Tensor]]  # input and gradient of the output, (rows, features) each


class Tap(torch.autograd.Function):
    """A weight and its bias as they are; on the way back, their gradients from all the uses."""

    @staticmethod
    def forward(ctx: Any, uses: Uses, weight: Tensor, bias: Tensor | None) -> tuple[Any, ...]:
        """Views, so that the uses depend on this node and it comes last on the way back."""
        ctx.uses, ctx.bias = uses, bias is not None
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), None if bias is None else bias.view_as(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: Any) -> tuple[Any, ...]:
        """Σ g xᵀ and Σ g over all uses."""
        if not ctx.uses:
            return None, None, None
        x = torch.cat([x for x, _ in ctx.uses])
        g = torch.cat([g for _, g in ctx.uses])
        ctx.uses.clear()
        return None, g.t() @ x, g.sum(dim=0) if ctx.bias else None


class Use(torch.autograd.Function):
    """x Wᵀ + b, whose way back leaves the weight's gradient to the tap."""

    @staticmethod
    def forward(ctx: Any, uses: Uses, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(…, inputs) -> (…, outputs)"""
        ctx.uses = uses
        ctx.save_for_backward(x, weight)
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        """The gradient of the input; what the weight needs is noted."""
        x, weight = ctx.saved_tensors
        ctx.uses.append((x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])))
        return None, g @ weight if ctx.needs_input_grad[1] else None, None, None


class Gathering:
    """The weights used inside one `gathered()`."""

    def __init__(self) -> None:
        self.taps: dict[tuple[int, int], tuple[Uses, Tensor, Tensor | None]] = {}
        self.alive: list[object] = []  # what the keys stand for, so that no other gets its number

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x Wᵀ + b, noted."""
        key = id(weight), id(bias)
        if key not in self.taps:
            uses: Uses = []
            tapped: Any = Tap.apply(uses, weight, bias)  # type: ignore[no-untyped-call]
            self.taps[key] = (uses, *tapped)
            self.alive += [weight, bias]
        uses, weight, bias = self.taps[key]
        mapped: Tensor = Use.apply(uses, x, weight, bias)  # type: ignore[no-untyped-call]
        return mapped


_gathering: list[Gathering] = []


@contextmanager
def gathered() -> Iterator[None]:
    """Inside, the gradient of every weight that `linear` uses is taken once for all uses."""
    _gathering.append(Gathering())
    try:
        yield
    finally:
        _gathering.pop()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b. (…, inputs) -> (…, outputs)"""
    if _gathering and torch.is_grad_enabled() and weight.requires_grad:
        return _gathering[-1].linear(x, weight, bias)
    return nn.functional.linear(x, weight, bias)


class Linear(nn.Linear):
    """`nn.Linear` that can be gathered."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) -> (…, outputs)"""
        return linear(x, self.weight, self.bias)
