"""The adapter for models that speak Regard's own interface, `Seq2Seq`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models import Output, Seq2Seq, Site
from regard.models.attention import Attention
from regard.recordings.gather import Sizes, Watch, gather
from regard.recordings.recording import Chunk, Metadata, Recording, SiteInfo, numbers
from regard.tasks import Batch, Vocabulary
from regard.training.evaluation import evaluating

Inputs = Literal["own", "teacher"]
Batches = Callable[[], Iterator[Batch]]  # the samples, from the start each time it is called


def record_model(
    model: Seq2Seq,
    batches: Batches,
    vocabularies: tuple[Vocabulary, Vocabulary],
    origin: dict[str, Any],
    inputs: Inputs = "own",
    gates: bool = False,
    out: Path | None = None,
    watch: Watch | None = None,
) -> Recording:
    """What a model does with some batches.

    The decoder runs for as many steps as the target has words. With `inputs="own"` it is fed its
    own choices (as the papers do it), with `"teacher"` the target's words; `decoder.words` says
    what it was.
    """
    sizes = _sizes(batches)
    if not sizes.sample:
        raise RegardError("There is nothing to record: no samples were given.")
    with evaluating(model) as device:
        start = next(batches())[:1].to(device)
        output = _output(model, start, inputs, gates)[1]
        sites = {name: _info(name, site, output, model) for name, site in output.sites.items()}
        fixed, parts = readout_of(model)
        for name, site in output.sites.items():
            if site.vector is not None:
                fixed[f"{name}.vector"] = numbers(site.vector)
        source, target = vocabularies
        metadata = Metadata(
            source.words, target.words, sites, parts, {**origin, "inputs": inputs},
            (source.ends, target.ends),
        )  # fmt: skip
        pieces = (_piece(model, batch.to(device), inputs, gates) for batch in batches())
        return gather(pieces, fixed, sizes, metadata, out, watch)


def _sizes(batches: Batches) -> Sizes:
    rows = source = target = 0
    for batch in batches():
        rows += len(batch)
        source = max(source, batch.source.shape[1])
        target = max(target, batch.target.shape[1])
    return Sizes(rows, source, target)


def _output(model: Seq2Seq, batch: Batch, inputs: Inputs, gates: bool) -> tuple[Tensor, Output]:
    """What was fed to the decoder, and what the model did."""
    fed = batch.inputs
    if inputs == "own":
        memory = model.encode(batch.source, batch.source_lengths)
        never = torch.zeros(fed.shape[1], dtype=torch.bool)
        fed = model.feed(memory, fed, never)
    run = model.trace if gates else model
    return fed, run(batch.source, batch.source_lengths, fed)


def _piece(model: Seq2Seq, batch: Batch, inputs: Inputs, gates: bool) -> Chunk:
    fed, output = _output(model, batch, inputs, gates)
    seen, there = batch.source_mask, batch.target_mask
    masks = {"source": seen, "target": there}
    arrays: dict[str, Tensor] = {
        "encoder.states": output.encoder_states * seen[:, :, None],
        "encoder.words": batch.source * seen,
        "encoder.mask": seen,
        "decoder.states": output.decoder_states * there[:, :, None],
        "decoder.words": fed * there,
        "decoder.mask": there,
        "targets": batch.target * there,
        "predictions": output.logits.argmax(dim=2) * there,
    }
    if batch.alignment is not None:
        arrays["alignment"] = batch.alignment.masked_fill(~there, -1)
    for name, site in output.sites.items():
        arrays |= _site_arrays(name, site, masks)
    for name, values in output.gates.items():
        arrays[name] = values * (seen if name.startswith("encoder") else there)[:, :, None]
    return {name: numbers(values) for name, values in arrays.items()}


def _site(name: str, site: Site) -> SiteInfo:
    """Self-attention asks and answers on one side; all else looks from target to source."""
    heads = site.scores.shape[1]
    if name.startswith("encoder."):
        return SiteInfo(site.scorer, heads, "encoder", "encoder")
    if name.endswith(".self"):
        return SiteInfo(site.scorer, heads, "decoder", "decoder")
    return SiteInfo(site.scorer, heads, lag=site.lag)


def _info(name: str, site: Site, output: Output, model: Seq2Seq) -> SiteInfo:
    """Whether queries and keys are the states themselves shows in the memory they share."""
    attention = getattr(model, "attention", None)
    projected = attention is None or type(attention).values is not Attention.values
    pairs = ((site.queries, output.decoder_states), (site.keys, output.encoder_states))
    plain = all(a.data_ptr() == b.data_ptr() and a.shape[2:] == b.shape[1:] for a, b in pairs)
    return replace(_site(name, site), plain=plain, projected=projected)


def _site_arrays(name: str, site: Site, masks: dict[str, Tensor]) -> dict[str, Tensor]:
    """Zero wherever there is no word, so that no instrument meets a number that means nothing."""
    info = _site(name, site)
    asks = masks["source" if info.asks == "encoder" else "target"][:, None, :, None]
    answers = masks["source" if info.answers == "encoder" else "target"][:, None, :, None]
    heads = site.scores.shape[1]
    both = asks & answers.transpose(-1, -2)
    keys = site.keys.expand(-1, heads, -1, -1)
    arrays = {
        f"{name}.queries": site.queries * asks,
        f"{name}.keys": keys * answers,
        f"{name}.scores": site.scores * both,
        f"{name}.weights": site.weights * both,
    }
    return arrays if heads > 1 else {key: values[:, 0] for key, values in arrays.items()}


def readout_of(model: Seq2Seq) -> tuple[Chunk, dict[str, tuple[int, int]]]:
    """The output layer, and which of its columns meet the state and which the context."""
    layer = model.output_layer()
    if layer is None:
        return {}, {}
    arrays: Chunk = {"readout": numbers(layer.weight)}
    if layer.bias is not None:
        arrays["readout.bias"] = numbers(layer.bias)
    return arrays, layer.parts
