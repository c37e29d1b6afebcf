"""`regard.joeynmt`: folders of JoeyNMT, recurrent models and Transformers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats._recurrent import Plan, Recurrent, attend
from regard.subjects.formats._starts import FromTop, FromZeros, Start
from regard.subjects.formats._subject import FormatSubject, make_lexicon
from regard.subjects.formats._torch_layers import (
    SIDES,
    Names,
    fill_cells,
    fill_linear,
    join_stacks,
    make_stack,
    read_cells,
    refuse_settings,
)
from regard.subjects.formats._yaml import read_yaml
from regard.subjects.formats.torch_files import read_checkpoint

TABLES = ("src_embed.lut.weight", "trg_embed.lut.weight")
SPECIALS = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
MAPS = ("q_layer", "k_layer", "v_layer", "output_layer")
FEED = ("feed_forward.pwff_layer.0", "feed_forward.pwff_layer.3")
ENCODER = Names("encoder.layers.{}", ("src_src_att",), MAPS,
                ("layer_norm", "feed_forward.layer_norm"), *FEED)  # fmt: skip
DECODER = Names("decoder.layers.{}", ("trg_trg_att", "src_trg_att"), MAPS,
                ("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm"), *FEED)  # fmt: skip


def joeynmt(folder: str | Path, checkpoint: str | None = None) -> FormatSubject:
    """The model in a folder of JoeyNMT; nothing in it is run.

    The folder has `config.yaml`, `src_vocab.txt`, `trg_vocab.txt` and checkpoints, of which
    `best.ckpt` is taken, or the latest, or the one that is named. Recurrent models (LSTM or GRU,
    Bahdanau's or Luong's attention, with and without input feeding) and Transformers.

    >>> subject = regard.joeynmt("models/reverse", "5000.ckpt")            # doctest: +SKIP
    """
    folder = Path(folder)
    path = folder / (checkpoint or _find_checkpoint(folder))
    config = read_yaml(folder / "config.yaml")
    said = config.get("model", {})
    encoder, decoder = said.get("encoder", {}), said.get("decoder", {})
    for part in (encoder, decoder):
        refuse_settings(str(path), part, {"alpha": (1, 1.0)})
    state = read_checkpoint(path).get("model_state")
    if not state:
        raise RegardError(f"{path} has no 'model_state', so JoeyNMT did not write it.")
    held = Arrays.of(state, str(path))
    model: Seq2Seq
    with held.building():
        if "encoder.rnn.weight_ih_l0" in held:
            model = _build_recurrent(held, encoder, decoder)
        else:
            model = _build_transformer(held, encoder, decoder)
    report = held.finish((".pe.pe",))
    data = config.get("data", {})
    lexicons = [
        _read_words(folder / f"{side}_vocab.txt", data, side, held.shape(table)[0])
        for side, table in zip(("src", "trg"), TABLES, strict=True)
    ]
    kind = "recurrent" if isinstance(model, Recurrent) else "transformer"
    origin = {"adapter": "joeynmt", "model": kind, "file": path.name}
    return FormatSubject(model, (lexicons[0], lexicons[1]), origin, report)


def _find_checkpoint(folder: Path) -> str:
    """`best.ckpt`, or the one after the most steps."""
    found = {path.stem: path.name for path in folder.glob("*.ckpt")}
    steps = sorted((stem for stem in found if stem.isdecimal()), key=int)
    if not found or not ("best" in found or steps):
        raise RegardError(f"There is no best.ckpt and no 5000.ckpt or the like in {folder}.")
    return found["best"] if "best" in found else found[steps[-1]]


def _read_words(path: Path, data: dict[str, Any], side: str, size: int) -> Any:
    """Special words first, as JoeyNMT numbers them, then those of the file."""
    if not path.is_file():
        raise RegardError(f"There is no {path.name} in {path.parent}.")
    special = {**SPECIALS, **{k: v for k, v in data.get("special_symbols", {}).items() if v}}
    first = [str(special[name]) for name in SPECIALS]
    tags = [*([special["sep_token"]] if special.get("sep_token") else []),
            *special.get("lang_tags", [])]  # fmt: skip
    lines = path.read_text("utf-8").splitlines()
    words = list(dict.fromkeys([*first, *map(str, tags), *lines]))
    start = str(special["bos_token"]) if side == "trg" else None
    return make_lexicon(words, first[1], start, first[3], size, str(path))


def _build_recurrent(held: Arrays, encoder: dict[str, Any], decoder: dict[str, Any]) -> Recurrent:
    refuse_settings(held.where, decoder, {"activation": ("tanh",)})
    cells, others = read_cells(held, "encoder.rnn"), read_cells(held, "decoder.rnn")
    if cells.kind != others.kind or not cells.both:
        raise RegardError(f"{held.where} reads in one direction, or with cells of two kinds, which"
                          " is not known here.")  # fmt: skip
    kind = "additive" if "decoder.attention.energy_layer.weight" in held else "key"
    _, size = target = held.table(TABLES[1])
    plan = Plan(
        cells.kind, held.table(TABLES[0]), target,
        (cells.hidden, cells.layers, cells.both), (others.hidden, others.layers),
        others.hidden, bias=False, feeds=others.inputs > size,
    )  # fmt: skip
    model = Recurrent(plan, attend(kind, plan), _start(held, plan, decoder))
    for table, part, name in ((model.source_embedding, encoder, TABLES[0]),
                              (model.target_embedding, decoder, TABLES[1])):  # fmt: skip
        held.fill(table.weight, name)
        if part.get("embeddings", {}).get("scale"):
            with torch.no_grad():  # a factor of every vector, which is a part of the table here
                table.weight.mul_(math.sqrt(table.size))
    fill_cells(held, model.encoder.ahead, "encoder.rnn", False)
    fill_cells(held, model.encoder.back, "encoder.rnn", False, "_reverse")
    fill_cells(held, model.decoder, "decoder.rnn", False)
    attention, vector = model.attention, model.readout.hidden
    assert attention is not None and attention.key is not None and vector is not None
    fill_linear(held, attention.key, "decoder.attention.key_layer")
    if attention.query is not None and isinstance(attention.v, Tensor):
        fill_linear(held, attention.query, "decoder.attention.query_layer")
        held.fill(attention.v, "decoder.attention.energy_layer.weight")
    fill_linear(held, vector, "decoder.att_vector_layer")
    held.fill(model.readout.weight, "decoder.output_layer.weight")
    return model


def _start(held: Arrays, plan: Plan, decoder: dict[str, Any]) -> Start:
    """Where the decoder starts: `bridge`, `last` or `zero`."""
    hidden, layers = plan.decoder
    count, way = layers * plan.members, decoder.get("init_hidden", "bridge")
    refuse_settings(held.where, {"init_hidden": way}, {"init_hidden": ("bridge", "last", "zero")})
    if way == "zero":
        return FromZeros(hidden, count)
    start = FromTop(plan.memory, hidden, count, plan.members, way == "bridge")
    if start.map is not None:
        fill_linear(held, start.map, "decoder.bridge_layer")
    return start


def _build_transformer(held: Arrays, encoder: dict[str, Any], decoder: dict[str, Any]) -> Seq2Seq:
    stacks = []
    sides = zip(SIDES, (encoder, decoder), (ENCODER, DECODER), TABLES, strict=True)
    for side, said, names, table in sides:
        known = {"activation": ("relu", "gelu", "swish"), "layer_norm": ("pre", "post")}
        refuse_settings(held.where, said, known)
        # Where nothing is said: the encoder's layers normalise first, as both sides' did once.
        final = f"{side}.layer_norm"
        first = side == "encoder" or f"{final}.weight" in held
        pre = said.get("layer_norm", "pre" if first else "post") == "pre"
        stacks.append(
            make_stack(
                held,
                side,
                names,
                table,
                final,
                held.take(f"{side}.pe.pe")[0],
                heads=int(said["num_heads"]),
                pre_norm=pre,
                epsilon=1e-6,
                activation=said.get("activation", "relu"),
                scale_embeddings=bool(said.get("embeddings", {}).get("scale", False)),
            )
        )
    return join_stacks(held, stacks[0], stacks[1], "decoder.output_layer.weight")
