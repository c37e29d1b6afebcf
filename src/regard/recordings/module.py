"""The adapter for any PyTorch module: name where its states, queries and keys are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.recordings.arrays import record_arrays
from regard.recordings.recording import Recording, numbers
from regard.tasks import Batch

Call = Callable[[nn.Module, Batch], Any]


def record_module(
    module: nn.Module,
    at: Mapping[str, str],
    batches: Iterable[Batch],
    call: Call,
    source_words: Sequence[str] | None = None,
    target_words: Sequence[str] | None = None,
    readout: nn.Linear | Tensor | None = None,
    readout_parts: Mapping[str, tuple[int, int]] | None = None,
    out: Path | None = None,
) -> Recording:
    """Run a module on batches and keep what passes through some of its submodules.

    `at` says where: `{"encoder.states": "encoder", "decoder.states": "decoder.rnn",
    "queries": "attention.q", "keys": "attention.k", "logits": "head"}`, by the names of
    `module.named_modules()`. The output of a submodule is taken, its first tensor where it is a
    tuple (`"encoder[1]"` takes the second). One that is called step by step, with (batch, features)
    each time, is put together to (batch, steps, features). `call(module, batch)` runs the module;
    the words fed to the decoder are `batch.inputs`. Time first is told from batch first by the
    lengths, where they differ; give batch-first modules where they might not.
    """
    wanted = {name: _place(module, where) for name, where in at.items()}
    rows: list[dict[str, Tensor]] = []
    widths: list[Batch] = []
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                with _listening(wanted) as heard:
                    call(module, batch)
                rows.append({name: _joined(name, heard[name], at[name], batch) for name in wanted})
                widths.append(batch)
    finally:
        module.train(was_training)
    if not rows:
        raise RegardError("There is nothing to record: no batches were given.")
    arrays = _arrays(rows, widths)
    if readout is not None:
        weight = readout.weight if isinstance(readout, nn.Linear) else readout
        arrays["readout"] = numbers(weight)
    origin = {"adapter": "module", "module": type(module).__name__, "at": dict(at)}
    return record_arrays(arrays, source_words, target_words, readout_parts, out=out, origin=origin)


def _place(module: nn.Module, where: str) -> tuple[nn.Module, int]:
    name, _, index = where.partition("[")
    known = dict(module.named_modules())
    if name not in known:
        raise RegardError(unknown("submodule", name, [n for n in known if n]))
    return known[name], int(index.rstrip("]") or 0)


@contextmanager
def _listening(wanted: Mapping[str, tuple[nn.Module, int]]) -> Iterator[dict[str, list[Tensor]]]:
    """What every named submodule puts out while the context lasts."""
    heard: dict[str, list[Tensor]] = {name: [] for name in wanted}

    def listener(name: str, index: int) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            flat = output if isinstance(output, (tuple, list)) else (output,)
            value = flat[index]
            heard[name].append(value[0] if isinstance(value, (tuple, list)) else value)

        return hook

    handles = [m.register_forward_hook(listener(n, i)) for n, (m, i) in wanted.items()]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def _joined(name: str, heard: list[Tensor], where: str, batch: Batch) -> Tensor:
    """One tensor with the batch first and time second."""
    if not heard:
        raise RegardError(
            f"The submodule '{where}' (for '{name}') was not called. Check `call`, or name another."
        )
    if len(heard) > 1 and heard[0].ndim == 3 and heard[0].shape[1] == 1:
        heard = [step[:, 0] for step in heard]
    value = heard[0] if len(heard) == 1 else torch.stack(heard, dim=1)
    if value.ndim == 3 and value.shape[0] != len(batch) and value.shape[1] == len(batch):
        value = value.transpose(0, 1)
    if value.shape[0] != len(batch):
        raise RegardError(
            f"The submodule '{where}' (for '{name}') puts out {tuple(value.shape)},"
            f" which is not a batch of {len(batch)}. Name another submodule or index, as in"
            f" '{where}[1]'."
        )
    return value


def _arrays(rows: list[dict[str, Tensor]], batches: list[Batch]) -> dict[str, Any]:
    source = max(batch.source.shape[1] for batch in batches)
    target = max(batch.target.shape[1] for batch in batches)
    arrays: dict[str, Any] = {}
    for name in rows[0]:
        width = source if name.startswith("encoder") or name == "keys" else target
        stacked = torch.cat([_wide(row[name], width) for row in rows])
        side = "source_mask" if width == source and name != "queries" else "target_mask"
        if name.startswith("decoder") or name in ("queries", "logits"):
            side = "target_mask"
        there = torch.cat([_wide(getattr(batch, side), width) for batch in batches])
        if name == "logits":
            arrays["predictions"] = stacked.argmax(dim=-1) * there
        else:
            arrays[name] = stacked * there.view(*there.shape, *[1] * (stacked.ndim - 2))
    for name, width, values in (
        ("encoder.words", source, [batch.source * batch.source_mask for batch in batches]),
        ("encoder.mask", source, [batch.source_mask for batch in batches]),
        ("decoder.words", target, [batch.inputs * batch.target_mask for batch in batches]),
        ("decoder.mask", target, [batch.target_mask for batch in batches]),
        ("targets", target, [batch.target for batch in batches]),
    ):
        arrays[name] = torch.cat([_wide(value, width) for value in values])
    return arrays


def _wide(values: Tensor, width: int) -> Tensor:
    """Zeros after the second axis up to a width; what lies past it is cut."""
    values = values[:, :width]
    missing = width - values.shape[1]
    if not missing:
        return values
    return torch.cat([values, values.new_zeros(values.shape[0], missing, *values.shape[2:])], dim=1)
