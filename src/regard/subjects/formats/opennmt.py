"""`regard.opennmt`: checkpoints of OpenNMT-py, recurrent ones and Transformers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats._recurrent import Plan, Recurrent, attend
from regard.subjects.formats._starts import Bridged, Start
from regard.subjects.formats._subject import FormatSubject, make_lexicon
from regard.subjects.formats._torch_layers import (
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
from regard.subjects.formats.torch_files import read_checkpoint

TABLE = "{}.embeddings.make_embedding.emb_luts.0.weight"
POSITIONS = "{}.embeddings.make_embedding.pe.pe"
MAPS = ("linear_query", "linear_keys", "linear_values", "final_linear")
FEED = ("feed_forward.w_1", "feed_forward.w_2")
ENCODER = Names(
    "encoder.transformer.{}", ("self_attn",), MAPS, ("layer_norm", "feed_forward.layer_norm"), *FEED
)
DECODER = Names(
    "decoder.transformer_layers.{}", ("self_attn", "context_attn"), MAPS,
    ("layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"), *FEED,
)  # fmt: skip
KNOWN = {
    "encoder_type": ("rnn", "brnn", "transformer"),
    "decoder_type": ("rnn", "transformer"),
    "model_task": ("seq2seq",),
    "global_attention_function": ("softmax",),
    "copy_attn": (False, None),
    "coverage_attn": (False, None),
    "context_gate": (None,),
    "pos_ffn_activation_fn": ("relu", "gelu"),
    "layer_norm": ("standard",),
    "max_relative_positions": (0,),
    "relative_positions_buckets": (0,),
    "self_attn_type": ("scaled-dot", "scaled-dot-flash"),
    "parallel_residual": (False,),
    "num_kv": (0,),
    "num_experts": (0,),
    "sliding_window": (0,),
}


def opennmt(file: str | Path) -> FormatSubject:
    """The model in a checkpoint of OpenNMT-py (`model_step_1000.pt`); nothing in it is run.

    Recurrent ones (LSTM or GRU, one or two directions, several layers; attention `dot`, `general`,
    `mlp` or none; with and without input feeding) and Transformers, written by version 3.
    Checkpoints of versions 1 and 2 hold their vocabularies as objects and are refused.

    >>> subject = regard.opennmt("model_step_50000.pt")                    # doctest: +SKIP
    """
    path = Path(file)
    found = read_checkpoint(path)
    kinds = {"model": dict, "generator": dict, "vocab": dict, "opt": Namespace}
    missing = [n for n, kind in kinds.items() if not isinstance(found.get(n), kind) or not found[n]]
    if missing:
        raise RegardError(f"{path} lacks {', '.join(missing)}: OpenNMT-py did not write it whole.")
    said: dict[str, Any] = dict(vars(found["opt"]))
    refuse_settings(str(path), said, KNOWN)
    output = {f"generator.{name}": x for name, x in found["generator"].items()}
    held = Arrays.of({**found["model"], **output}, str(path))
    tables = (TABLE.format("encoder"), TABLE.format("decoder"))
    model: Seq2Seq
    with held.building():
        if "encoder.rnn.weight_ih_l0" in held:
            model = build_recurrent(held, tables)
        else:
            model = _build_transformer(held, said, tables)
    sizes = (held.shape(tables[0])[0], held.shape(tables[1])[0])
    origin = {"adapter": "opennmt", "model": str(said.get("encoder_type")), "file": path.name}
    return make_subject(model, found["vocab"], sizes, origin, held)


def make_subject(
    model: Seq2Seq, vocab: Mapping[str, Any], sizes: tuple[int, int], origin: dict[str, Any],
    held: Arrays, ignored: tuple[str, ...] = (),
) -> FormatSubject:  # fmt: skip
    """The model with the words that OpenNMT-py and eole keep beside it; sources have no end."""
    specials = vocab.get("specials") or {}
    pad = str(specials.get("pad_token") or "<blank>")
    end = str(specials.get("eos_token") or "</s>")
    start = str(vocab.get("decoder_start_token") or "<s>")
    source = make_lexicon(vocab["src"], pad, None, end, sizes[0], held.where)
    target = make_lexicon(vocab["tgt"], pad, start, end, sizes[1], held.where)
    return FormatSubject(model, (source, target), origin, held.finish(ignored), ends_source=False)


def build_recurrent(
    held: Arrays, tables: tuple[str, str], positions: tuple[str, str] = ("", "")
) -> Recurrent:
    """Encoder, global attention (Luong et al. 2015) and decoder, with the sizes of their arrays."""
    encoder = read_cells(held, "encoder.rnn")
    listed = "decoder.rnn.layers.0.weight_ih" in held
    name = "decoder.rnn.layers" if listed else "decoder.rnn"
    decoder = read_cells(held, name)
    if encoder.kind != decoder.kind:
        raise RegardError(f"{held.where} has the cells {encoder.kind} and {decoder.kind}: of two"
                          " kinds, which is not known here.")  # fmt: skip
    kind = _find_attention(held)
    words, size = held.table(tables[1])
    plan = Plan(
        encoder.kind, held.table(tables[0]), (words, size),
        (encoder.hidden, encoder.layers, encoder.both), (decoder.hidden, decoder.layers),
        decoder.hidden if kind else 0, "linear" if kind == "additive" else "tanh",
        kind == "additive", "generator.bias" in held, decoder.inputs > size,
    )  # fmt: skip
    attention = attend(kind, plan, bias=kind == "additive") if kind else None
    bridged = "encoder.bridge.0.weight" in held
    start = Bridged(encoder.hidden * encoder.layers, plan.members) if bridged else Start()
    model = Recurrent(plan, attention, start)
    held.fill(model.source_embedding.weight, tables[0])
    held.fill(model.target_embedding.weight, tables[1])
    for table, where in zip(
        (model.source_embedding, model.target_embedding), positions, strict=True
    ):
        if where in held:  # eole adds them to what its cells read, too
            model.add_positions(table, held.take(where)[:, 0])
    fill_cells(held, model.encoder.ahead, "encoder.rnn", False)
    fill_cells(held, model.encoder.back, "encoder.rnn", False, "_reverse")
    fill_cells(held, model.decoder, name, listed)
    if isinstance(start, Bridged):
        for number, bridge in enumerate(start.maps):
            assert isinstance(bridge, nn.Linear)
            fill_linear(held, bridge, f"encoder.bridge.{number}")
    if kind:
        _fill_attention(held, model, kind, plan.memory)
    held.fill(model.readout.weight, "generator.weight" if "generator.weight" in held else tables[1])
    if plan.bias:
        held.fill(model.readout.bias, "generator.bias")
    return model


def _find_attention(held: Arrays) -> str:
    """What the arrays say that the attention is; nothing where there is none."""
    if "decoder.attn.linear_out.weight" not in held:
        return ""
    if "decoder.attn.linear_in.weight" in held:
        return "bilinear"
    return "additive" if "decoder.attn.v.weight" in held else "dot"


def _fill_attention(held: Arrays, model: Recurrent, kind: str, memory: int) -> None:
    attention, vector = model.attention, model.readout.hidden
    assert attention is not None and vector is not None
    if kind == "bilinear":
        assert attention.query is not None
        fill_linear(held, attention.query, "decoder.attn.linear_in")
    elif kind == "additive":
        assert attention.query is not None and attention.key is not None
        assert isinstance(attention.v, Tensor)
        fill_linear(held, attention.query, "decoder.attn.linear_query")
        fill_linear(held, attention.key, "decoder.attn.linear_context")
        held.fill(attention.v, "decoder.attn.v.weight")
    fill_turned(held, vector, "decoder.attn.linear_out", memory)


def _build_transformer(held: Arrays, said: dict[str, Any], tables: tuple[str, str]) -> Seq2Seq:
    stacks = []
    for side, names, table in zip(SIDES, (ENCODER, DECODER), tables, strict=True):
        where = POSITIONS.format(side)
        positions = held.take(where)[:, 0] if where in held else None
        stacks.append(
            make_stack(
                held,
                side,
                names,
                table,
                f"{side}.layer_norm",
                positions,
                heads=int(said["heads"]),
                activation=str(said.get("pos_ffn_activation_fn", "relu")),
                scale_embeddings=positions is not None,
                epsilon=float(said.get("norm_eps", 1e-6)),
            )
        )
    return join_stacks(held, stacks[0], stacks[1], "generator.weight", "generator.bias")
