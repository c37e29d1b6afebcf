"""Reference models (`programs`) in the files that each program writes."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from programs import SOURCE, TARGET, Fairseq, JoeyNMT, OpenNMT, Program, Transformer, sines
from safetensors.torch import save_file
from torch.nn import functional

import regard
from regard.subjects import Subject

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]
WORDS = [f"w{n}" for n in range(SOURCE - 4)], [f"v{n}" for n in range(TARGET - 4)]
JOEY, FAIR = ["<unk>", "<pad>", "<s>", "</s>"], ["<s>", "<pad>", "</s>", "<unk>"]

ONMT: dict[str, Any] = {
    "maps": ("linear_query", "linear_keys", "linear_values", "final_linear"),
    "feed": ("feed_forward.w_1", "feed_forward.w_2"), "output": "generator",
    "encoder": {"table": "encoder.embeddings.make_embedding.emb_luts.0",
                "layer": "encoder.transformer.{}", "attentions": ("self_attn",),
                "norms": ("layer_norm", "feed_forward.layer_norm"), "final": "encoder.layer_norm"},
    "decoder": {"table": "decoder.embeddings.make_embedding.emb_luts.0",
                "layer": "decoder.transformer_layers.{}",
                "attentions": ("self_attn", "context_attn"),
                "norms": ("layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"),
                "final": "decoder.layer_norm"},
}  # fmt: skip
EOLE: dict[str, Any] = {
    "maps": ONMT["maps"], "feed": ("mlp.gate_up_proj", "mlp.down_proj"), "output": "generator",
    "encoder": {"table": "src_emb.embeddings", "layer": "encoder.transformer_layers.{}",
                "attentions": ("self_attn",), "final": "encoder.layer_norm",
                "norms": ("input_layernorm", "post_attention_layernorm")},
    "decoder": {"table": "tgt_emb.embeddings", "layer": "decoder.transformer_layers.{}",
                "attentions": ("self_attn", "context_attn"), "final": "decoder.layer_norm",
                "norms": ("input_layernorm", "precontext_layernorm", "post_attention_layernorm")},
}  # fmt: skip
JOEYS: dict[str, Any] = {
    "maps": ("q_layer", "k_layer", "v_layer", "output_layer"),
    "feed": ("feed_forward.pwff_layer.0", "feed_forward.pwff_layer.3"),
    "output": "decoder.output_layer",
    "encoder": {"table": "src_embed.lut", "layer": "encoder.layers.{}",
                "attentions": ("src_src_att",), "final": "encoder.layer_norm",
                "norms": ("layer_norm", "feed_forward.layer_norm")},
    "decoder": {"table": "trg_embed.lut", "layer": "decoder.layers.{}",
                "attentions": ("trg_trg_att", "src_trg_att"), "final": "decoder.layer_norm",
                "norms": ("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm")},
}  # fmt: skip
FAIRS: dict[str, Any] = {
    "maps": ("q_proj", "k_proj", "v_proj", "out_proj"), "feed": ("fc1", "fc2"),
    "output": "decoder.output_projection",
    "encoder": {"table": "encoder.embed_tokens", "layer": "encoder.layers.{}",
                "attentions": ("self_attn",), "final": "encoder.layer_norm",
                "norms": ("self_attn_layer_norm", "final_layer_norm")},
    "decoder": {"table": "decoder.embed_tokens", "layer": "decoder.layers.{}",
                "attentions": ("self_attn", "encoder_attn"), "final": "decoder.layer_norm",
                "norms": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")},
}  # fmt: skip


def tensors_of(program: Program | Transformer) -> dict[str, torch.Tensor]:
    held = program.tensors if isinstance(program, Transformer) else program.state_dict()
    return {k: v for k, v in held.items() if not k.startswith("tables")}


def write_opennmt(folder: Path, program: Program | Transformer, **said: Any) -> Path:
    held = tensors_of(program)
    output = {k.removeprefix("generator."): v for k, v in held.items() if k.startswith("generator")}
    model = {k: v for k, v in held.items() if not k.startswith("generator")}
    vocab = {"src": SPECIAL + WORDS[0], "tgt": SPECIAL + WORDS[1], "data_task": "seq2seq",
             "decoder_start_token": "<s>"}  # fmt: skip
    opt = Namespace(
        **{"encoder_type": "brnn", "decoder_type": "rnn", "model_task": "seq2seq", **said}
    )
    path = folder / "model_step_10.pt"
    torch.save({"model": model, "generator": output, "vocab": vocab, "opt": opt, "optim": {}}, path)
    return path


def write_eole(folder: Path, program: Program | Transformer, **said: Any) -> Path:
    old = "embeddings.make_embedding.emb_luts.0"
    held = {
        k.replace(f"encoder.{old}", "src_emb.embeddings").replace(
            f"decoder.{old}", "tgt_emb.embeddings"
        ): v.contiguous()
        for k, v in tensors_of(program).items()
    }
    if getattr(program, "positions", None) is not None:
        for side in ("src", "tgt"):
            held[f"{side}_emb.pe.pe"] = program.positions[:, None].clone()  # type: ignore[union-attr]
    save_file(held, folder / "model.00.safetensors")
    specials = {"pad_token": "<blank>", "eos_token": "</s>", "bos_token": "<s>"}
    vocab = {"src": SPECIAL + WORDS[0], "tgt": SPECIAL + WORDS[1], "decoder_start_token": "<s>",
             "specials": specials}  # fmt: skip
    (folder / "vocab.json").write_text(json.dumps(vocab))
    kind = "transformer" if isinstance(program, Transformer) else "rnn"
    model = {"encoder": {"encoder_type": kind}, "decoder": {"decoder_type": kind}, **said}
    (folder / "config.json").write_text(json.dumps({"model": model}))
    return folder


def write_joeynmt(folder: Path, program: Program | Transformer, text: str) -> Path:
    for side, words in zip(("src", "trg"), WORDS, strict=True):
        (folder / f"{side}_vocab.txt").write_text("\n".join([*JOEY, *words]) + "\n")
    (folder / "config.yaml").write_text(text)
    held = tensors_of(program)
    if isinstance(program, Transformer):
        for side in ("encoder", "decoder"):
            held[f"{side}.pe.pe"] = program.positions[None]
    torch.save({"model_state": held, "optimizer_state": {}}, folder / "200.ckpt")
    torch.save({"model_state": {}}, folder / "30.ckpt")
    return folder


def write_fairseq(folder: Path, program: Program | Transformer, new: bool, **said: Any) -> Path:
    for language, words in zip(("de", "en"), WORDS, strict=True):
        (folder / f"dict.{language}.txt").write_text("".join(f"{w} 9\n" for w in words))
    said = {"source_lang": "de", "target_lang": "en", "arch": "lstm", **said}
    state = {**tensors_of(program), "encoder.version": torch.tensor([3.0])}
    settings = (
        {"args": None, "cfg": {"model": Namespace(**said)}} if new else {"args": Namespace(**said)}
    )
    torch.save({**settings, "model": state}, folder / "checkpoint_best.pt")
    return folder


YAML = """# what a person wrote
name: "small"   # with a comment
data:
    src: {}
model:
    initializer: "xavier_uniform"
    encoder:
        type: "{kind}"
        num_heads: 3
        activation: "{act}"
        layer_norm: "{norm}"
        embeddings:
            embedding_dim: 12
            scale: True
    decoder:
        type: '{kind}'
        num_heads: 3
        init_hidden: {start}
        layer_norm: "{norm}"
        embeddings:
            embedding_dim: 12
            scale: {scale}
""".replace("{}", "")


def yaml(
    kind: str = "recurrent", act: str = "relu", norm: str = "pre", start: str = "bridge"
) -> str:
    scale = kind == "transformer"
    text = YAML.format(kind=kind, act=act, norm=norm, start=start, scale=scale)
    return text if scale else text.replace("scale: True", "scale: False")


def _recurrent_onmt(folder: Path, **how: Any) -> tuple[Subject, Program]:
    program = OpenNMT(**how).draw()
    return regard.opennmt(write_opennmt(folder, program)), program


def _recurrent_eole(folder: Path, **how: Any) -> tuple[Subject, Program]:
    program = OpenNMT(**how).draw()
    return regard.eole(write_eole(folder, program)), program


def _recurrent_joey(folder: Path, **how: Any) -> tuple[Subject, Program]:
    program = JoeyNMT(**how).draw()
    text = yaml(start=how.get("start", "bridge"))
    return regard.joeynmt(write_joeynmt(folder, program, text)), program


def _recurrent_fairseq(folder: Path, new: bool = False, **how: Any) -> tuple[Subject, Program]:
    program = Fairseq(**how).draw()
    return regard.fairseq(write_fairseq(folder, program, new)), program


def _transformer(folder: Path, which: str, pre: bool = True) -> tuple[Subject, Transformer]:
    if which == "opennmt":
        made = Transformer(ONMT, positions=sines(200, 12), readout_bias=True)
        made.tensors["encoder.embeddings.make_embedding.pe.pe"] = made.positions[:, None]
        made.tensors["decoder.embeddings.make_embedding.pe.pe"] = made.positions[:, None]
        path = write_opennmt(folder, made, encoder_type="transformer", decoder_type="transformer",
                             heads=3, pos_ffn_activation_fn="relu", norm_eps=1e-6)  # fmt: skip
        return regard.opennmt(path), made
    if which == "eole":
        made = Transformer(EOLE, positions=sines(200, 12), readout_bias=True, biases=False,
                           activation=functional.silu, epsilon=1e-5)  # fmt: skip
        path = write_eole(folder, made, heads=3, mlp_activation_fn="silu")
        return regard.eole(path), made
    if which == "joeynmt":
        made = Transformer(JOEYS, positions=sines(200, 12), pre=pre, final=pre)
        text = yaml("transformer", norm="pre" if pre else "post")
        return regard.joeynmt(write_joeynmt(folder, made, text)), made
    made = Transformer(FAIRS, positions=sines(200, 12, 2, False), pre=pre, final=pre, epsilon=1e-5,
                       activation=functional.gelu)  # fmt: skip
    path = write_fairseq(folder, made, True, arch="transformer", encoder_attention_heads=3,
                         decoder_attention_heads=3, encoder_normalize_before=pre,
                         decoder_normalize_before=pre, activation_fn="gelu")  # fmt: skip
    return regard.fairseq(path), made


CASES: dict[str, Any] = {
    "opennmt-lstm-general": lambda f: _recurrent_onmt(f),
    "opennmt-gru-mlp-bridge": lambda f: _recurrent_onmt(
        f, kind="GRU", both=False, attention="mlp", bridge=True
    ),
    "opennmt-lstm-dot-bridge": lambda f: _recurrent_onmt(
        f, attention="dot", feed=False, bridge=True
    ),
    "opennmt-lstm-none": lambda f: _recurrent_onmt(f, both=False, attention="none"),
    "eole-lstm-positions": lambda f: _recurrent_eole(f, positions=sines(200, 10)),
    "eole-gru-mlp": lambda f: _recurrent_eole(f, kind="GRU", attention="mlp", both=False),
    "joeynmt-gru-bahdanau": lambda f: _recurrent_joey(f),
    "joeynmt-lstm-luong": lambda f: _recurrent_joey(
        f, kind="LSTM", attention="luong", feed=False, start="last", hidden=12
    ),
    "joeynmt-lstm-zero": lambda f: _recurrent_joey(f, kind="LSTM", start="zero", layers=3),
    "fairseq-lstm": lambda f: _recurrent_fairseq(f),
    "fairseq-lstm-shared": lambda f: _recurrent_fairseq(
        f, new=True, one=10, hidden=10, both=False, shared=True, layers=1
    ),
    "fairseq-lstm-none": lambda f: _recurrent_fairseq(f, attention=False, one=7, output=14),
    "opennmt-transformer": lambda f: _transformer(f, "opennmt"),
    "eole-transformer": lambda f: _transformer(f, "eole"),
    "joeynmt-transformer": lambda f: _transformer(f, "joeynmt"),
    "joeynmt-transformer-post": lambda f: _transformer(f, "joeynmt", pre=False),
    "fairseq-transformer": lambda f: _transformer(f, "fairseq"),
    "fairseq-transformer-post": lambda f: _transformer(f, "fairseq", pre=False),
}
