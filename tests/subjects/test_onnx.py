"""ONNX graphs: tensors named by hand, held against numpy and against onnxruntime alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import RegardError

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

SIZE, WORDS, HEADS = 8, 20, 2
RNG = np.random.default_rng(0)
HELD = {
    name: (RNG.normal(size=shape) * 0.5).astype(np.float32)
    for name, shape in {
        "source_table": (WORDS, SIZE), "target_table": (WORDS, SIZE), "wq": (SIZE, SIZE),
        "wk": (SIZE, SIZE), "wv": (SIZE, SIZE), "wo": (SIZE, WORDS), "bo": (WORDS,),
        "wx": (SIZE, SIZE), "wh": (SIZE, SIZE),
    }.items()
}  # fmt: skip
PAIRS = [([5, 6, 7, 2], [8, 9, 2]), ([5, 2], [8, 9, 4, 6, 2]), ([4, 4, 8, 9, 6, 2], [3, 2])]
SITES = {"decoder.0.cross": regard.at("q", "k", "v", heads=HEADS, scale=(SIZE // HEADS) ** -0.5,
                                      weights="looked/Softmax.0")}  # fmt: skip


def node(kind: str, inputs: list[str], output: str, **said: Any) -> Any:
    return onnx.helper.make_node(kind, inputs, [output], **said)


def put(
    path: Path, nodes: list[Any], inputs: dict[str, tuple[str, int]], outputs: list[str]
) -> Path:
    """A graph in a file, with the arrays that its nodes use."""
    kinds = {"int": onnx.TensorProto.INT64, "float": onnx.TensorProto.FLOAT}
    used = {name for one in nodes for name in one.input}
    constants = {**HELD, "heads": np.array([0, 0, HEADS, SIZE // HEADS]),
                 "flat": np.array([0, 0, SIZE]), "one": np.array([1]), "two": np.array([2]),
                 "root": np.float32((SIZE // HEADS) ** -0.5),
                 "far": np.float32(1e9), "unit": np.float32(1)}  # fmt: skip
    tell = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "small",
        [tell(n, kinds[k], [None] * r) for n, (k, r) in inputs.items()],
        [tell(n, kinds["float"], None) for n in outputs],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items() if n in used],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


def read_source(mask: str) -> list[Any]:
    return [node("Gather", ["source_table", "input_ids"], "states"), *hide(mask)]


def hide(mask: str) -> list[Any]:
    """−1e9 where there is no word: (batch, 1, 1, source)"""
    return [
        node("Cast", [mask], "there", to=1), node("Sub", ["there", "unit"], "less"),
        node("Mul", ["less", "far"], "hidden_flat"),
        node("Unsqueeze", ["hidden_flat", "one"], "hid"),
        node("Unsqueeze", ["hid", "one"], "hidden"),
    ]  # fmt: skip


def look(memory: str) -> list[Any]:
    parts = []
    for name, what in (("q", "asks"), ("k", memory), ("v", memory)):
        parts += [
            node("MatMul", [what, f"w{name}"], name), node("Reshape", [name, "heads"], f"{name}4"),
            node("Transpose", [f"{name}4"], f"{name}t", perm=[0, 2, 1, 3]),
        ]  # fmt: skip
    return [
        *parts, node("Transpose", ["kt"], "kr", perm=[0, 1, 3, 2]),
        node("MatMul", ["qt", "kr"], "raw"), node("Mul", ["raw", "root"], "scaled"),
        node("Add", ["scaled", "hidden"], "masked"),
        node("Softmax", ["masked"], "looked/Softmax.0", axis=-1),
        node("MatMul", ["looked/Softmax.0", "vt"], "mixed"),
        node("Transpose", ["mixed"], "back", perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "flat"], "context"), node("Add", ["context", "asks"], "top"),
        node("MatMul", ["top", "wo"], "product"), node("Add", ["product", "bo"], "logits"),
    ]  # fmt: skip


def whole(path: Path) -> Path:
    """Encoder and decoder in one file."""
    nodes = [*read_source("attention_mask"),
             node("Gather", ["target_table", "decoder_input_ids"], "asks"),
             *look("states")]  # fmt: skip
    inputs = dict.fromkeys(("input_ids", "attention_mask", "decoder_input_ids"), ("int", 2))
    return put(path, nodes, inputs, ["logits"])


def two(folder: Path) -> Path:
    """Two files, as exporters write them."""
    put(folder / "encoder_model.onnx", [node("Gather", ["source_table", "input_ids"], "seen")],
        {"input_ids": ("int", 2)}, ["seen"])  # fmt: skip
    nodes = [*hide("encoder_attention_mask"), node("Gather", ["target_table", "input_ids"], "asks"),
             *look("encoder_hidden_states")]  # fmt: skip
    inputs = {"encoder_attention_mask": ("int", 2), "input_ids": ("int", 2),
              "encoder_hidden_states": ("float", 3)}  # fmt: skip
    put(folder / "decoder_model.onnx", nodes, inputs, ["logits"])
    return folder


def steps(folder: Path) -> tuple[Path, Path]:
    """A recurrent decoder that makes one step, h' = tanh(x Wx + h Wh), and then attends."""
    nodes = [node("Gather", ["source_table", "input_ids"], "seen"),
             node("ReduceMean", ["seen"], "last", axes=[1], keepdims=0)]  # fmt: skip
    first = put(folder / "e.onnx", nodes, {"input_ids": ("int", 2)}, ["seen", "last"])
    nodes = [
        node("Gather", ["target_table", "word"], "x"), node("MatMul", ["x", "wx"], "a"),
        node("MatMul", ["h", "wh"], "b"), node("Add", ["a", "b"], "c"), node("Tanh", ["c"], "new"),
        node("Unsqueeze", ["new", "one"], "asks"), *hide("mask"), *look("memory"),
    ]  # fmt: skip
    inputs = {"word": ("int", 1), "h": ("float", 2), "memory": ("float", 3), "mask": ("int", 2)}
    return first, put(folder / "d.onnx", nodes, inputs, ["logits", "new"])


def by_hand(source: list[int], fed: list[int], recurrent: bool = False) -> tuple[Any, Any]:
    """Logits (target, words) and weights (head, target, source), in numpy."""
    memory, asks = HELD["source_table"][source], HELD["target_table"][fed]
    if recurrent:
        h, states = memory.mean(0), []
        for x in asks:
            h = np.tanh(x @ HELD["wx"] + h @ HELD["wh"])
            states.append(h)
        asks = np.stack(states)
    size, weights, mixed = SIZE // HEADS, [], []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (x @ HELD[w][:, part] for x, w in ((asks, "wq"), (memory, "wk"), (memory, "wv")))
        raw = np.exp(q @ k.T / np.sqrt(size))
        weights.append(raw / raw.sum(1, keepdims=True))
        mixed.append(weights[-1] @ v)
    top = np.concatenate(mixed, axis=1) + asks
    return top @ HELD["wo"] + HELD["bo"], np.stack(weights)


def check(subject: Any, recurrent: bool = False) -> None:
    recording = regard.record(subject, pairs=PAIRS)
    for row, (source, target) in enumerate(PAIRS):
        fed = [subject.lexicons["decoder"].start, *target[:-1]]
        logits, weights = by_hand(source, fed, recurrent)
        found = recording["decoder.0.cross.weights"][row][:, : len(fed), : len(source)]
        np.testing.assert_allclose(found, weights, atol=1e-5)
        assert recording["predictions"][row, : len(fed)].tolist() == logits.argmax(1).tolist()
        states = recording["decoder.states"][row, : len(fed)]
        made = states @ recording.readout("state").T + recording["readout.bias"]
        np.testing.assert_allclose(made, logits, atol=1e-5)
    assert max(recording.check().values()) < 1e-5
    assert recording.inspect("breakdown", site="decoder.0.cross").estimates()


def test_one_file(tmp_path: Path) -> None:
    path = whole(tmp_path / "m.onnx")
    subject = regard.onnx(path, sites=SITES, places={"encoder.states": "states"})
    assert [len(lexicon) for lexicon in subject.lexicons.values()] == [WORDS, WORDS]
    check(subject)
    # The graph as it was, run by onnxruntime alone, says the same.
    (batch,) = subject.read(PAIRS)
    with torch.no_grad():
        ours = subject.decode(subject.encode(batch.source, batch.source_lengths), batch.inputs)
    wide = batch.source.shape[1]
    there = np.arange(wide) < batch.source_lengths.numpy()[:, None]
    fed = {"input_ids": batch.source.numpy(), "attention_mask": there.astype(np.int64),
           "decoder_input_ids": batch.inputs.numpy()}  # fmt: skip
    (theirs,) = runtime.InferenceSession(str(path)).run(["logits"], fed)
    np.testing.assert_allclose(ours.logits, theirs, atol=1e-5)
    assert subject.parity["a sentence alone and padded"] < 1e-5


def test_two_files(tmp_path: Path) -> None:
    check(regard.onnx(two(tmp_path), sites=SITES))


def test_a_decoder_that_makes_one_step(tmp_path: Path) -> None:
    files = steps(tmp_path)
    subject = regard.onnx(
        *files, sites=SITES, places={"logits": "logits"}, carry={"h": "new"},
        inputs={"word": "fed", "h": "last", "memory": "seen", "mask": "mask"},
    )  # fmt: skip
    assert not subject.pads and "none is padded" in subject.parity["padding"]  # of the mean
    check(subject, recurrent=True)


def test_weights_alone_and_no_mask(tmp_path: Path) -> None:
    """A graph that knows no padding is given sentences of one length at a time."""
    nodes = [node("Gather", ["source_table", "src"], "states"),
             node("Gather", ["target_table", "tgt"], "asks"),
             node("Mul", ["states", "unit"], "same"),
             node("ReduceSum", ["same", "two"], "sums", keepdims=0),
             node("Sub", ["sums", "sums"], "flat_zero"),
             node("Unsqueeze", ["flat_zero", "one"], "hid"),
             node("Unsqueeze", ["hid", "one"], "hidden"), *look("states")]  # fmt: skip
    path = put(tmp_path / "m.onnx", nodes, {"src": ("int", 2), "tgt": ("int", 2)}, ["logits"])
    sites = {"decoder.0.cross": regard.at(weights="looked/Softmax.0", heads=HEADS)}
    subject = regard.onnx(path, sites=sites, places={"encoder.states": "states"})
    assert not subject.pads and [len(batch) for batch in subject.read(PAIRS)] == [1, 1, 1]
    recording = regard.record(subject, pairs=PAIRS, only=None)
    _, weights = by_hand(PAIRS[1][0], [1, 8, 9, 4, 6])
    found = recording["decoder.0.cross.weights"][1][:, :5, :2]
    np.testing.assert_allclose(found, weights, atol=1e-5)
    assert "decoder.0.cross.queries" not in recording
    assert recording.inspect("entropy").estimates()


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="There is no"):
        regard.onnx(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"nothing")
    with pytest.raises(RegardError, match=r"not an ONNX file|cannot run"):
        regard.onnx(tmp_path / "bad.onnx")
    (tmp_path / "bad.onnx").unlink()
    path = whole(tmp_path / "m.onnx")
    with pytest.raises(RegardError, match="no tensor in the graph 'nowhere'"):
        regard.onnx(path, sites={"decoder.0.cross": regard.at(weights="nowhere")})
    with pytest.raises(RegardError, match=r"has an input 'input_ids'.*one of source, lengths"):
        regard.onnx(path, sites=SITES, inputs={"input_ids": "sentence"})
    wrong = {"decoder.0.cross": regard.at("q", "k", "v", heads=HEADS, weights="looked/Softmax.0")}
    subject = regard.onnx(path, sites=wrong, places={"encoder.states": "states"})
    with pytest.raises(RegardError, match="weights"):
        regard.record(subject, pairs=PAIRS).check()
    subject = regard.onnx(path, sites=SITES, places={"encoder.states": "states"})
    with pytest.raises(RegardError, match="can be looked at, but not changed"):
        regard.ablate(subject, pairs=PAIRS, site="decoder.0.cross")
    with pytest.raises(RegardError, match="no embedding of source words to take a gradient"):
        regard.saliency(subject, pairs=PAIRS)


@pytest.mark.parametrize("name", ["past_key_values.0.decoder.key", "use_cache_branch"])
def test_a_decoder_that_keeps_a_past_is_refused(name: str, tmp_path: Path) -> None:
    nodes = [*read_source("attention_mask"),
             node("Gather", ["target_table", "decoder_input_ids"], "asks"), *look("states"),
             node("Identity", [name], "present")]  # fmt: skip
    inputs = dict.fromkeys(("input_ids", "attention_mask", "decoder_input_ids"), ("int", 2))
    path = put(tmp_path / "m.onnx", nodes, {**inputs, name: ("float", 4)}, ["logits", "present"])
    with pytest.raises(RegardError, match=f"keeps a past: it has 1 inputs such as '{name}'"):
        regard.onnx(path, sites=SITES)
