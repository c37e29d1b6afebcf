"""`regard.eole`: folders of eole, recurrent models and Transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats._subject import FormatSubject
from regard.subjects.formats._torch_layers import (
    SIDES,
    Names,
    join_stacks,
    make_stack,
    refuse_settings,
)
from regard.subjects.formats.opennmt import MAPS, build_recurrent, make_subject

TABLES = ("src_emb.embeddings.weight", "tgt_emb.embeddings.weight")
FEED = ("mlp.gate_up_proj", "mlp.down_proj")
ENCODER = Names("encoder.transformer_layers.{}", ("self_attn",), MAPS,
                ("input_layernorm", "post_attention_layernorm"), *FEED)  # fmt: skip
DECODER = Names(
    "decoder.transformer_layers.{}", ("self_attn", "context_attn"), MAPS,
    ("input_layernorm", "precontext_layernorm", "post_attention_layernorm"), *FEED,
)  # fmt: skip
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish", "gelu-tanh": "gelu_tanh"}
NO = (False, None, 0)
KNOWN: dict[str, tuple[Any, ...]] = {
    "encoder_type": ("rnn", "brnn", "transformer"), "decoder_type": ("rnn", "transformer"),
    "global_attention_function": ("softmax",), "mlp_activation_fn": tuple(ACTIVATIONS),
    "layer_norm": ("standard", "standardFP32"), "encoder_layer_style": ("standard",),
    "position_encoding_type": (None, "SinusoidalInterleaved", "SinusoidalConcat", "Learned"),
    "embedding_type": ("standard",), "LM_type": ("causal",),
    **dict.fromkeys(
        ("coverage_attn", "context_gate", "parallel_residual", "ffn_layernorm", "query_norm",
         "key_norm", "value_norm", "q_gating", "head_dim", "attn_scaling", "num_experts",
         "sliding_window", "normalize", "position_shift", "layer_types", "add_estimator"), NO),
}  # fmt: skip


def eole(folder: str | Path) -> FormatSubject:
    """The model in a folder of eole; nothing in it is run.

    The folder has `config.json`, `vocab.json` and `model.00.safetensors`. Recurrent models (LSTM or
    GRU, attention `dot`, `general`, `mlp` or none) and Transformers with positions of their own
    (sinusoids or learned ones). eole's recurrent encoder also reads the padding of a batch: here a
    sentence is what it is alone.

    >>> subject = regard.eole("models/wmt17/step_50000")                   # doctest: +SKIP
    """
    folder = Path(folder)
    model, vocab = (
        _read_json(folder / "config.json").get("model"),
        _read_json(folder / "vocab.json"),
    )
    files = sorted(folder.glob("model.*.safetensors"))
    if not files or not isinstance(model, dict):
        raise RegardError(f"{folder} lacks model.00.safetensors, or a model in its config.json.")
    said = {side: _read_settings(model, side, str(folder)) for side in ("encoder", "decoder")}
    try:
        tensors = {name: x for file in files for name, x in load_file(file).items()}
    except (SafetensorError, OSError) as error:
        raise RegardError(f"{folder} does not hold whole safetensors files ({error}).") from None
    held = Arrays.of(tensors, str(folder))
    tables = (TABLES[0], TABLES[1] if TABLES[1] in held else TABLES[0])
    network: Seq2Seq
    with held.building():
        if "encoder.rnn.weight_ih_l0" in held:
            network = build_recurrent(held, tables, ("src_emb.pe.pe", "tgt_emb.pe.pe"))
        else:
            network = _build_transformer(held, said, tables)
    sizes = (held.shape(tables[0])[0], held.shape(tables[1])[0])
    origin = {"adapter": "eole", "model": str(said["encoder"].get("encoder_type")),
              "folder": folder.name}  # fmt: skip
    return make_subject(network, vocab, sizes, origin, held, (".layer_scalar",))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RegardError(f"{path} cannot be read ({error}).") from None
    return found if isinstance(found, dict) else {}


def _read_settings(model: dict[str, Any], side: str, where: str) -> dict[str, Any]:
    """Those of one side: its own, or else the model's; of what is not said eole has a default."""
    said = {k: v for k, v in model.items() if not isinstance(v, dict)}
    for part in ("embeddings", side):
        said |= {k: v for k, v in (model.get(part) or {}).items() if v is not None}
    refuse_settings(where, said, KNOWN)
    refuse_settings(where, said, {"heads_kv": (None, said.get("heads", 8))})
    return said


def _build_transformer(
    held: Arrays, said: dict[str, dict[str, Any]], tables: tuple[str, str]
) -> Seq2Seq:
    stacks = []
    for side, names, table in zip(SIDES, (ENCODER, DECODER), tables, strict=True):
        own = said[side]
        where = f"{'src' if side == 'encoder' else 'tgt'}_emb.pe"
        computed = f"{where}.pe" in held  # which come with a factor of the words' vectors
        positions = held.take(f"{where}.pe")[:, 0] if computed else None
        if f"{where}.weight" in held:
            positions = held.take(f"{where}.weight")
        stacks.append(
            make_stack(
                held,
                side,
                names,
                table,
                f"{side}.layer_norm",
                positions,
                heads=int(own.get("heads", 8)),
                epsilon=float(own.get("norm_eps", 1e-5)),
                activation=ACTIVATIONS[own.get("mlp_activation_fn", "relu")],
                scale_embeddings=computed,
            )
        )
    return join_stacks(held, stacks[0], stacks[1], "generator.weight", "generator.bias")
