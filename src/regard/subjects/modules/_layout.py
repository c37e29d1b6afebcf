"""How what a submodule put out becomes (batch, time, …): decided once, for all batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from regard.errors import RegardError
from regard.subjects.modules.at import Place
from regard.tasks.batch import Batch


@dataclass(frozen=True)
class Sizes:
    """What tells the axes of a batch apart."""

    rows: int
    source: int
    target: int

    @classmethod
    def of(cls, batch: Batch) -> Sizes:
        """Those of a batch."""
        return cls(len(batch), batch.source.shape[1], batch.inputs.shape[1])

    def __str__(self) -> str:
        return f"batch {self.rows}, source {self.source}, target {self.target}"


def make_probe(batch: Batch) -> Batch:
    """A batch with as many rows as neither side has words, and sides of two widths, of which the
    target's is one that can still be cut."""
    source, fed, target = batch.source, batch.inputs, batch.target
    lengths = batch.source_lengths
    if source.shape[1] < 2:
        source, lengths = source.repeat(1, 2, *[1] * (source.ndim - 2)), 2 * lengths
    if fed.shape[1] == source.shape[1] > 3:
        fed, target = fed[:, :-1], target[:, :-1]
    while fed.shape[1] < 3 or fed.shape[1] == source.shape[1]:
        fed, target = (torch.cat([x, x[:, -1:]], dim=1) for x in (fed, target))
    rows = torch.arange(max(source.shape[1], fed.shape[1]) + 1, device=source.device) % len(batch)
    steps = torch.full_like(lengths, fed.shape[1])
    return Batch(source[rows], lengths[rows], target[rows], steps[rows], None, fed[rows])


def cut_target(batch: Batch) -> Batch:
    """The batch with a target that is shorter by a word."""
    return Batch(
        batch.source, batch.source_lengths, batch.target[:, :-1], batch.target_lengths - 1, None,
        batch.inputs[:, :-1],
    )  # fmt: skip


def choose_tensor(value: Any, place: Place, name: str) -> Tensor:
    """The tensor that a place means in what a submodule was given or put out."""
    key = place.output or place.input
    packed = isinstance(value, PackedSequence)
    if isinstance(value, dict) or hasattr(value, "keys"):
        if key is None or (not key.isdecimal() and key not in value):
            raise RegardError(
                f"The submodule for '{name}' puts out {', '.join(map(str, value))}. Name one:"
                f" '{place.name}[{next(iter(value), 'name')}]'."
            )
        value = list(value.values())[int(key)] if key.isdecimal() else value[key]
    elif key is not None and not key.isdecimal():
        if not hasattr(value, key):
            raise RegardError(
                f"What the submodule for '{name}' puts out has no field '{key}'. Write"
                f" '{place.name}' or '{place.name}[1]'."
            )
        value = getattr(value, key)
    elif isinstance(value, (tuple, list)) and not packed:
        index = int(key or 0)
        if index >= len(value):
            raise RegardError(
                f"The submodule for '{name}' puts out {len(value)} things, so [{index}] does not"
                " fit: they are counted from 0."
            )
        value = value[index]
    elif key not in (None, "0"):
        raise RegardError(f"The submodule for '{name}' puts out 1 things, so [{key}] does not fit.")
    if isinstance(value, PackedSequence):
        value, _ = pad_packed_sequence(value, batch_first=True)
    elif isinstance(value, (tuple, list)) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        raise RegardError(
            f"The submodule for '{name}' puts out a {type(value).__name__}, not a tensor."
            " Name one inside of it."
        )
    return value.clone()


def find_layout(calls: list[Tensor], sizes: Sizes, width: int, keys: bool, place: str, name: str,
                heads: int = 1) -> str:  # fmt: skip
    """How one array's calls lie: `whole`, `turned`, `cell`, `step`, `turned step`, or, of keys that
    are made anew at every step, `again`; known by the sizes of a probe."""
    if not calls:
        raise RegardError(
            f"The submodule '{place}' (for '{name}') was not called. Check `call`, or name another."
        )
    rows, last = sizes.rows, calls[-1]
    by_heads = [c for c in calls if c.ndim == 4 and (c.shape[0], c.shape[2]) == (rows, width)]
    if by_heads and (by_heads[0].shape[1] == heads or name.endswith((".weights", ".scores"))):
        return "heads"  # also where there are as many heads as steps
    for layout, shape in (("whole", (rows, width)), ("turned", (width, rows))):
        fits = [c for c in calls if c.ndim >= 3 and tuple(c.shape[:2]) == shape]
        same = all(torch.equal(fits[0], other) for other in fits[1:])
        if fits and (len(fits) == 1 or (not keys and same)):
            return layout
        if fits and not keys:
            raise RegardError(
                f"The submodule '{place}' (for '{name}') is called {len(fits)} times in a pass, so"
                " that its calls cannot be told apart. Name another, or use one for each role."
            )
        if len(fits) > 1:
            return f"{layout} again"
    if by_heads:
        return "heads"
    if calls[0].ndim == 3 and calls[0].shape[0] == rows * heads and calls[0].shape[1] == width:
        return "folded"
    steps = [c for c in calls if c.shape[0] == rows and (c.ndim == 2 or c.shape[1] == 1)]
    if len(steps) == width:
        return "cell" if steps[0].ndim == 2 else "step"
    turned = [c for c in calls if c.ndim == 3 and tuple(c.shape[:2]) == (1, rows)]
    if len(turned) == width:
        return "turned step"
    raise RegardError(
        f"The submodule '{place}' (for '{name}') puts out {tuple(last.shape)}, which does not fit"
        f" this batch ({sizes}, and features). Name another submodule or output, as in"
        f" '{place.partition('[')[0]}[1]', and let `call` feed `batch.inputs`."
    )


def arrange(calls: list[Tensor], layout: str, rows: int, width: int, heads: int) -> Tensor:
    """One array of one batch. -> (batch, time, …), or with heads (batch, head, time, …)"""
    if layout.endswith("again"):
        first = _fitting(calls, layout.removesuffix(" again"), rows, width)
        if any(not torch.allclose(first[0], c, atol=1e-6) for c in first[1:]):
            raise RegardError(
                "Keys differ from step to step, so that they are no property of the source. Such an"
                " attention cannot be recorded as one site."
            )
        calls, layout = first[:1], layout.removesuffix(" again")
    if layout in ("whole", "turned"):
        value = _fitting(calls, layout, rows, width)[0]
        return value.transpose(0, 1) if layout == "turned" else value
    if layout == "heads":
        return next(c for c in calls if c.ndim == 4 and (c.shape[0], c.shape[2]) == (rows, width))
    if layout == "folded":
        return calls[0].view(rows, heads, width, -1)
    if layout == "cell":
        return torch.stack([c for c in calls if c.ndim == 2 and len(c) == rows], dim=1)
    if layout == "step":
        return torch.cat([c for c in calls if c.ndim >= 3 and len(c) == rows], dim=1)
    return torch.cat([c for c in calls if c.ndim == 3 and c.shape[1] == rows]).transpose(0, 1)


def arrange_bias(calls: list[Tensor], rows: int, heads: int, name: str) -> Tensor:
    """A position bias, of all rows or of each, of all heads or of each. -> (batch, head, t, s)"""
    if not calls:
        raise RegardError(f"The submodule for '{name}' was not called. Check `call`.")
    bias = calls[0]
    if bias.ndim == 3:
        bias = bias[:, None] if len(bias) == rows and rows != heads else bias[None]
        bias = bias.view(rows, heads, *bias.shape[2:]) if bias.shape[1] == rows * heads else bias
    if bias.ndim == 2:
        bias = bias[None, None]
    if bias.ndim != 4 or bias.shape[0] not in (1, rows) or bias.shape[1] not in (1, heads):
        raise RegardError(
            f"'{name}' has the shape {tuple(calls[0].shape)}: a bias is (batch, head, target,"
            " source), where batch and head may be 1 or left out."
        )
    return bias.expand(rows, heads, -1, -1)


def _fitting(calls: list[Tensor], layout: str, rows: int, width: int) -> list[Tensor]:
    shape = (rows, width) if layout == "whole" else (width, rows)
    found = [c for c in calls if c.ndim >= 3 and tuple(c.shape[:2]) == shape]
    if not found:
        raise RegardError(
            f"What was (batch, time) is {tuple(calls[0].shape[:2])} in a later batch of {rows} rows"
            f" and {width} steps. Let `call` treat all batches alike."
        )
    return found
