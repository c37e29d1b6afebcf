"""`regard.fairseq`: checkpoints of fairseq, of its LSTMs and its Transformers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats._recurrent import Plan, Recurrent, attend
from regard.subjects.formats._starts import Projected, Start
from regard.subjects.formats._subject import FormatSubject, make_lexicon
from regard.subjects.formats._torch_layers import (
    LONGEST,
    SIDES,
    Names,
    fill_cells,
    fill_linear,
    fill_turned,
    join_stacks,
    make_stack,
    read_cells,
    refuse_settings,
)
from regard.subjects.formats._transformer import sinusoids
from regard.subjects.formats.torch_files import read_checkpoint

TABLES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
FIRST = SPECIALS.index("<pad>") + 1  # positions are numbered from here
MAPS = ("q_proj", "k_proj", "v_proj", "out_proj")
ENCODER = Names("encoder.layers.{}", ("self_attn",), MAPS,
                ("self_attn_layer_norm", "final_layer_norm"), "fc1", "fc2")  # fmt: skip
DECODER = Names(
    "decoder.layers.{}", ("self_attn", "encoder_attn"), MAPS,
    ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"), "fc1", "fc2",
)  # fmt: skip
CHECKPOINTS = ("checkpoint_best.pt", "model.pt", "checkpoint_last.pt")
# What nothing is computed with: numbers of formats, where positions were to be put, and copies of
# a layer's maps, which fairseq makes anew when it loads.
UNUSED = (
    "coder.version", "embed_positions._float_tensor",
    *(f".{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2")
      for kind in ("weight", "bias")),
)  # fmt: skip


def fairseq(model: str | Path, dictionaries: Sequence[str | Path] | None = None) -> FormatSubject:
    """The model in a checkpoint of fairseq; nothing in it is run.

    `model` is the file, or a folder with `checkpoint_best.pt`; `dictionaries` are the `dict.XX.txt`
    of source and target, by default those beside it. Models of the kind `lstm`, with and without
    attention, and Transformers. Checkpoints with objects of fairseq's own, which old versions
    wrote, are refused.

    >>> subject = regard.fairseq("checkpoints/checkpoint_best.pt")         # doctest: +SKIP
    """
    path = _find_file(Path(model))
    found = read_checkpoint(path)
    said = _read_settings(found)
    if not _plain(found.get("model")) or not said:
        raise RegardError(f"{path} has no model with settings, so fairseq did not write it whole.")
    held = Arrays.of(found["model"], str(path))
    network: Seq2Seq
    kind = str(said.get("arch") or said.get("_name"))
    with held.building():
        if "encoder.lstm.weight_ih_l0" in held:
            network = _build_recurrent(held)
        elif "encoder.layers.0.self_attn.q_proj.weight" in held:
            network = _build_transformer(held, said)
        else:
            raise RegardError(
                f"{path} is a '{kind}'. Only fairseq's lstm and transformer are read."
            )
    report = held.finish(UNUSED)
    lexicons = [
        _read_words(file, held.shape(table)[0], side)
        for file, table, side in zip(
            _find_words(path, said, dictionaries), TABLES, ("source", "target"), strict=True
        )
    ]
    origin = {"adapter": "fairseq", "model": kind, "file": path.name}
    return FormatSubject(network, (lexicons[0], lexicons[1]), origin, report)


def _find_file(path: Path) -> Path:
    if path.is_dir():
        known = [path / name for name in CHECKPOINTS if (path / name).is_file()]
        if not known:
            raise RegardError(f"There is none of {', '.join(CHECKPOINTS)} in {path}.")
        return known[0]
    return path


def _read_settings(found: dict[str, Any]) -> dict[str, Any]:
    """Those of the model and the languages, as old and new versions keep them."""
    config = _plain(found.get("cfg"))
    own = _plain(found.get("args"))
    return own or {**_plain(config.get("task")), **_plain(config.get("model"))}


def _plain(said: Any) -> dict[str, Any]:
    """Settings as a dictionary, whichever way they were kept."""
    if isinstance(said, Namespace):
        return dict(vars(said))
    return said if isinstance(said, dict) else {}


def _find_words(path: Path, said: dict[str, Any], given: Any) -> list[Path]:
    if given is not None:
        files = [Path(file) for file in given]
    else:
        languages = [said.get("source_lang"), said.get("target_lang")]
        files = [path.parent / f"dict.{language}.txt" for language in languages]
    lost = [str(file) for file in files if not file.is_file()]
    if lost or not files:
        raise RegardError(f"There is no {', '.join(lost)}. Give dictionaries=[source, target].")
    return [files[0], files[-1]]


def _read_words(path: Path, size: int, side: str) -> Any:
    """Four special words, then lines of `word count`; the decoder is fed the end word first."""
    lines = path.read_text("utf-8").splitlines()
    words = [*SPECIALS, *(line.removesuffix(" #fairseq:overwrite").rpartition(" ")[0]
                          for line in lines if line)]  # fmt: skip
    start = "</s>" if side == "target" else None
    return make_lexicon(words, "<pad>", start, "</s>", size, str(path))


def _build_recurrent(held: Arrays) -> Recurrent:
    encoder, decoder = read_cells(held, "encoder.lstm"), read_cells(held, "decoder.layers")
    attending = "decoder.attention.input_proj.weight" in held
    _, size = target = held.table(TABLES[1])
    output = "decoder.fc_out" if "decoder.fc_out.weight" in held else "decoder.embed_tokens"
    plan = Plan(
        encoder.kind, held.table(TABLES[0]), target,
        (encoder.hidden, encoder.layers, encoder.both), (decoder.hidden, decoder.layers),
        decoder.hidden if attending else 0, vector_bias=False, feeds=decoder.inputs > size,
        bias="decoder.fc_out.bias" in held or "decoder.additional_fc.bias" in held,
    )  # fmt: skip
    start = Start()
    if "decoder.encoder_hidden_proj.weight" in held:
        start = Projected(plan.memory, decoder.hidden, plan.members)
        for part, name in zip(start.maps, ("hidden", "cell"), strict=True):
            assert isinstance(part, nn.Linear)
            fill_linear(held, part, f"decoder.encoder_{name}_proj")
    model = Recurrent(plan, attend("bilinear", plan) if attending else None, start)
    held.fill(model.source_embedding.weight, TABLES[0])
    held.fill(model.target_embedding.weight, TABLES[1])
    fill_cells(held, model.encoder.ahead, "encoder.lstm", False)
    fill_cells(held, model.encoder.back, "encoder.lstm", False, "_reverse")
    fill_cells(held, model.decoder, "decoder.layers", True)
    if model.attention is not None:
        assert model.attention.query is not None and model.readout.hidden is not None
        fill_linear(held, model.attention.query, "decoder.attention.input_proj")
        fill_turned(held, model.readout.hidden, "decoder.attention.output_proj", plan.memory)
    _fill_output(held, model, output)
    return model


@torch.no_grad()
def _fill_output(held: Arrays, model: Recurrent, name: str) -> None:
    """The output layer, together with the linear map before it where there is one."""
    weight = held.take(f"{name}.weight")
    bias = held.take(f"{name}.bias") if f"{name}.bias" in held else torch.zeros(len(weight))
    if "decoder.additional_fc.weight" in held:
        bias = bias + weight @ held.take("decoder.additional_fc.bias")
        weight = weight @ held.take("decoder.additional_fc.weight")
    model.readout.weight.copy_(weight)
    if model.readout.bias is not None:
        model.readout.bias.copy_(bias)


def _build_transformer(held: Arrays, said: dict[str, Any]) -> Seq2Seq:
    refuse_settings(held.where, said, {
        "activation_fn": ("relu", "gelu"), "no_token_positional_embeddings": (False,),
        "no_cross_attention": (False,), "cross_self_attention": (False,),
        "adaptive_input": (False,), "adaptive_softmax_cutoff": (None,),
    })  # fmt: skip
    stacks = []
    for side, names, table in zip(SIDES, (ENCODER, DECODER), TABLES, strict=True):
        own = said.get(side) if isinstance(said.get(side), dict) else {}
        part = {**said, **{f"{side}_{name}": value for name, value in (own or {}).items()}}
        learned = f"{side}.embed_positions.weight"
        hidden = held.shape(table)[1]
        positions = (
            held.take(learned)[FIRST:] if learned in held else sinusoids(LONGEST, hidden, FIRST)
        )
        first = f"{side}.layernorm_embedding"
        stack = make_stack(
            held, side, names, table, f"{side}.layer_norm", positions,
            heads=int(part[f"{side}_attention_heads"]),
            pre_norm=bool(part.get(f"{side}_normalize_before", False)),
            activation=said.get("activation_fn", "relu"),
            scale_embeddings=not said.get("no_scale_embedding", False),
            embedding_norm=f"{first}.weight" in held,
        )  # fmt: skip
        if isinstance(stack.first, nn.LayerNorm):
            fill_linear(held, stack.first, first)
        stacks.append(stack)
    output = next((n for n in ("decoder.output_projection.weight", "decoder.embed_out")
                   if n in held), "")  # fmt: skip
    return join_stacks(held, stacks[0], stacks[1], output)
