"""All models: recurrent of every wiring, and the Transformer, yield the same kind of output."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.models import CELLS, MODELS, Seq2Seq
from regard.tasks import collate

POSITIONED = {
    "inputs": "one-hot", "one_hot_size": 15, "first_input": "uniform", "positions": "sinusoidal",
    "time_scale": 20.0, "rotation": True, "readout": "context", "readout_bias": False,
}  # fmt: skip

WIRINGS: list[tuple[str, dict[str, Any]]] = [
    *(("encoder-decoder", {"cell": cell}) for cell in CELLS),
    ("encoder-decoder", {"layers": 2}),
    ("encoder-decoder", {"bidirectional": True}),
    ("encoder-decoder", {"bidirectional": True, "layers": 2, "cell": "gru"}),
    ("encoder-decoder", {"attention": "dot"}),
    ("encoder-decoder", {"attention": "dot", "bidirectional": True, "readout_bias": False}),
    ("encoder-decoder", {"inputs": "one-hot", "cell": "ugrnn"}),
    ("encoder-decoder", {"attention": "scaled", "heads": 2, "merge": "concatenate"}),
    ("encoder-decoder", {"attention": "additive", "cell": "gru-renn", "readout": "context"}),
    ("encoder-decoder", {"attention": "bilinear", "initial_state": "trainable", "layers": 2}),
    ("encoder-decoder", {"bidirectional": True, "initial_state": "trainable", "cell": "ugrnn"}),
    ("encoder-decoder", {"positions": "sinusoidal", "rotation": True, "first_input": "uniform"}),
    *(("encoder-decoder", {"attention": "dot", "recurrent": False, "cell": cell, **POSITIONED})
      for cell in CELLS),
    ("transformer", {"hidden": 12, "heads": 3}),
]  # fmt: skip


def build(kind: str, settings: dict[str, Any]) -> Seq2Seq:
    config, model = MODELS[kind]
    return model(config(**{"hidden": 12, **settings}), 9, 10)


@pytest.fixture(params=WIRINGS, ids=lambda w: "-".join([w[0], *map(str, w[1].values())]))
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return build(*request.param)


BATCH = collate([[3, 4, 5, 2], [6, 2], [7, 8, 2]], [[3, 4, 5, 6, 2], [9, 2], [7, 8, 2]])


def test_steps_equal_the_whole(model: Seq2Seq) -> None:
    output = model(BATCH.source, BATCH.source_lengths, BATCH.inputs)
    memory = model.encode(BATCH.source, BATCH.source_lengths)
    state = memory.initial
    for t in range(BATCH.target.shape[1]):
        logits, state = model.step(memory, BATCH.inputs[:, t], state)
        torch.testing.assert_close(logits, output.logits[:, t], atol=1e-5, rtol=1e-5)


def test_trace_equals_the_whole_with_gradients(model: Seq2Seq) -> None:
    grads = []
    for run in (model, model.trace):
        output = run(BATCH.source, BATCH.source_lengths, BATCH.inputs)
        parameters = [p for p in model.parameters() if p.requires_grad]
        grads.append(
            (output.logits, *torch.autograd.grad(output.logits.square().sum(), parameters))
        )
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_gates_are_traced() -> None:
    model = build("encoder-decoder", {"cell": "gru", "bidirectional": True, "layers": 2})
    gates = model.trace(BATCH.source, BATCH.source_lengths, BATCH.inputs).gates
    assert {name.rsplit(".", 1)[0] for name in gates} == {
        "encoder.gates.0.ahead", "encoder.gates.0.back", "encoder.gates.1.ahead",
        "encoder.gates.1.back", "decoder.gates.0", "decoder.gates.1",
    }  # fmt: skip
    assert all(((gate >= 0) & (gate <= 1)).all() for gate in gates.values())


def test_padding_changes_nothing(model: Seq2Seq) -> None:
    output = model(BATCH.source, BATCH.source_lengths, BATCH.inputs)
    for row in range(len(BATCH)):
        alone = BATCH[row : row + 1]
        own = model(alone.source, alone.source_lengths, alone.inputs)
        steps = int(alone.target_lengths)
        torch.testing.assert_close(
            output.logits[row, :steps], own.logits[0, :steps], atol=1e-5, rtol=1e-5
        )
    garbage = BATCH.source.masked_fill(~BATCH.source_mask, 5)
    other = model(garbage, BATCH.source_lengths, BATCH.inputs)
    torch.testing.assert_close(other.logits, output.logits, atol=1e-5, rtol=1e-5)


def test_target_lengths_only_save_work(model: Seq2Seq) -> None:
    memory = model.encode(BATCH.source, BATCH.source_lengths)
    whole = model.decode(memory, BATCH.inputs).logits[BATCH.target_mask]
    short = model.decode(memory, BATCH.inputs, BATCH.target_lengths).logits[BATCH.target_mask]
    torch.testing.assert_close(short, whole, atol=1e-5, rtol=1e-5)


def test_attention_sites_name_where_they_are() -> None:
    recurrent = build("encoder-decoder", {"attention": "dot"})
    output = recurrent(BATCH.source, BATCH.source_lengths, BATCH.inputs)
    assert output.sites["attention"].weights.shape == (3, 1, 5, 4)
    transformer = build("transformer", {"hidden": 12, "heads": 3, "layers": 1})
    sites = transformer(BATCH.source, BATCH.source_lengths, BATCH.inputs).sites
    assert set(sites) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    assert sites["decoder.0.cross"].weights.shape == (3, 3, 5, 4)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert (sites["decoder.0.self"].weights[:, :, future] == 0).all()


def test_the_addition_model_has_the_parameters_it_has() -> None:
    """The source says about 50 thousand (see docs/errata.md)."""
    config, kind = MODELS["encoder-decoder"]
    assert kind(config(cell="lstm", hidden=128, embedding=32), 15, 15).parameter_count == 168_783


def test_padding_embedding_is_zero_and_stays() -> None:
    model = build("encoder-decoder", {})
    lengths = torch.full((3,), BATCH.source.shape[1])  # the padding is read
    model(BATCH.source, lengths, BATCH.inputs).logits.sum().backward()
    weight = model.source_embedding.weight
    assert (weight[0] == 0).all()
    assert (weight.grad[0] == 0).all()
    assert (weight.grad[3] != 0).any()
