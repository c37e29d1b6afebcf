"""Named arrays of a file, put into a model; what is left over or missing is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError

Array = NDArray[Any]


class Arrays:
    """Arrays by name; those that were taken are remembered, so that none is passed over."""

    def __init__(self, arrays: Mapping[str, Array], where: str):
        self.arrays, self.where, self.taken = dict(arrays), where, set[str]()

    @classmethod
    def of(cls, tensors: Mapping[str, Any], where: str) -> Arrays:
        """Those of a checkpoint, of whatever precision; what is no tensor is left out."""
        known = {n: x for n, x in tensors.items() if isinstance(x, Tensor)}
        return cls({n: x.detach().float().numpy() for n, x in known.items()}, where)

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def take(self, name: str) -> Tensor:
        """One array as a tensor of single precision."""
        if name not in self.arrays:
            raise RegardError(f"{self.where} lacks '{name}', so it is not the model it looks like.")
        self.taken.add(name)
        return torch.from_numpy(np.array(self.arrays[name], dtype=np.float32))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array that must be there."""
        if name not in self.arrays:
            raise RegardError(f"{self.where} lacks '{name}', so it is not the model it looks like.")
        return self.arrays[name].shape

    def number(self, name: str, otherwise: float) -> float:
        """A single number, such as a setting."""
        if name not in self.arrays:
            return otherwise
        self.taken.add(name)
        return float(np.asarray(self.arrays[name]).reshape(-1)[0])

    def fill(self, parameter: Tensor, name: str, turn: bool = False) -> None:
        """Put an array into a parameter of its shape, transposed where it is kept so."""
        values = self.take(name)
        values = values.T if turn else values
        if values.ndim == 2 and 1 in values.shape and parameter.ndim == 1:
            values = values.flatten()
        if values.shape != parameter.shape:
            raise RegardError(
                f"{self.where}: '{name}' has the shape {tuple(values.shape)}, where"
                f" {tuple(parameter.shape)} is wanted."
            )
        with torch.no_grad():
            parameter.copy_(values)

    def finish(self, ignored: tuple[str, ...] = ()) -> dict[str, Any]:
        """Refuse arrays that nothing was made of: the model would do something else with them."""
        left = [
            n for n in self.arrays if n not in self.taken and not n.endswith(ignored or ("\0",))
        ]
        if left:
            names = ", ".join(f"'{name}'" for name in sorted(left)[:6])
            raise RegardError(
                f"{self.where} holds {names}, which this reader does not know. It would not be the"
                " same model without them."
            )
        return {"arrays used": len(self.taken)}
