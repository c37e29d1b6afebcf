"""The adapter for models that speak Regard's own interface, `Seq2Seq`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError, unknown
from regard.models.layers.attention import Site as Attended
from regard.models.seq2seq import Output, Seq2Seq
from regard.recordings.adapters._also import (
    PLAIN,
    Also,
    Pass,
    check_also,
    describe_also,
    further_arrays,
)
from regard.recordings.adapters._layers import fit_layers, hear_layers
from regard.recordings.compact import LARGE
from regard.recordings.recording import Chunk, Metadata, Recording, as_array
from regard.recordings.site import AXIS_OF, Site
from regard.recordings.writer import Sizes, Watch, write_recording
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary
from regard.training.evaluation import evaluating

Inputs = Literal["own", "teacher"]
PAIRS_AT_ONCE = 64  # samples in a piece where every pair of words is scored


def record_model(
    model: Seq2Seq,
    batches: Iterable[Batch],
    vocabularies: tuple[Vocabulary, Vocabulary],
    origin: dict[str, Any],
    inputs: Inputs = "own",
    also: Also | None = None,
    only: Sequence[str] | None = None,
    out: Path | None = None,
    watch: Watch | None = None,
    sites: Collection[str] | None = None,
    conventions: Mapping[str, dict[str, Any]] | None = None,
    rows: tuple[int, int] | None = None,
) -> Recording:
    """What a model does with some batches.

    The decoder runs for as many steps as the target has words. With `inputs="own"` it is fed its
    own choices (as the papers do it), with `"teacher"` the target's words; `decoder.words` says
    what it was. `also` names further arrays (see `record`), `only` the arrays to keep, `sites` the
    attentions. The words of all samples are in memory, the arrays of one piece. `conventions` say
    how words are numbered, where that is not as in Regard. Of all samples `rows` keeps some: how
    many are left out at the front, and how many then stay.
    """
    also = also or {}
    check_also(model, also)
    kept = list(batches)
    if any(what not in PLAIN for what in also):
        kept = [piece for batch in kept for piece in batch.pieces(PAIRS_AT_ONCE)]
    if not kept:
        raise RegardError("There is nothing to record: no samples were given.")
    skip, count = rows or (0, sum(map(len, kept)))
    kept, skip = _cover(kept, skip, count)
    _check_words(kept, vocabularies)
    with evaluating(model) as device, model.keep_sites(sites):
        done = run_model(model, kept[0].to(device), inputs, "gates" in also, "states" in also)
        _check_outputs(done.output.logits.shape[2], vocabularies[1])
        chosen = {n: s for n, s in done.output.sites.items() if sites is None or n in sites}
        fixed, parts = read_output_layer(model, kept)
        for name, site in chosen.items():
            if site.vector is not None:
                fixed[f"{name}.vector"] = as_array(site.vector)
        described = {name: describe_site(site) for name, site in chosen.items()}
        pieces: Iterator[Chunk] = iter([_select(_piece(done, also, sites), only)])
        del done, chosen  # logits may be large; one piece is in memory at a time
        source, target = vocabularies
        metadata = Metadata(
            source.words, target.words, described, parts, {**origin, "inputs": inputs},
            (source.ends, target.ends), gates=model.gate_effects(),
            also=describe_also(model, kept[0].to(device), also),
            conventions=dict(conventions or {}),
        )  # fmt: skip

        def record_batch(batch: Batch) -> Chunk:
            one = run_model(model, batch.to(device), inputs, "gates" in also, "states" in also)
            return _select(_piece(one, also, sites), only)

        pieces = _cut(chain(pieces, map(record_batch, kept[1:])), skip, count)
        sizes = replace(_sizes(kept), sample=count)
        return write_recording(pieces, fixed, sizes, metadata, out, watch)


def _cover(batches: list[Batch], skip: int, count: int) -> tuple[list[Batch], int]:
    """The batches that hold `count` samples after `skip` others, and what is left to skip."""
    kept: list[Batch] = []
    start = left = 0
    for batch in batches:
        stop = start + len(batch)
        if start < skip + count and stop > skip:
            left = skip - start if not kept else left
            kept.append(batch)
        start = stop
    return kept, left


def _cut(pieces: Iterator[Chunk], skip: int, count: int) -> Iterator[Chunk]:
    """`count` samples after the first `skip`."""
    for piece in pieces:
        size = len(piece["encoder.words"])
        kept = slice(skip, min(size, skip + count))
        skip, count = 0, count - (kept.stop - kept.start)
        if kept != slice(0, size):
            piece = {n: a[kept] for n, a in piece.items()}
        ready = [piece]
        del piece  # what is yielded is nobody's here: one piece is in memory at a time
        yield ready.pop()


def run_model(
    model: Seq2Seq, batch: Batch, inputs: Inputs, gates: bool, layers: bool = False
) -> Pass:
    """One pass over a batch, encoded once, the decoder fed the teacher's words or its own."""
    with hear_layers(model, layers) as heard:
        memory = model.encode(batch.source, batch.source_lengths, {} if gates else None)
        fed = batch.inputs
        if inputs == "own":
            fed = model.feed(memory, fed, torch.zeros(fed.shape[1], dtype=torch.bool))
        output = model.decode(memory, fed)
    return Pass(model, batch, memory, fed, output, fit_layers(heard, batch))


def _sizes(batches: Sequence[Batch]) -> Sizes:
    return Sizes(
        sum(map(len, batches)),
        max(batch.source.shape[1] for batch in batches),
        max(batch.target.shape[1] for batch in batches),
    )


def _piece(done: Pass, also: Also, sites: Collection[str] | None = None) -> Chunk:
    batch, output = done.batch, done.output
    words = (
        batch.source if batch.source.ndim == 2 else torch.zeros_like(batch.source[..., 0]).long()
    )
    masks = {"encoder": batch.source_mask, "decoder": batch.target_mask}
    source, target = masks.values()
    arrays: dict[str, Tensor] = {
        "encoder.states": output.encoder_states * source[:, :, None],
        "encoder.words": words * source,
        "encoder.mask": source,
        "decoder.states": output.decoder_states * target[:, :, None],
        "decoder.words": done.fed * target,
        "decoder.mask": target,
        "targets": batch.target * target,
    }
    if output.logits.shape[2]:  # a module need not say where its logits are
        arrays["predictions"] = output.logits.argmax(dim=2) * target
    if batch.alignment is not None:
        arrays["alignment"] = batch.alignment.masked_fill(~target, -1)
    for name, site in output.sites.items():
        if sites is None or name in sites:
            arrays |= _site_arrays(name, site, masks, "values" in also)
    for name, values in output.gates.items():
        arrays[name] = values * masks[name.split(".")[0]][:, :, None]
    if "gates" in also and not output.gates:
        raise RegardError("This model has no gates to record: it has no cells that have any.")
    arrays |= done.layers
    arrays |= further_arrays(done, also)
    found = {name: as_array(values) for name, values in arrays.items()}
    refuse_nan(found)
    _refuse_bad_logits(output.logits, batch.target_mask)
    return found


def _refuse_bad_logits(logits: Tensor, target: Tensor) -> None:
    """Among numbers that are none, no word is the largest."""
    bad = logits.isnan().any(dim=2) & target
    if bool(bad.any()):
        row, step = (int(x[0]) for x in bad.nonzero(as_tuple=True))
        raise RegardError(
            f"The logits of sample {row} are not a number at step {step}, so that there is no"
            " prediction. Look at the model's weights and inputs."
        )


def describe_site(site: Attended) -> Site:
    """What a recording says of an attention."""
    return Site(**{field.name: getattr(site, field.name) for field in fields(Site)})


def _site_arrays(
    name: str, site: Attended, masks: dict[str, Tensor], values: bool
) -> dict[str, Tensor]:
    """Zero wherever there is no word, so that no instrument meets a number that means nothing."""
    queries = masks[site.query_side][:, None, :, None]
    keys = masks[site.key_side][:, None, :, None]
    heads, both = site.scores.shape[1], queries & keys.transpose(-1, -2)
    arrays = {"weights": site.weights * both}
    if site.score != "given":  # else nothing but the weights is known
        arrays |= {
            "queries": site.queries * queries,
            "keys": site.keys.expand(-1, heads, -1, -1) * keys,
            "scores": site.scores * both,
        }
    if site.bias is not None:
        arrays["bias"] = site.bias.expand_as(site.scores) * both
    if not site.masked:  # what lies on positions without a word is part of what the model did
        arrays["weights"] = site.weights * queries
    if values and not site.values.shape[3]:
        raise RegardError(
            f"The values of '{name}' are not known, so that what it gives is not. Name them:"
            " regard.at(…, v='SUBMODULE')."
        )
    if values:
        arrays["values"] = site.values.expand(-1, heads, -1, -1) * keys
    return {f"{name}.{part}": array for part, array in arrays.items()}


def _select(piece: Chunk, only: Sequence[str] | None) -> Chunk:
    """The arrays that are to be kept, by their names or ends of them; words and masks always."""
    if only is None:
        return piece
    always = [f"{side}.{what}" for side in AXIS_OF for what in ("words", "mask")]
    found = {end: [n for n in piece if n == end or n.endswith(f".{end}")] for end in only}
    faults = [unknown("array to keep", end, piece) for end, names in found.items() if not names]
    if faults:
        raise RegardError(*faults)
    kept = {*always, *(name for names in found.values() for name in names)}
    return {name: array for name, array in piece.items() if name in kept}


def read_output_layer(
    model: Seq2Seq, batches: Sequence[Batch] = ()
) -> tuple[Chunk, dict[str, tuple[int, int]]]:
    """The output layer, and which of its columns meet the state and which the context.

    Of a large vocabulary only the rows of words that are targets, with their numbers.
    """
    layer = model.output_layer()
    if layer is None:
        return {}, {}
    if len(layer.weight) < LARGE:
        arrays: Chunk = {"readout": as_array(layer.weight)}
        kept: Any = slice(None)
    else:
        words = [batch.target[batch.target_mask].cpu() for batch in batches]
        kept = torch.unique(torch.cat([*words, torch.zeros(1, dtype=torch.long)]))
        arrays = {"readout": as_array(layer.weight[kept.to(layer.weight.device)])}
        arrays["readout.words"] = as_array(kept)
    if layer.bias is not None:
        arrays["readout.bias"] = as_array(layer.bias)[kept]
    return arrays, layer.parts


def _check_words(batches: Sequence[Batch], vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
    """Every number has a word."""
    faults = []
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        most = max((int(x.max()) for b in batches if (x := getattr(b, side)).numel()
                    and not x.is_floating_point()), default=-1)  # fmt: skip
        if most >= len(vocabulary):
            faults.append(
                f"The {side} vocabulary has {len(vocabulary)} words, but there is a word number"
                f" {most}. Give every word, in the order of the numbers."
            )
    if faults:
        raise RegardError(*faults)


def _check_outputs(count: int, vocabulary: Vocabulary) -> None:
    if count > len(vocabulary):
        raise RegardError(
            f"The model chooses among {count} words, but the target vocabulary has"
            f" {len(vocabulary)}: some choices would be counted as other words. Give every word,"
            " in the order of the numbers."
        )


STAGES = ("queries", "keys", "values", "bias", "scores", "weights")  # of one attention, in order


def refuse_nan(arrays: Chunk) -> None:
    """Tell of what is not a number where it comes first on the way from source to logits."""

    def place(name: str) -> tuple[bool, bool, int, bool, int]:
        *front, last = name.split(".")
        layer = next((int(part) for part in front if part.isdecimal()), -1)
        stage = STAGES.index(last) if last in STAGES else len(STAGES)
        return name.startswith("decoder"), last == "states", layer, "cross" in front, stage

    for name in sorted(arrays, key=place):
        if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
            where = tuple(int(x[0]) for x in np.nonzero(np.isnan(arrays[name])))
            raise RegardError(
                f"'{name}' is not a number at {where}, and so is what follows from it. It comes"
                " first there on the way through the model: look at its weights and inputs."
            )


__all__ = ["Inputs", "Output", "record_model", "run_model"]
