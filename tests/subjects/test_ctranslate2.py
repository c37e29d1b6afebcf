"""Folders of CTranslate2: read as data, and compared with CTranslate2 itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import RegardError

RNG = np.random.default_rng(0)
SIZE, INNER, WORDS = 16, 32, 20
NAMES = ["<blank>", "<s>", "</s>", "<unk>", *(f"w{i}" for i in range(WORDS - 4))]
PAIRS = [
    (["w1", "w2", "</s>"], ["w3", "w4"]),
    (["w5", "w2", "w7", "w9", "</s>"], ["w3"]),
    ([*(f"w{i % 16}" for i in range(40)), "</s>"], [f"w{i % 15}" for i in range(30)]),
]


def write(folder: Path, quantization: str | None = None, **settings: Any) -> Path:
    """A small random Transformer in a folder, written by CTranslate2."""
    specs = pytest.importorskip("ctranslate2.specs", reason="ctranslate2 is not installed")
    spec = specs.TransformerSpec.from_config(2, 2, **settings)

    def draw(*shape: int, size: float = 0.3) -> np.ndarray:
        return (RNG.normal(size=shape) * size).astype(np.float32)

    def norm(part: Any) -> None:
        part.gamma, part.beta = 1 + draw(SIZE, size=0.1), draw(SIZE, size=0.1)

    def attention(part: Any, rows: tuple[int, ...]) -> None:
        norm(part.layer_norm)
        for linear, count in zip(part.linear, rows, strict=True):
            linear.weight, linear.bias = draw(count * SIZE, SIZE), draw(count * SIZE)

    for side in (spec.encoder, spec.decoder):
        table = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        table.weight = draw(WORDS, SIZE, size=1)
        if hasattr(side, "layer_norm"):
            norm(side.layer_norm)
        for layer in side.layer:
            attention(layer.self_attention, (3, 1))
            if side is spec.decoder:
                attention(layer.attention, (1, 2, 1))
            norm(layer.ffn.layer_norm)
            layer.ffn.linear_0.weight, layer.ffn.linear_0.bias = draw(INNER, SIZE), draw(INNER)
            layer.ffn.linear_1.weight, layer.ffn.linear_1.bias = draw(SIZE, INNER), draw(SIZE)
    spec.decoder.projection.weight = draw(WORDS, SIZE, size=1)
    spec.decoder.projection.bias = draw(WORDS)
    spec.register_source_vocabulary(NAMES)
    spec.register_target_vocabulary(NAMES)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir()
    spec.save(str(folder))
    return folder


@pytest.mark.parametrize("pre_norm", [True, False])
def test_probabilities_are_those_of_ctranslate2(tmp_path: Path, pre_norm: bool) -> None:
    folder = write(tmp_path / "m", pre_norm=pre_norm, no_final_norm=not pre_norm)
    ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    translator = ctranslate2.Translator(str(folder), intra_threads=1)
    wanted = translator.score_batch([s for s, _ in PAIRS], [t for _, t in PAIRS])
    subject = regard.ctranslate2(folder)
    (batch,) = subject.read(PAIRS)
    with torch.no_grad():
        output = subject.decode(subject.encode(batch.source, batch.source_lengths), batch.inputs)
    found = output.logits.log_softmax(-1).gather(2, batch.target[:, :, None])[..., 0]
    for row, scored in enumerate(wanted):
        ours = found[row, : len(scored.log_probs)]
        np.testing.assert_allclose(ours, scored.log_probs, atol=2e-4)


@pytest.mark.parametrize("bits", ["float16", "int8", "int16", "bfloat16"])
def test_few_bits_become_numbers_again(tmp_path: Path, bits: str) -> None:
    global RNG
    logits = []
    for quantization in (None, bits):
        RNG = np.random.default_rng(1)
        subject = regard.ctranslate2(write(tmp_path / str(quantization), quantization))
        (batch,) = subject.read(PAIRS)
        with torch.no_grad():
            memory = subject.encode(batch.source, batch.source_lengths)
            logits.append(subject.decode(memory, batch.inputs).logits)
    assert 0 < (logits[0] - logits[1]).abs().mean() < 0.1


def test_a_folder_goes_to_every_instrument(tmp_path: Path) -> None:
    subject = regard.ctranslate2(write(tmp_path / "m"))
    recording = regard.record(subject, pairs=PAIRS, sites="cross", out=tmp_path / "r.safetensors")
    assert recording.shape("decoder.1.cross.weights") == (3, 2, 31, 41)
    assert recording["decoder.words"][0, :3].tolist() == [1, 7, 8]
    assert recording.inspect("breakdown").estimates() and recording.check()
    assert regard.ablate(subject, pairs=PAIRS).estimates()
    assert regard.record(subject, pairs=[(s, None) for s, _ in PAIRS]).shape("targets")[0] == 3


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"no model\.bin"):
        regard.ctranslate2(tmp_path)
    folder = write(tmp_path / "m")
    data = (folder / "model.bin").read_bytes()
    for cut in (3, 40, len(data) // 2):
        (folder / "model.bin").write_bytes(data[:cut])
        with pytest.raises(RegardError, match="not a whole model"):
            regard.ctranslate2(folder)
    (folder / "model.bin").write_bytes(data)
    (folder / "shared_vocabulary.json").unlink()
    with pytest.raises(RegardError, match="no source_vocabulary"):
        regard.ctranslate2(folder)
