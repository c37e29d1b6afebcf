"""Recordings of what Regard did not make: plain arrays, and modules of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard import RegardError, load_recording, record
from regard.recordings import Site
from regard.tasks import Batch, collate

RNG = np.random.default_rng(0)


def plain(**changes: Any) -> dict[str, Any]:
    arrays = {
        "encoder.states": RNG.normal(size=(4, 5, 8)),
        "encoder.words": RNG.integers(0, 6, size=(4, 5)),
        "decoder.states": RNG.normal(size=(4, 3, 8)),
        "decoder.words": RNG.integers(0, 7, size=(4, 3)),
        **changes,
    }
    return {name: array for name, array in arrays.items() if array is not None}


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


# Arrays.


def test_states_are_queries_and_keys_by_default(tmp_path: Path) -> None:
    arrays = plain()
    recording = record(arrays, out=tmp_path / "a.safetensors")
    assert recording["encoder.mask"].all() and recording["decoder.mask"].all()
    scores = arrays["decoder.states"] @ arrays["encoder.states"].transpose(0, 2, 1)
    np.testing.assert_allclose(recording["scores"], scores[:, None], atol=1e-5)
    np.testing.assert_allclose(recording["weights"], softmax(scores)[:, None], atol=1e-5)
    assert recording.metadata.sites["attention"] == Site(plain=True)
    assert recording.words("encoder") == tuple("012345")
    np.testing.assert_array_equal(load_recording(tmp_path / "a.safetensors")["scores"],
                                  recording["scores"])  # fmt: skip


def test_tensors_words_and_a_readout() -> None:
    arrays = plain(readout=torch.randn(7, 16), **{"readout.bias": np.zeros(7)})
    parts = {"state": (0, 8), "context": (8, 16)}
    recording = record(arrays, source_words="abcdef", target_words="tuvwxyz", readout=parts)
    assert recording.words("encoder") == tuple("abcdef")
    np.testing.assert_array_equal(recording.readout("context"), arrays["readout"][:, 8:])
    whole = record(plain(readout=np.zeros((7, 8))))
    assert whole.readout("state").shape == (7, 8)


@pytest.mark.parametrize(
    ("name", "sides", "layer"),
    [
        ("encoder.1.self", ("encoder", "encoder"), 1),
        ("decoder.2.self", ("decoder", "decoder"), 2),
        ("decoder.3.cross", ("decoder", "encoder"), 3),
        ("looking", ("decoder", "encoder"), 0),
    ],
)
def test_a_name_says_what_an_attention_is(name: str, sides: tuple[str, str], layer: int) -> None:
    long = {"encoder": 5, "decoder": 3}
    queries, keys = (RNG.normal(size=(4, 2, long[side], 6)) for side in sides)
    recording = record(plain(**{f"{name}.queries": queries, f"{name}.keys": keys}))
    site = recording.metadata.sites[name]
    assert ((site.query_side, site.key_side), site.layer, site.heads) == (sides, layer, 2)
    moved = record(
        plain(**{f"{name}.queries": queries, f"{name}.keys": keys}), sites={name: {"layer": 7}}
    )
    assert moved.metadata.sites[name].layer == 7


def test_the_encoder_alone() -> None:
    recording = record(plain(**{"decoder.states": None, "decoder.words": None}))
    assert not recording.metadata.sites and "decoder.words" not in recording


def test_a_model_without_attention() -> None:
    assert not record(plain(), scorer="none").metadata.sites
    with pytest.raises(RegardError, match="scorer='none' means no attention"):
        record(plain(scores=np.zeros((4, 3, 5))), scorer="none")
    narrow = plain(**{"decoder.states": np.zeros((4, 3, 2))})
    assert not record(narrow).metadata.sites


def test_heads() -> None:
    arrays = plain(queries=RNG.normal(size=(4, 2, 3, 6)), keys=RNG.normal(size=(4, 5, 6)))
    recording = record(arrays)
    assert recording.metadata.sites["attention"].heads == 2
    wanted = arrays["queries"] @ arrays["keys"][:, None].transpose(0, 1, 3, 2)
    np.testing.assert_allclose(recording["scores"], wanted, atol=1e-5)
    single = record(plain(queries=arrays["queries"][:, :1], keys=arrays["keys"]))
    assert single.shape("queries") == (4, 1, 3, 6)
    bare = record(plain(queries=arrays["queries"][:, 0], keys=arrays["keys"]))
    np.testing.assert_array_equal(bare["scores"], single["scores"])


@pytest.mark.parametrize("heads", [1, 2])
def test_additive_scores_follow_from_the_vector(heads: int) -> None:
    q, k, v = (RNG.normal(size=(4, heads, n, 6)) for n in (3, 5, 1))
    vector = v[0, :, 0] if heads > 1 else v[0, 0, 0]
    recording = record(plain(queries=q, keys=k, vector=vector), scorer="additive")
    wanted = np.einsum(
        "bhtsf,hf->bhts", np.tanh(q[:, :, :, None] + k[:, :, None]), vector.reshape(heads, 6)
    )
    np.testing.assert_allclose(recording["scores"], wanted, atol=1e-5)
    with pytest.raises(RegardError, match="Scores do not follow"):
        record(plain(queries=q, keys=k), scorer="additive")


def test_nothing_is_left_where_a_mask_is_false() -> None:
    seen = np.arange(5) < np.array([5, 3, 2, 1])[:, None]
    states = np.where(seen[:, :, None], np.ones(2), np.nan)
    arrays = plain(**{"encoder.mask": seen, "alignment": np.ones((4, 3), dtype=int),
                      "decoder.mask": np.ones((4, 3)) * [1, 1, 0],
                      "decoder.states": np.ones((4, 3, 2)), "encoder.states": states,
                      "queries": np.ones((4, 3, 2)), "keys": states})  # fmt: skip
    recording = record(arrays)
    for name in recording.names():
        assert np.isfinite(recording[name]).all(), name
    assert (recording["weights"][2, 0, 0] == [0.5, 0.5, 0, 0, 0]).all()
    assert (recording["weights"][:, 0, 2] == 0).all()
    assert (recording["alignment"] == [1, 1, -1]).all()


def test_all_faults_of_arrays_at_once() -> None:
    wrong = plain(
        **{
            "decoder.words": None,
            "decoder.state": np.zeros(3),
            "encoder.states": np.zeros((4, 5)),
            "encoder.words": np.zeros((4, 6), dtype=int),
            "encoder.gates.0.ahead.reset": np.zeros((4, 7, 8)),
            "gates.x": np.zeros(2),
        }
    )
    with pytest.raises(RegardError) as error:
        record(wrong)
    faults = "\n".join(error.value.faults)
    for part in (
        "The array 'decoder.words' is missing",
        "Unknown array 'decoder.state'",
        "Unknown array 'gates.x'",
        "'encoder.states' has the shape (4, 5), but its axes are",
        "'encoder.gates.0.ahead.reset' has 7 along source, but 'encoder.words' has 6",
    ):
        assert part in faults


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder.states": np.zeros((3, 3, 8))}, "has 4 along sample|has 3 along sample"),
        ({"queries": np.zeros((4, 3, 2))}, "Give both queries and keys"),
        ({"vector": np.zeros(2)}, "Give both queries and keys"),
        ({"queries": np.zeros((4, 3, 2)), "keys": np.zeros((4, 5, 3))}, "3 along features"),
        ({"queries": np.zeros((4, 2, 3, 2)), "keys": np.zeros((4, 3, 5, 2))}, "3 along head"),
        ({"encoder.words": np.zeros((4, 5))}, "whole numbers"),
        ({"decoder.words": -np.ones((4, 3), dtype=int)}, "whole numbers"),
    ],
)
def test_arrays_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        record(plain(**changes))


def test_too_few_words() -> None:
    arrays = plain(**{"encoder.words": np.full((4, 5), 6)})
    with pytest.raises(
        RegardError, match=r"There are 2 words, but 'encoder.words' has the number 6"
    ):
        record(arrays, source_words="ab")


# Modules.

BATCHES = [
    collate([[3, 4, 5, 2], [6, 2], [7, 8, 2]], [[3, 4, 5, 6, 2], [9, 2], [7, 8, 2]]),
    collate([[3, 2], [4, 2]], [[5, 2], [6, 2]]),
]


class BatchFirst(nn.Module):
    """Whole sequences at once, with dot-product attention."""

    time_first = False

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        first = not self.time_first
        self.encoder = nn.GRU(8, 8, batch_first=first)
        self.decoder = nn.GRU(8, 8, batch_first=first)
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(16, 10)
        self.unused = nn.Linear(1, 1)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        keys, h = self.encoder(self.embed(source))
        states, _ = self.decoder(self.embed(inputs), h)
        if self.time_first:
            keys, states = keys.transpose(0, 1), states.transpose(0, 1)
        weights = torch.softmax(self.query(states) @ self.key(keys).transpose(1, 2), dim=-1)
        return self.head(torch.cat([states, weights @ keys], dim=2))


class TimeFirst(BatchFirst):
    time_first = True


class Stepping(BatchFirst):
    """The same, with cells that are called once for every word."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.GRUCell(8, 8), nn.GRUCell(8, 8)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        h = torch.zeros(len(source), 8)
        keys, logits = [], []
        for words in source.unbind(1):
            h = self.encoder(self.embed(words), h)
            keys.append(h)
        memory = torch.stack(keys, dim=1)
        answers = self.key(memory).transpose(1, 2)
        for words in inputs.unbind(1):
            h = self.decoder(self.embed(words), h)
            weights = torch.softmax(self.query(h[:, None]) @ answers, dim=-1)
            logits.append(self.head(torch.cat([h, (weights @ memory)[:, 0]], dim=1)))
        return torch.stack(logits, dim=1)


class StepByLayer(BatchFirst):
    """A layer that is run for one step at a time, time first."""

    time_first = True

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        keys, h = self.encoder(self.embed(source))
        for words in inputs.unbind(0):
            states, h = self.decoder(self.embed(words)[None], h)
            self.query(states.transpose(0, 1))
        self.key(keys.transpose(0, 1))
        return states


AT = {
    "encoder.states": "encoder", "decoder.states": "decoder", "queries": "query", "keys": "key",
    "logits": "head",
}  # fmt: skip
TURNED = ("encoder.states", "decoder.states")  # in the second batch the lengths cannot tell
WITHOUT = {name: where for name, where in AT.items() if name != "logits"}


def turned(module: nn.Module, batch: Batch) -> Tensor:
    """How a time-first module is called."""
    result: Tensor = module(batch.source.T, batch.inputs.T)
    return result


def same_weights(kind: type[BatchFirst]) -> BatchFirst:
    """All kinds with the same numbers in them."""
    torch.manual_seed(0)
    first, module = BatchFirst(), kind()
    values = list(first.state_dict().values())
    names = list(module.state_dict())
    module.load_state_dict(dict(zip(names, values, strict=True)))
    return module


@pytest.mark.parametrize("kind", [BatchFirst, Stepping, TimeFirst, StepByLayer])
def test_modules_of_all_kinds_give_one_recording(kind: type[BatchFirst]) -> None:
    options: dict[str, Any] = {"call": turned, "time_first": TURNED} if kind.time_first else {}
    at = WITHOUT if kind is StepByLayer else AT
    module = same_weights(kind).train()
    recording = record(module, at=at, batches=BATCHES, **options)
    wanted = record(same_weights(BatchFirst), at=at, batches=BATCHES)
    assert module.training and not module.encoder._forward_hooks
    assert recording.shape("encoder.states") == (5, 4, 8)
    assert recording.shape("scores") == (5, 1, 5, 4)
    assert set(recording.names()) >= {*wanted.names()} - {"predictions"}
    for name in {*wanted.names()} & {*recording.names()}:
        np.testing.assert_allclose(recording[name], wanted[name], atol=1e-5, err_msg=name)


def test_what_a_module_did_is_what_is_recorded() -> None:
    module = same_weights(BatchFirst)
    parts = {"state": (0, 8), "context": (8, 16)}
    recording = record(module, at=AT, batches=BATCHES, readout=module.head, readout_parts=parts)
    with torch.no_grad():
        states, _ = module.encoder(module.embed(BATCHES[0].source))
        logits = module(BATCHES[0].source, BATCHES[0].inputs)
    there = BATCHES[0].source_mask.numpy()
    np.testing.assert_allclose(recording["encoder.states"][:3][there], states.numpy()[there])
    assert (recording["encoder.states"][:3][~there] == 0).all()
    words = BATCHES[0].target_mask.numpy()
    np.testing.assert_array_equal(recording["predictions"][:3][words], logits.argmax(-1)[words])
    assert recording.readout("context").shape == (10, 8)
    assert recording.metadata.origin["module"] == "BatchFirst"
    assert recording["decoder.words"][0].tolist() == [1, 3, 4, 5, 6]


def test_batch_and_time_of_one_length_need_to_be_told() -> None:
    square = [collate([[3, 4], [5, 2]], [[3, 2], [4, 2]])]
    module = same_weights(TimeFirst)
    told = record(module, at=AT, batches=square, call=turned, time_first=TURNED)
    wanted = record(same_weights(BatchFirst), at=AT, batches=square)
    np.testing.assert_allclose(told["encoder.states"], wanted["encoder.states"], atol=1e-6)


class Packed(nn.Module):
    """Packed sequences, as `torch.nn` wants them, and weights that attention puts out itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.encoder = nn.LSTM(8, 8, batch_first=True)
        self.decoder = nn.LSTM(8, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def run(self, batch: Batch) -> None:
        packed = pack_padded_sequence(
            self.embed(batch.source), batch.source_lengths, batch_first=True, enforce_sorted=False
        )
        memory, state = self.encoder(packed)
        memory, _ = pad_packed_sequence(memory, batch_first=True)
        states, _ = self.decoder(self.embed(batch.inputs), state)
        self.attention(states, memory, memory, ~batch.source_mask, average_attn_weights=True)


def test_packed_sequences_and_second_outputs() -> None:
    module = Packed()
    at = {"encoder.states": "encoder", "decoder.states": "decoder", "weights": "attention[1]"}
    recording = record(module, at=at, batches=BATCHES, call=lambda m, batch: m.run(batch))
    np.testing.assert_allclose(
        recording["weights"][:, 0].sum(axis=2), recording["decoder.mask"], atol=1e-5
    )
    assert recording.shape("weights") == (5, 1, 5, 4)
    with pytest.raises(RegardError, match="off what queries and keys give"):
        record(module, at={**at, "queries": "decoder", "keys": "encoder"}, batches=BATCHES,
               call=lambda m, batch: m.run(batch))  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "call", "message"),
    [
        ({"encoder.states": "encodr"}, None, r"no submodule 'encodr'\. Did you mean 'encoder'"),
        ({"keys": "unused"}, None, r"'unused' \(for 'attention.keys'\) was not called"),
        ({"encoder.states": "encoder[1]"}, None, r"puts out \(1, 6, 8\), which does not fit"),
        ({"decoder.states": "encoder"}, None, r"fit this batch \(batch 6, source 4, target 5"),
        ({"encoder.states": "encoder[2]"}, None, "puts out 2 things"),
        ({"encoder.states": "encoder[last]"}, None, r"Write 'encoder' or 'encoder\[1\]'"),
        ({"decoder.state": "decoder"}, None, r"Unknown array 'decoder\.state'"),
        ({}, lambda module, batch: None, "was not called"),
        ({}, lambda module, batch: module(batch.source, batch.inputs[:, :2]), "which does not fit"),
    ],
)
def test_failures_of_modules_say_what_to_do(
    changes: dict[str, str], call: Callable[..., Any] | None, message: str
) -> None:
    module = same_weights(BatchFirst)
    options = {} if call is None else {"call": call}
    with pytest.raises(RegardError, match=message):
        record(module, at={**AT, **changes}, batches=BATCHES, **options)
    assert not module.encoder._forward_hooks


class Dictionary(nn.Module):
    def forward(self, source: Tensor, inputs: Tensor) -> dict[str, Tensor]:
        return {"states": source}


WORDS = [str(n) for n in range(10)]


def test_no_batches_no_places_no_tensors() -> None:
    module = same_weights(BatchFirst)
    with pytest.raises(RegardError, match="no batches were given"):
        record(module, at=AT)
    assert not record(module, batches=BATCHES).metadata.sites  # nothing is invented
    with pytest.raises(RegardError, match=r"puts out states\. Name one"):
        record(nn.Sequential(Dictionary()), at={"encoder.states": "0"}, batches=BATCHES,
               source_words=WORDS, target_words=WORDS,
               call=lambda m, b: m[0](b.source, b.inputs))  # fmt: skip
