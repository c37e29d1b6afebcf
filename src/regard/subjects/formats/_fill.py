"""Named arrays of a file, put into a model; what is left over or missing is told."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError

Array = NDArray[Any]


def read_npz(path: Path) -> dict[str, Array]:
    """All arrays of an npz file. Nothing in it is ever run: pickled objects are refused."""
    if not path.is_file():
        raise RegardError(f"There is no {path}. The model's arrays go there.")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise RegardError(
            f"{path} is not a whole npz file of plain arrays ({error}). Fetch it again, or save the"
            " model's arrays by name with numpy.savez."
        ) from None


class Arrays:
    """Arrays by name; those that were taken are remembered, so that none is passed over."""

    def __init__(self, arrays: Mapping[str, Array], where: str):
        self.arrays, self.where, self.taken = dict(arrays), where, set[str]()

    @classmethod
    def of(cls, tensors: Mapping[str, Any], where: str) -> Arrays:
        """Those of a checkpoint, of whatever precision; what is no tensor is left out."""
        known = {n: x for n, x in tensors.items() if isinstance(x, Tensor)}
        return cls({n: x.detach().float().numpy() for n, x in known.items()}, where)

    @contextmanager
    def building(self) -> Iterator[None]:
        """While it lasts, whatever does not fit a model is an error that names the file."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
            raise RegardError(
                f"{self.where} does not fit together ({type(error).__name__}: {reason}). Its arrays"
                " have shapes, or its settings values, that no such model has."
            ) from error

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def take(self, name: str) -> Tensor:
        """One array as a tensor of single precision."""
        if name not in self.arrays:
            raise RegardError(f"{self.where} lacks '{name}', so it is not the model it looks like.")
        self.taken.add(name)
        if self.arrays[name].dtype.kind not in "fiu":
            raise RegardError(f"{self.where}: '{name}' does not hold real numbers.")
        return torch.from_numpy(np.array(self.arrays[name], dtype=np.float32))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array that must be there."""
        if name not in self.arrays:
            raise RegardError(f"{self.where} lacks '{name}', so it is not the model it looks like.")
        return self.arrays[name].shape

    def table(self, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix that must be there."""
        rows, columns = self.shape(name)
        return rows, columns

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
