"""`regard.ctranslate2`: folders of CTranslate2, read as data."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import nn

from regard.errors import RegardError
from regard.subjects.formats._fill import Array, Arrays
from regard.subjects.formats._subject import FormatSubject
from regard.subjects.formats._transformer import Layer, PlainTransformer, Shape, Stack, sinusoids
from regard.subjects.lexicon import Lexicon, find_marker

KINDS = ("<f4", "<i1", "<i2", "<i4", "<f2", "bfloat16")
ACTIVATIONS = ("relu", "gelu_tanh", "swish", "gelu", "gelu_sigmoid", "tanh", "sigmoid")
VERSIONS = (5, 6)
POSITIONS = 1024
LARGEST = 2**34  # bytes of one array


def ctranslate2(folder: str | Path) -> FormatSubject:
    """The Transformer in a folder of CTranslate2 as a subject; nothing in it is run.

    Weights in 8 or 16 bits become single precision. Models with parts that are not known here
    (relative positions, gates) are refused by name.

    >>> subject = regard.ctranslate2("opus-mt-de-en-ct2")                  # doctest: +SKIP
    """
    folder = Path(folder)
    path = folder / "model.bin"
    if not path.is_file():
        raise RegardError(f"There is no model.bin in {folder}. Name a folder of CTranslate2.")
    name, arrays = read_binary(path)
    if name not in ("TransformerSpec",):
        raise RegardError(f"{path} is a {name}, not an encoder-decoder: a TransformerSpec is read.")
    held = Arrays(arrays, str(path))
    settings = (
        json.loads((folder / "config.json").read_text("utf-8"))
        if (folder / "config.json").is_file()
        else {}
    )
    model = build(held, settings)
    report = held.finish(("alignment_heads", "alignment_layer", "multi_query_attention"))
    source, target = (read_words(folder, side) for side in ("source", "target"))
    lexicons = (_lexicon(source, settings, None), _lexicon(target, settings, "decoder_start_token"))
    origin = {"adapter": "ctranslate2", "model": name, "folder": folder.name}
    return FormatSubject(model, lexicons, origin, report, bool(settings.get("add_source_eos")))


def read_binary(path: Path) -> tuple[str, dict[str, Array]]:
    """The name of the kind of model, and every array by its name."""
    try:
        with path.open("rb") as file:
            version = _number(file, "I")
            if version not in VERSIONS:
                raise ValueError(f"its version is {version}, known are {VERSIONS}")
            name, _revision = _text(file), _number(file, "I")
            read = dict(_array(file) for _ in range(_number(file, "I")))
            arrays = widen(read)  # before a table gets a second name, for its scale has only one
            for _ in range(_number(file, "I")):
                alias, original = _text(file), _text(file)
                if original in arrays or original not in read:  # else it is a scale
                    arrays[alias] = arrays[original]
    except (struct.error, ValueError, KeyError, UnicodeDecodeError, OSError) as error:
        raise RegardError(f"{path} is not a whole model of CTranslate2 ({error}).") from None
    return name, arrays


def _number(file: BinaryIO, kind: str) -> int:
    (value,) = struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))
    return int(value)


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "H")).rstrip(b"\0").decode()


def _array(file: BinaryIO) -> tuple[str, Array]:
    name = _text(file)
    shape = tuple(_number(file, "I") for _ in range(_number(file, "B")))
    kind, size = KINDS[_number(file, "B")], _number(file, "I")
    if size > LARGEST:
        raise ValueError(f"'{name}' has an impossible size")
    data = file.read(size)
    if len(data) != size:
        raise ValueError(f"it ends inside of '{name}'")
    if kind == "bfloat16":
        whole = np.frombuffer(data, "<u2").astype("<u4") << 16
        return name, whole.view("<f4").reshape(shape)
    return name, np.frombuffer(data, kind).reshape(shape)


def widen(arrays: dict[str, Array]) -> dict[str, Array]:
    """Weights of few bits as numbers again: each row divided by its scale."""
    found = {}
    for name, array in arrays.items():
        if name.endswith("_scale") and name.removesuffix("_scale") in arrays:
            continue
        scale = arrays.get(f"{name}_scale")
        if scale is not None and array.dtype.kind == "i":
            found[name] = array.astype(np.float32) / np.reshape(
                scale, (-1, *[1] * (array.ndim - 1))
            )
        elif array.dtype.kind == "i" and name.endswith("/weight"):
            raise ValueError(f"'{name}' holds {array.dtype}, and there is no scale to read it by")
        else:
            found[name] = array
    return found


def build(held: Arrays, settings: dict[str, Any]) -> PlainTransformer:
    """The model that the arrays are of."""
    encoder, decoder = (_stack(held, side, settings) for side in ("encoder", "decoder"))
    rows, columns = held.arrays["decoder/projection/weight"].shape
    readout = nn.Linear(columns, rows, bias="decoder/projection/bias" in held)
    held.fill(readout.weight, "decoder/projection/weight")
    if readout.bias is not None:
        held.fill(readout.bias, "decoder/projection/bias")
    return PlainTransformer(encoder, decoder, readout)


def _stack(held: Arrays, side: str, settings: dict[str, Any]) -> Stack:
    table = next(
        n for n in (f"{side}/embeddings/weight", f"{side}/embeddings_0/weight") if n in held
    )
    words, hidden = held.arrays[table].shape
    layers = sum(
        n.endswith("self_attention/linear_0/weight") and n.startswith(side) for n in held.arrays
    )
    final, first = f"{side}/layer_norm", f"{side}/layernorm_embedding"
    shape = Shape(
        words, hidden, len(held.arrays[f"{side}/layer_0/ffn/linear_0/weight"]), layers,
        int(held.number(f"{side}/num_heads", 8)), bool(held.number(f"{side}/pre_norm", 1)),
        ACTIVATIONS[int(held.number(f"{side}/activation", 0))],
        bool(held.number(f"{side}/scale_embeddings", 1)),
        float(settings.get("layer_norm_epsilon") or 1e-5),
        f"{final}/gamma" in held, f"{first}/gamma" in held,
        bool(held.number(f"{side}/start_from_zero_embedding", 0)),
    )  # fmt: skip
    for flag in ("alibi", "alibi_use_positive_positions", "scale_alibi", "embeddings_merge"):
        value = held.number(f"{side}/{flag}", 0)
        if flag == "alibi" and value:
            raise RegardError(f"{held.where} has ALiBi positions, which are not known here.")
    given = f"{side}/position_encodings/encodings"
    positions = held.take(given) if given in held else sinusoids(POSITIONS, hidden, 1)
    stack = Stack(shape, side, positions)  # type: ignore[arg-type]
    held.fill(stack.embedding.weight, table)
    for name, norm in ((final, stack.final), (first, stack.first)):
        if isinstance(norm, nn.LayerNorm):
            _norm(held, norm, name)
    for number, layer in enumerate(stack.layers):
        assert isinstance(layer, Layer)
        _layer(held, layer, f"{side}/layer_{number}")
    return stack


def _layer(held: Arrays, layer: Layer, name: str) -> None:
    heads = layer.self_attention
    _linear(held, (heads.query, heads.key, heads.value), f"{name}/self_attention/linear_0")
    _linear(held, (heads.merge,), f"{name}/self_attention/linear_1")
    _norm(held, layer.norms[0], f"{name}/self_attention/layer_norm")
    if layer.cross_attention is not None:
        heads = layer.cross_attention
        _linear(held, (heads.query,), f"{name}/attention/linear_0")
        _linear(held, (heads.key, heads.value), f"{name}/attention/linear_1")
        _linear(held, (heads.merge,), f"{name}/attention/linear_2")
        _norm(held, layer.norms[1], f"{name}/attention/layer_norm")
    _linear(held, (layer.inner,), f"{name}/ffn/linear_0")
    _linear(held, (layer.outer,), f"{name}/ffn/linear_1")
    _norm(held, layer.norms[-1], f"{name}/ffn/layer_norm")


def _linear(held: Arrays, maps: tuple[nn.Linear, ...], name: str) -> None:
    """One stacked matrix into the maps that it stacks."""
    weights = held.take(f"{name}/weight").chunk(len(maps))
    bias = f"{name}/bias"
    biases = held.take(bias).chunk(len(maps)) if bias in held else (None,) * len(maps)
    for one, weight, own in zip(maps, weights, biases, strict=True):
        one.weight.data.copy_(weight)
        one.bias.data.copy_(0 * one.bias.data if own is None else own)


def _norm(held: Arrays, norm: nn.Module, name: str) -> None:
    assert isinstance(norm, nn.LayerNorm)
    if f"{name}/gamma" in held and f"{name}/beta" not in held:
        raise RegardError(
            f"{held.where} normalises without a shift ('{name}'), as T5 does. Such models are not"
            " read from CTranslate2: give the one of `transformers` to regard.hugging_face."
        )
    held.fill(norm.weight, f"{name}/gamma")
    held.fill(norm.bias, f"{name}/beta")


def read_words(folder: Path, side: str) -> list[str]:
    """The words of one side, or of both, in the order of their numbers."""
    for stem in (f"{side}_vocabulary", "shared_vocabulary", "vocabulary"):
        if (folder / f"{stem}.json").is_file():
            words = json.loads((folder / f"{stem}.json").read_text("utf-8"))
            return [str(word) for word in words]
        if (folder / f"{stem}.txt").is_file():
            return (folder / f"{stem}.txt").read_text("utf-8").split("\n")[:-1]
    raise RegardError(f"There is no {side}_vocabulary or shared_vocabulary in {folder}.")


def _lexicon(words: list[str], settings: dict[str, Any], start: str | None) -> Lexicon:
    numbers = {word: number for number, word in enumerate(words)}
    end = numbers.get(settings.get("eos_token") or "</s>")
    first = (
        numbers.get(settings.get(start) or settings.get("bos_token") or "<s>") if start else None
    )
    usual = ("<blank>", "<pad>", "<s>", "</s>")
    special = {numbers[word] for word in usual if word in numbers} - {end, first}
    pad = next((numbers[word] for word in ("<blank>", "<pad>") if word in numbers), None)
    return Lexicon(tuple(words), pad, first, end, frozenset(special), find_marker(words))
