"""What every subject keeps to, whichever door it came through (docs/subjects.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nematus
import numpy as np
import pytest
import torch
from test_ctranslate2 import write
from test_modules import Plain, call
from test_onnx import SITES, two
from test_spelling import KINDS
from test_spelling import write as write_spelling
from written import CASES

import regard
from regard import RegardError
from regard.models.transformer import Transformer, TransformerConfig
from regard.subjects import Subject
from regard.subjects.formats._conditional import ConditionalDecoder
from regard.subjects.formats._recurrent import Recurrent
from regard.subjects.formats.spelling import load_published
from regard.subjects.subject import Native
from regard.tasks import Vocabulary, collate

PAIRS = [([5, 6, 7, 2], [8, 9, 2]), ([5, 2], [8, 9, 4, 6, 2]), ([4, 4, 8, 9, 6, 2], [3, 2])]


def native() -> Subject:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(hidden=8, layers=2, heads=2, feedforward=8), 10, 10)
    vocabulary = Vocabulary.of("abcdefg")

    def read(pairs: Any) -> list[Any]:
        return [collate([s for s, _ in pairs], [t for _, t in pairs])]

    return Native(model.eval(), (vocabulary, vocabulary), read)


RECURRENT = ["opennmt-lstm-general", "opennmt-lstm-dot-bridge", "eole-gru-mlp",
             "joeynmt-gru-bahdanau", "fairseq-lstm"]  # fmt: skip
TRANSFORMERS = [case for case in CASES if case.endswith("-transformer")]
FAMILIES = ["Marian", "T5", "LED"]


@pytest.fixture(
    params=[
        "native",
        "module",
        "ctranslate2",
        *FAMILIES,
        *RECURRENT,
        *TRANSFORMERS,
        "onnx",
        "spelling",
        "s2s-deep",
        "nematus-normed",
    ]
)
def subject(request: Any, tiny: Callable[..., Any], tmp_path: Path) -> Subject:
    if request.param == "native":
        return native()
    if request.param == "module":
        torch.manual_seed(0)
        return regard.module(Plain().eval(), call, readout="out")
    if request.param == "ctranslate2":
        return regard.ctranslate2(write(tmp_path / "m"))
    if request.param in CASES:
        return CASES[request.param](tmp_path)[0]
    if request.param in nematus.CASES:
        program = nematus.Marian(**nematus.CASES[request.param])
        return regard.marian(program.write(tmp_path))
    if request.param == "onnx":
        return regard.onnx(two(tmp_path), sites=SITES)
    if request.param == "spelling":
        return load_published(write_spelling(tmp_path / "m", KINDS[0]))
    return regard.hugging_face(tiny(request.param))


def test_a_subject_keeps_its_contract(subject: Subject, tmp_path: Path) -> None:
    batches = subject.read(PAIRS)
    assert sum(map(len, batches)) == 3
    recording = regard.record(
        subject, pairs=PAIRS, inputs="teacher", out=tmp_path / "r.safetensors"
    )
    crossing = subject.choose_sites("cross")
    assert crossing and crossing == subject.model.crossing_sites()
    assert crossing in (["attention"], ["decoder.0.cross"], ["decoder.0.cross", "decoder.1.cross"])
    assert set(recording.metadata.sites) == set(subject.sites())
    for name in subject.sites():  # scores are products, weights are their softmax, rows add up
        queries, keys = recording[f"{name}.queries"], recording[f"{name}.keys"]
        site = recording.metadata.sites[name]
        both = (recording[f"{site.query_side}.mask"][:, None, :, None]
                & recording[f"{site.key_side}.mask"][:, None, None, :])  # fmt: skip
        scores = queries @ keys.transpose(0, 1, 3, 2)
        if site.score == "additive":
            summed = np.tanh(queries[:, :, :, None] + keys[:, :, None])
            scores = (summed * recording[f"{name}.vector"][None, :, None, None]).sum(-1)
        np.testing.assert_allclose(scores * both, recording[f"{name}.scores"], atol=1e-4)
        assert {f"{name}.{part}" for part in ("queries", "keys", "values")} <= {
            *subject.hook_points()
        }
    assert max(recording.check().values()) < 1e-3
    # Words by their own numbers, the decoder's start word first.
    start = subject.lexicons["decoder"].start
    assert (recording["decoder.words"][:, 0] == start).all()
    assert recording["encoder.words"][1, :2].tolist() == PAIRS[1][0]
    # A sentence alone, and in a padded batch.
    alone = regard.record(subject, pairs=PAIRS[1:2], inputs="teacher", sites="cross")
    for name in ("decoder.states", f"{crossing[-1]}.weights"):
        whole, part = recording[name][1], alone[name][0]
        np.testing.assert_allclose(whole[tuple(map(slice, part.shape))], part, atol=1e-4)
    # The output layer gives the logits, by which the next words are chosen.
    layer = subject.output_layer()
    recurrent = isinstance(subject.model, Recurrent | ConditionalDecoder)
    bends = recurrent and subject.model.readout.activation == "tanh"
    assert (layer is None) == bends
    if layer is not None:
        (batch,) = subject.read(PAIRS)
        with torch.no_grad():
            memory = subject.encode(batch.source, batch.source_lengths)
            output = subject.decode(memory, batch.inputs)
            read = {"state": output.decoder_states}
            if "context" in layer.parts:
                site = output.sites["attention"]
                read["context"] = (site.weights @ site.values)[:, 0]
            seen = torch.cat([read[part] for part in layer.parts], dim=2)
            made = torch.nn.functional.linear(seen, layer.weight, layer.bias)
        mask = batch.target_mask
        np.testing.assert_allclose(made[mask], output.logits[mask], atol=1e-4)
    assert subject.blocks() and repr(subject).startswith("Subject(")


def test_every_instrument_takes_a_subject(subject: Subject) -> None:
    for name in ("breakdown", "entropy", "heads", "layers", "sizes", "trajectories", "saliency"):
        if name == "saliency" and "encoder.embedding" not in subject.hook_points():
            continue
        found = regard.inspect(subject, name, pairs=PAIRS, inputs="teacher")
        assert found.estimates() and found.table().rows and found.figure().panels
    if subject.model.feeds or subject.origin.get("adapter") == "onnx":
        with pytest.raises(RegardError, match=r"fed what it attended|but not changed"):
            regard.ablate(subject, pairs=PAIRS, head=0)
        return
    changed = regard.ablate(subject, pairs=PAIRS, head=0)
    assert 0 <= changed.estimates()["baseline"].mean <= 1
