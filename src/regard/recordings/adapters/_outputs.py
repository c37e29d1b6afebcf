"""What a submodule put out, as one tensor with the batch first and time where it belongs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from regard.errors import RegardError
from regard.tasks import Batch


def choose_output(output: Any, index: int, name: str) -> Tensor:
    """The output of that index, or the first tensor in it; on the CPU, safe from later changes."""
    packed = isinstance(output, PackedSequence)
    every = output if isinstance(output, (tuple, list)) and not packed else (output,)
    if index >= len(every):
        raise RegardError(
            f"The submodule for '{name}' puts out {len(every)} things, so [{index}] does not fit:"
            " they are counted from 0."
        )
    value = every[index]
    if isinstance(value, PackedSequence):
        value, _ = pad_packed_sequence(value, batch_first=True)
    elif isinstance(value, (tuple, list)) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        raise RegardError(
            f"The submodule for '{name}' puts out a {type(value).__name__}, not a tensor."
            " Name one inside of it."
        )
    return value.detach().cpu().clone()


def find_time_axes(name: str, value: Tensor) -> dict[int, str]:
    """Which axes of an array run over the source and which over the target."""
    part = name.removeprefix("attention.")
    last = value.ndim - 1
    if part in ("scores", "weights"):
        return {last - 1: "target", last: "source"}
    if part in ("queries", "keys"):
        return {last - 1: "target" if part == "queries" else "source"}
    return {1: "source" if name.startswith("encoder") else "target"}


def join_calls(
    name: str, outputs: list[Tensor], where: str, batch: Batch, time_first: bool
) -> Tensor:
    """What was put out in one call or in many, (batch, time, …), checked against the batch."""
    if not outputs:
        raise RegardError(
            f"The submodule '{where}' (for '{name}') was not called. Check `call`, or name another."
        )
    side = find_time_axes(name, outputs[0] if outputs[0].ndim > 2 else outputs[0][:, None])
    axis = min(side)
    widths = {"source": batch.source.shape[1], "target": batch.target.shape[1]}
    value = _put_batch_first(outputs, axis, widths[side[axis]], len(batch), time_first)
    wanted = {0: len(batch), **{axis: widths[which] for axis, which in side.items()}}
    if value.ndim < 3 or any(value.shape[axis] != size for axis, size in wanted.items()):
        sizes = ", ".join([f"batch {len(batch)}", *(f"{w} {widths[w]}" for w in side.values())])
        raise RegardError(
            f"The submodule '{where}' (for '{name}') puts out {tuple(value.shape)}, which does not"
            f" fit this batch ({sizes}, and features). Name another submodule or output, as in"
            f" '{where.partition('[')[0]}[1]', and let `call` feed `batch.inputs`."
        )
    return value


def _put_batch_first(
    outputs: list[Tensor], axis: int, width: int, rows: int, time_first: bool
) -> Tensor:
    """Steps put together, and the batch put first."""
    first = outputs[0]
    if first.ndim == 2 and (len(outputs) > 1 or width == 1):
        return torch.stack(outputs, dim=1)  # a cell: (batch, features) at every step
    if len(outputs) > 1 and first.ndim == 3 and first.shape[:2] == (1, rows) and rows > 1:
        return torch.cat(outputs).transpose(0, 1)  # a layer run step by step, time first
    whole = first if len(outputs) == 1 else torch.cat(outputs, dim=axis)
    if whole.ndim != 3 or whole.shape[:2] != (width, rows):
        return whole
    turned = width != rows or time_first
    return whole.transpose(0, 1) if turned else whole
