"""`regard.marian`: models trained with Marian, from `model.npz` and its vocabularies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._fill import Array, Arrays, read_npz
from regard.subjects.formats._marian_recurrent import TYPES, build_recurrent, rename
from regard.subjects.formats._subject import FormatSubject
from regard.subjects.formats._transformer import Layer, PlainTransformer, Shape, Stack
from regard.subjects.lexicon import Lexicon, find_marker

SETTINGS = "special:model.yml"
POSITIONS = 2048
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish"}
# preprocess, postprocess, top: the two ways of normalising that are read.
WAYS = {("", "dan", ""): False, ("n", "da", "n"): True}


def marian(model: str | Path, vocabularies: Sequence[str | Path] | None = None) -> FormatSubject:
    """The model in a `model.npz` of Marian as a subject; nothing in it is run.

    `model` is the file, or the folder that it is in; `vocabularies` are the `.yml` files of source
    and target, by default those beside it, in the order of their names. Transformers, and
    recurrent models of the types `s2s`, `nematus` and `amun`.

    >>> subject = regard.marian("opus/model.npz", ["opus/vocab.yml"])      # doctest: +SKIP
    """
    path = Path(model)
    path = path / "model.npz" if path.is_dir() else path
    arrays = read_npz(path)
    said = read_settings(arrays.pop(SETTINGS, None), path)
    held = Arrays(arrays if said["type"] in ("s2s", "transformer") else rename(arrays), str(path))
    network: Seq2Seq
    with held.building():
        if said["type"] == "transformer":
            network = build(held, said)
            sizes = (network.encoder.shape.words, network.readout.out_features)
        else:
            network = build_recurrent(held, said)
            sizes = (len(network.source_embedding.weight), network.readout.last.out_features)
    report = held.finish(("decoder_c_mask", "decoder_c_tt"))
    files = [Path(v) for v in vocabularies or sorted(path.parent.glob("*vocab*.yml"))]
    if not files:
        raise RegardError(f"There is no vocabulary beside {path}. Give vocabularies=[…].")
    words = [read_vocabulary(file) for file in (files[0], files[-1])]
    for file, names, size in zip((files[0], files[-1]), words, sizes, strict=True):
        if len(names) != size:
            raise RegardError(f"{file} has {len(names)} words, but the model has {size}.")
    source, target = (_lexicon(names) for names in words)
    origin = {"adapter": "marian", "model": str(said.get("type")), "file": path.name}
    return FormatSubject(network, (source, target), origin, report)


def read_settings(held: Array | None, path: Path) -> dict[str, str]:
    """What the model says of itself: lines of `key: value`."""
    if held is None:
        raise RegardError(f"{path} has no '{SETTINGS}', so Marian did not write it.")
    text = held.astype(np.uint8).tobytes().rstrip(b"\0").decode("utf-8", "replace")
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith((" ", "-")))
    said = {key.strip(): value.strip().strip("\"'") for key, _, value in lines}
    if said.get("type") not in ("transformer", *TYPES):
        raise RegardError(
            f"{path} is of the type '{said.get('type')}', which is not known here: only"
            f" transformer, {', '.join(TYPES)}. Give the arrays of a pass to regard.record."
        )
    return said


def build(held: Arrays, said: dict[str, str]) -> PlainTransformer:
    """The model that the arrays are of."""
    names = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    way = tuple(said.get(name, "") for name in names)
    activation = said.get("transformer-ffn-activation", "swish")
    faults = []
    if way not in WAYS:
        faults.append(f"{held.where} normalises as {way}, which is not known here.")
    if activation not in ACTIVATIONS:
        faults.append(f"{held.where} has the activation '{activation}', not known here.")
    if said.get("transformer-decoder-autoreg", "self-attention") != "self-attention":
        faults.append(f"{held.where} has a decoder without self-attention, not known here.")
    if faults:
        raise RegardError(*faults)
    stacks = {}
    for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        table = f"{side}_Wemb" if f"{side}_Wemb" in held else "Wemb"
        words, hidden = held.arrays[table].shape
        shape = Shape(
            words, hidden, held.arrays[f"{side}_l1_ffn_W1"].shape[1], int(said[depth]),
            int(said["transformer-heads"]), WAYS[way], ACTIVATIONS[activation], True, 1e-5,  # type: ignore[index]
            f"{side}_top_ln_scale" in held, f"{side}_emb_ln_scale_pre" in held, side == "decoder",
        )  # fmt: skip
        positions = held.take("Wpos") if "Wpos" in held else place(POSITIONS, hidden)
        stacks[side] = Stack(shape, side, positions)  # type: ignore[arg-type]
        _fill(held, stacks[side], side, table)
    table = "decoder_ff_logit_out_W"
    last = stacks["decoder"]
    readout = nn.Linear(last.shape.hidden, last.shape.words)
    if table in held:
        held.fill(readout.weight, table, turn=True)
    else:
        readout.weight.data.copy_(last.embedding.weight.data)
    held.fill(readout.bias, "decoder_ff_logit_out_b")
    return PlainTransformer(stacks["encoder"], last, readout)


def _fill(held: Arrays, stack: Stack, side: str, table: str) -> None:
    held.fill(stack.embedding.weight, table)
    for norm, name, end in ((stack.final, f"{side}_top", ""), (stack.first, f"{side}_emb", "_pre")):
        if isinstance(norm, nn.LayerNorm):
            _norm(held, norm, name, end)
    for number, layer in enumerate(stack.layers):
        assert isinstance(layer, Layer)
        name = f"{side}_l{number + 1}"
        attentions = [(layer.self_attention, f"{name}_self", 0)]
        if layer.cross_attention is not None:
            attentions.append((layer.cross_attention, f"{name}_context", 1))
        for heads, scope, place_ in attentions:
            for linear, letter in ((heads.query, "q"), (heads.key, "k"), (heads.value, "v"),
                                   (heads.merge, "o")):  # fmt: skip
                held.fill(linear.weight, f"{scope}_W{letter}", turn=True)
                held.fill(linear.bias, f"{scope}_b{letter}")
            _norm(held, layer.norms[place_], f"{scope}_Wo", _end(held, f"{scope}_Wo"))
        for linear, letter in ((layer.inner, "1"), (layer.outer, "2")):
            held.fill(linear.weight, f"{name}_ffn_W{letter}", turn=True)
            held.fill(linear.bias, f"{name}_ffn_b{letter}")
        _norm(held, layer.norms[-1], f"{name}_ffn_ffn", _end(held, f"{name}_ffn_ffn"))


def _end(held: Arrays, name: str) -> str:
    """Norms before a part are named otherwise than those after it."""
    return "_pre" if f"{name}_ln_scale_pre" in held else ""


def _norm(held: Arrays, norm: nn.Module, name: str, end: str) -> None:
    assert isinstance(norm, nn.LayerNorm)
    held.fill(norm.weight, f"{name}_ln_scale{end}")
    held.fill(norm.bias, f"{name}_ln_bias{end}")


def place(count: int, size: int) -> Tensor:
    """Sines, then cosines, of pos / 10000^(2i / size). (count, size)"""
    rates = 10000.0 ** (-2 * torch.arange(size // 2, dtype=torch.float64) / size)
    angles = torch.arange(count)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


def read_vocabulary(path: Path) -> list[str]:
    """Words by their numbers, from lines of `word: number`, quoted where they must be."""
    found: dict[int, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        word, _, place_ = line.rpartition(":")
        if not place_.strip().isdecimal():
            raise RegardError(f"{path}, line {number} is not `word: number`: {line[:60]!r}.")
        if len(word) > 1 and word[0] == word[-1] == '"':
            word = re.sub(r"\\(.)", r"\1", word[1:-1])
        elif len(word) > 1 and word[0] == word[-1] == "'":
            word = word[1:-1].replace("''", "'")
        found[int(place_)] = word
    if sorted(found) != list(range(len(found))):
        raise RegardError(f"{path} leaves out numbers: words are numbered from 0 without gaps.")
    return [found[n] for n in range(len(found))]


def _lexicon(words: list[str]) -> Lexicon:
    """The end is `</s>`; what is fed first has no vector, so any number stands for it."""
    end = words.index("</s>") if "</s>" in words else 0
    return Lexicon(tuple(words), None, end, end, frozenset(), find_marker(words))
