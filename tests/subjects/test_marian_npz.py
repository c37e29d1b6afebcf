"""Marian's own files: read as data, and compared with what CTranslate2 makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import RegardError

SIZE, INNER, DEPTH, WORDS = 16, 32, 2, 12
NAMES = ["</s>", "<unk>", "▁a", "b", "▁c:", '▁"', "▁d", "e", "▁f", "g", "▁h", "i"]
PAIRS = [(["▁a", "b", "▁d"], ["▁c:", "e"]), (["▁f"], ["▁h", "i", "▁a", "g"])]
SAID = """type: transformer
enc-depth: 2
dec-depth: 2
transformer-heads: 4
transformer-ffn-activation: swish
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-postprocess-top: ""
transformer-decoder-autoreg: self-attention
transformer-no-projection: false
transformer-guided-alignment-layer: last
"""


def write(folder: Path, said: str = SAID, pre: bool = False) -> Path:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) * 0.3).astype(np.float32)

    end = "_pre" if pre else ""
    arrays = {"Wemb": draw(WORDS, SIZE) * 3, "decoder_ff_logit_out_b": draw(1, WORDS)}
    for side in ("encoder", "decoder"):
        if pre:
            arrays[f"{side}_top_ln_scale"] = 1 + draw(1, SIZE)
            arrays[f"{side}_top_ln_bias"] = draw(1, SIZE)
        for layer in range(1, DEPTH + 1):
            name = f"{side}_l{layer}"
            for part in ("self", "context")[: 1 + (side == "decoder")]:
                for letter in "qkvo":
                    arrays[f"{name}_{part}_W{letter}"] = draw(SIZE, SIZE)
                    arrays[f"{name}_{part}_b{letter}"] = draw(1, SIZE)
                arrays[f"{name}_{part}_Wo_ln_scale{end}"] = 1 + draw(1, SIZE)
                arrays[f"{name}_{part}_Wo_ln_bias{end}"] = draw(1, SIZE)
            arrays |= {f"{name}_ffn_W1": draw(SIZE, INNER), f"{name}_ffn_b1": draw(1, INNER),
                       f"{name}_ffn_W2": draw(INNER, SIZE), f"{name}_ffn_b2": draw(1, SIZE),
                       f"{name}_ffn_ffn_ln_scale{end}": 1 + draw(1, SIZE),
                       f"{name}_ffn_ffn_ln_bias{end}": draw(1, SIZE)}  # fmt: skip
    if pre:
        said = said.replace('preprocess: ""', "preprocess: n").replace('top: ""', "top: n")
        said = said.replace("postprocess: dan", "postprocess: da")
    text = np.frombuffer(said.encode() + b"\0", np.int8)
    folder.mkdir(exist_ok=True)
    np.savez(folder / "model.npz", **arrays, **{"special:model.yml": text})
    quoted = ['"' + n.replace("\\", "\\\\").replace('"', '\\"') + '"' for n in NAMES]
    lines = [f"{name}: {number}" for number, name in enumerate(quoted)]
    (folder / "vocab.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("pre", [False, True])
def test_probabilities_are_those_of_the_converted_model(tmp_path: Path, pre: bool) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
    folder = write(tmp_path / "m", pre=pre)
    files = [str(folder / "vocab.yml")] * 2
    converter = ctranslate2.converters.MarianConverter(str(folder / "model.npz"), files)
    converter.convert(str(tmp_path / "ct2"))
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), intra_threads=1)
    wanted = translator.score_batch([s for s, _ in PAIRS], [t for _, t in PAIRS])
    for subject in (regard.marian(folder), regard.ctranslate2(tmp_path / "ct2")):
        (batch,) = subject.read(PAIRS)
        with torch.no_grad():
            memory = subject.encode(batch.source, batch.source_lengths)
            logits = subject.decode(memory, batch.inputs).logits
        found = logits.log_softmax(-1).gather(2, batch.target[:, :, None])[..., 0]
        for row, scored in enumerate(wanted):
            ours = found[row, : len(scored.log_probs)]
            np.testing.assert_allclose(ours, scored.log_probs, atol=2e-4)


def test_words_and_instruments(tmp_path: Path) -> None:
    subject = regard.marian(write(tmp_path / "m") / "model.npz")
    assert subject.lexicons["encoder"].words[5] == '▁"'
    assert subject.lexicons["encoder"].spell([2, 3, 6, 0]) == ["ab", "d"]
    recording = regard.record(subject, pairs=PAIRS, sites="cross")
    assert recording.check() and recording.inspect("breakdown").estimates()


def test_what_is_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="There is no"):
        regard.marian(tmp_path)
    with pytest.raises(RegardError, match="of the type 'lm-transformer'"):
        regard.marian(write(tmp_path / "a", SAID.replace("type: t", "type: lm-t")))
    with pytest.raises(RegardError, match="normalises as"):
        regard.marian(write(tmp_path / "b", SAID.replace("postprocess: dan", "postprocess: d")))
    folder = write(tmp_path / "c")
    with np.load(folder / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(folder / "model.npz", **arrays, decoder_l1_more=np.zeros(3))
    with pytest.raises(RegardError, match="'decoder_l1_more', which this reader does not know"):
        regard.marian(folder)
    np.savez(folder / "model.npz", **{n: a for n, a in arrays.items() if n != "encoder_l1_ffn_W2"})
    with pytest.raises(RegardError, match="lacks 'encoder_l1_ffn_W2'"):
        regard.marian(folder)
