"""The adapter for any PyTorch module: name where its states, queries and keys are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.recordings.adapters._outputs import choose_output, find_time_axes, join_calls
from regard.recordings.adapters.arrays import record_arrays
from regard.recordings.recording import Recording, as_array
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
    scorer: str = "dot",
    time_first: Collection[str] = (),
    out: Path | None = None,
) -> Recording:
    """Run a module on batches and keep what passes through some of its submodules.

    `at` says where: `{"encoder.states": "encoder", "decoder.states": "decoder.rnn",
    "queries": "attention.q", "keys": "attention.k", "logits": "head"}`, by the names of
    `module.named_modules()`. The output of a submodule is taken, its first tensor where it is a
    tuple (`"encoder[1]"` takes the second). One that is called step by step, with (batch, features)
    each time, is put together to (batch, steps, features). `call(module, batch)` runs the module;
    the words fed to the decoder are `batch.inputs`, so feed them. Outputs that are (time, batch,
    features) are told by their lengths; where batch and time are equally long, the batch comes
    first, unless `time_first` has the name (`("encoder.states",)`). All is kept in memory until
    the end, also with `out`.
    """
    wanted = {name: _find_submodule(module, where) for name, where in at.items()}
    rows: list[dict[str, Tensor]] = []
    seen: list[Batch] = []
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                with _listen(wanted) as outputs:
                    call(module, batch)
                rows.append(
                    {n: join_calls(n, outputs[n], at[n], batch, n in time_first) for n in wanted}
                )
                seen.append(batch)
    finally:
        module.train(was_training)
    if not rows:
        raise RegardError("There is nothing to record: no batches were given.")
    arrays = _stack(rows, seen)
    if readout is not None:
        weight = readout.weight if isinstance(readout, nn.Linear) else readout
        arrays["readout"] = as_array(weight)
    origin = {"adapter": "module", "module": type(module).__name__, "at": dict(at)}
    return record_arrays(
        arrays, source_words, target_words, readout_parts, scorer, out=out, origin=origin
    )


def _find_submodule(module: nn.Module, where: str) -> tuple[nn.Module, int]:
    name, _, index = where.partition("[")
    known = dict(module.named_modules())
    if name not in known:
        raise RegardError(unknown("submodule", name, [n for n in known if n]))
    number = index.removesuffix("]") or "0"
    if not number.isdecimal():
        raise RegardError(f"'{where}' does not name an output. Write '{name}' or '{name}[1]'.")
    return known[name], int(number)


@contextmanager
def _listen(wanted: Mapping[str, tuple[nn.Module, int]]) -> Iterator[dict[str, list[Tensor]]]:
    """What every named submodule puts out while the context lasts."""
    outputs: dict[str, list[Tensor]] = {name: [] for name in wanted}

    def listener(name: str, index: int) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            outputs[name].append(choose_output(output, index, name))

        return hook

    handles = [m.register_forward_hook(listener(n, i)) for n, (m, i) in wanted.items()]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _stack(rows: list[dict[str, Tensor]], batches: list[Batch]) -> dict[str, Any]:
    """The batches one below the other, all as wide as the widest."""
    widths = {
        "source": max(batch.source.shape[1] for batch in batches),
        "target": max(batch.target.shape[1] for batch in batches),
    }
    arrays: dict[str, Any] = {}
    for name in rows[0]:
        values = torch.cat(
            [_widen(row[name], find_time_axes(name, row[name]), widths) for row in rows]
        )
        key = "predictions" if name == "logits" else name
        arrays[key] = values.argmax(dim=-1) if name == "logits" else values
    words: dict[str, tuple[str, Callable[[Batch], Tensor]]] = {
        "encoder.words": ("source", lambda batch: batch.source),
        "encoder.mask": ("source", lambda batch: batch.source_mask),
        "decoder.words": ("target", lambda batch: batch.inputs),
        "decoder.mask": ("target", lambda batch: batch.target_mask),
        "targets": ("target", lambda batch: batch.target),
    }
    for name, (side, of) in words.items():
        arrays[name] = torch.cat([_widen(of(batch).cpu(), {1: side}, widths) for batch in batches])
    return arrays


def _widen(values: Tensor, axes: Mapping[int, str], widths: Mapping[str, int]) -> Tensor:
    """Zeros at the end of some axes up to the common widths."""
    for axis, side in axes.items():
        shape = list(values.shape)
        shape[axis] = widths[side] - shape[axis]
        if shape[axis]:
            values = torch.cat([values, values.new_zeros(shape)], dim=axis)
    return values
