"""What is recorded besides, against what the model itself does, position by position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard import Recording, RegardError, load_recording, record
from regard.models import Seq2Seq
from regard.models.layers.cells import vectors
from regard.recordings.adapters import model as adapter
from regard.runs import assemble
from regard.tasks import Batch, Task

WORDS = {"vocabulary": 6, "length": 5, "embedding": 6}
SHORT = {"shortest": 2, "longest": 5, "hidden": 6}
# A hidden layer and a shared table; plain dot; heads; labels; words without order; no recurrence.
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "copying": ("copying", "snell-copying", {**WORDS, "hidden": 8}),
    "aed": ("one-to-one", "aed", SHORT),
    "heads": ("one-to-one", "aed", {**SHORT, "attention": "scaled", "heads": 2}),
    "keyword": ("keyword", "snell-classifier", {**WORDS, "hidden": 8}),
    "bag": ("copying", "snell-proxy", WORDS),
    "transformer": ("reversal", "transformer", {"hidden": 8, "heads": 2, "layers": 2}),
    "ved": ("one-to-one", "ved", SHORT),
    "before": ("lookup", "baan", {"hidden": 6, "decoder_embedding": 6}),
}
PROBED = ["copying", "aed", "heads", "keyword", "bag"]


def build(name: str) -> tuple[Seq2Seq, Task]:
    """A model with the weights it starts with, in double precision, and its task."""
    task, preset, settings = MODELS[name]
    config = assemble(task, preset, 0, settings)
    made = config.make_task()
    torch.manual_seed(0)
    return config.make_model(made).double().eval(), made


def recorded(name: str, inputs: str = "own", **options: Any) -> tuple[Seq2Seq, Batch, Recording]:
    model, task = build(name)
    batch = task.fresh(7, seed=1)
    vocabularies = task.source_vocabulary, task.target_vocabulary
    given = {"batches": [batch], "vocabularies": vocabularies, "inputs": inputs, **options}
    return model, batch, record(model, **given)


def fed(recording: Recording) -> Tensor:
    return torch.from_numpy(recording["decoder.words"]).long()


def chances(model: Seq2Seq, batch: Batch, inputs: Tensor, place: int) -> Tensor:
    """log p of every word, were the source word at one place all that can be attended to."""
    memory = model.encode(batch.source, batch.source_lengths)
    alone = torch.zeros_like(memory.mask)
    alone[:, place] = True
    return model.decode(memory._replace(mask=alone), inputs).logits.log_softmax(dim=2)


def pairs(batch: Batch) -> np.ndarray:
    return (batch.target_mask[:, :, None] & batch.source_mask[:, None]).numpy()


def of_targets(every: Tensor, batch: Batch) -> Tensor:
    return every.gather(2, batch.target[:, :, None])[:, :, 0]


# All weight at one position.


@pytest.mark.parametrize("inputs", ["own", "teacher"])
@pytest.mark.parametrize("name", PROBED)
@torch.no_grad()
def test_lexical(name: str, inputs: str) -> None:
    model, batch, recording = recorded(name, inputs, also=("lexical",))
    mask, found = pairs(batch), recording["lexical"]
    assert recording.axes("lexical") == ("sample", "target", "source")
    for place in range(batch.source.shape[1]):
        wanted = of_targets(chances(model, batch, fed(recording), place), batch).numpy()
        seen = mask[:, :, place]
        np.testing.assert_allclose(found[:, :, place][seen], wanted[seen], atol=1e-6)
    assert (found[~mask] == 0).all() and (found[mask] < 0).all()


@torch.no_grad()
def test_proxy() -> None:
    """The same without the bias of the output layer."""
    model, batch, recording = recorded("bag", also=("proxy", "lexical"))
    plain = deepcopy(model)
    bias: Any = plain.readout
    bias.bias.zero_()
    mask = pairs(batch)
    for place in range(batch.source.shape[1]):
        wanted = of_targets(chances(plain, batch, fed(recording), place), batch).numpy()
        seen = mask[:, :, place]
        np.testing.assert_allclose(recording["proxy"][:, :, place][seen], wanted[seen], atol=1e-6)
    assert np.abs(recording["proxy"] - recording["lexical"]).max() > 1e-3


@pytest.mark.parametrize("name", ["keyword", "aed"])
@torch.no_grad()
def test_log_odds(name: str) -> None:
    word = 3
    model, batch, recording = recorded(name, also={"log_odds": {"word": word}})
    mask = pairs(batch)
    assert recording.metadata.also == {"log_odds": {"word": word}}
    for place in range(batch.source.shape[1]):
        p = chances(model, batch, fed(recording), place)[:, :, word].exp()
        seen = mask[:, :, place]
        wanted = (p.log() - (1 - p).log()).numpy()
        np.testing.assert_allclose(
            recording["log_odds"][:, :, place][seen], wanted[seen], atol=1e-5
        )
    assert (recording["log_odds"][~mask] == 0).all()


@torch.no_grad()
def test_log_odds_are_those_of_the_sigmoid() -> None:
    """γ_l = W h_l + b, snell2021, eq. 22."""
    model, batch, recording = recorded("keyword", also={"log_odds": {"word": 3}})
    readout: Any = model.readout
    states = model.encode(batch.source, batch.source_lengths).states
    wanted = states @ readout.weight[0] + readout.bias[0]
    np.testing.assert_allclose(recording["log_odds"][:, 0], wanted.numpy(), atol=1e-6)


@torch.no_grad()
def test_probabilities_near_one_are_told_apart(tmp_path: Path) -> None:
    """1 − p is 1e-17 and less, so that log p is 0 in single precision, and all places would tie."""
    model, task = build("keyword")
    readout: Any = model.readout
    readout.bias.fill_(-45.0)
    file = tmp_path / "sure.safetensors"
    record(model.float(), task=task, n=9, also=("lexical",), out=file)
    recording = load_recording(file)
    sure = recording["lexical"][recording["targets"][:, 0] == 2][:, 0]
    assert recording["lexical"].dtype == np.float64 and len(sure)
    assert (sure < 0).all() and (sure > -1e-15).all()
    assert all(len(np.unique(row)) > 1 for row in sure)
    memory = record(model, task=task, n=9, also=("lexical",))
    np.testing.assert_array_equal(memory["lexical"], recording["lexical"])


# Gradients.


@contextmanager
def scaled(model: Seq2Seq, by: Tensor) -> Iterator[None]:
    """The vector of every source word times a number of its own."""
    point = model.hook_points()["encoder.embedding"]
    hook = point.register_forward_hook(lambda _m, _i, out: out * by[:, :, None])
    yield
    hook.remove()


@torch.no_grad()
def slopes(model: Seq2Seq, batch: Batch, inputs: Tensor, at: float) -> Tensor:
    """∂ log p(y_t) / ∂ w_l by central differences, all words scaled by w = `at`."""
    found = []
    for place in range(batch.source.shape[1]):
        rise = []
        for step in (1e-5, -1e-5):
            by = torch.full(batch.source.shape, at, dtype=torch.float64)
            by[:, place] += step
            with scaled(model, by):
                memory = model.encode(batch.source, batch.source_lengths)
            rise.append(of_targets(model.decode(memory, inputs).logits.log_softmax(dim=2), batch))
        found.append((rise[0] - rise[1]) / 2e-5)
    return torch.stack(found, dim=2)


@pytest.mark.parametrize("inputs", ["own", "teacher"])
@pytest.mark.parametrize("name", ["copying", "keyword", "aed", "transformer", "ved", "before"])
def test_saliency_is_the_slope_and_has_its_sign(name: str, inputs: str) -> None:
    model, batch, recording = recorded(name, inputs, also=("saliency",))
    mask, found = pairs(batch), recording["saliency"]
    wanted = slopes(model, batch, fed(recording), at=1.0).numpy()
    np.testing.assert_allclose(found[mask], wanted[mask], atol=1e-6, rtol=1e-4)
    assert not found[~mask].any() and np.abs(found).max() > 1e-4
    assert recording.metadata.also["saliency"]["finite differences"] < 0.05


@pytest.mark.parametrize("name", ["copying", "keyword"])
def test_integrated_gradients(name: str) -> None:
    """The mean slope on the way from no words to the words, which adds up to what they change."""
    how = {"saliency": {"method": "integrated", "steps": 4}}
    model, batch, recording = recorded(name, also=how)
    mask = pairs(batch)
    ways = [slopes(model, batch, fed(recording), at=(step + 0.5) / 4) for step in range(4)]
    wanted = torch.stack(ways).mean(dim=0).numpy()
    np.testing.assert_allclose(recording["saliency"][mask], wanted[mask], atol=1e-6, rtol=1e-4)
    _, _, fine = recorded(name, also={"saliency": {"method": "integrated", "steps": 64}})
    ends = []
    for at in (1.0, 0.0):
        with torch.no_grad(), scaled(model, torch.full(batch.source.shape, at).double()):
            memory = model.encode(batch.source, batch.source_lengths)
        ends.append(of_targets(model.decode(memory, fed(recording)).logits.log_softmax(2), batch))
    change = (ends[0] - ends[1]).detach().numpy()
    np.testing.assert_allclose(fine["saliency"].sum(axis=2), change, atol=1e-3)
    assert fine.metadata.also["saliency"]["completeness"] < 0.01
    assert fine.metadata.also["saliency"]["steps"] == 64


def test_scaling_leaves_no_trace() -> None:
    """One table serves both sides, but only source words are scaled, and only for the while."""
    model, task = build("copying")
    batch = task.fresh(5, 0)
    given = batch.source, batch.source_lengths, batch.inputs
    before = model(*given).logits
    record(model.train(), task=task, n=5, also=("saliency",))
    assert model.training and not any(p._forward_hooks for p in model.hook_points().values())
    assert torch.equal(model.eval()(*given).logits, before)
    assert all(parameter.grad is None for parameter in model.parameters())


# What passes through the model.


@pytest.mark.parametrize("name", ["aed", "heads", "copying", "keyword", "transformer", "before"])
@torch.no_grad()
def test_values(name: str) -> None:
    model, batch, recording = recorded(name, "teacher", also=("values",))
    points, seen = model.hook_points(), {}
    for site in recording.metadata.sites:
        point = points[f"{site}.values"]
        point.register_forward_hook(lambda _m, _i, out, site=site: seen.update({site: out}))
    output = model(batch.source, batch.source_lengths, batch.inputs)
    assert seen.keys() == output.sites.keys()
    for name, site in recording.metadata.sites.items():
        mask = recording[f"{site.key_side}.mask"][:, None, :, None]
        wanted = seen[name].expand(-1, site.heads, -1, -1).numpy() * mask
        np.testing.assert_allclose(recording[f"{name}.values"], wanted, atol=1e-6)
        assert recording.axes(f"{name}.values") == recording.axes(f"{name}.keys")


@torch.no_grad()
def test_gates() -> None:
    """One step after the other, by the cell's own definition."""
    model, batch, recording = recorded("aed", also=("gates",))
    made: Any = model
    memory = model.encode(batch.source, batch.source_lengths)
    sides = {
        "encoder.gates.0.ahead": (made.encoder.ahead[0], made.source_embedding(batch.source),
                                  made.encoder.starts[0].expand(len(batch), -1), batch.source_mask),
        "decoder.gates.0": (made.decoder[0], made.target_embedding(fed(recording)),
                            memory.initial[0], batch.target_mask),
    }  # fmt: skip
    for name, (cell, x, h, mask) in sides.items():
        for t, word in enumerate(vectors(x).unbind(1)):
            (h,), gates = cell.step(cell.project(word), (h,))
            assert set(gates) == {"reset", "update"}
            for gate, wanted in gates.items():
                found = recording[f"{name}.{gate}"][:, t]
                np.testing.assert_allclose(found, wanted * mask[:, t, None], atol=1e-6)
    also = recorded("aed", gates=True)[2]
    assert also.names() == recording.names() and also.metadata == recording.metadata


# Files, pieces, and some arrays only.

EVERY: dict[str, Any] = {
    "gates": {}, "values": {}, "lexical": {}, "log_odds": {"word": 3},
    "saliency": {"method": "integrated", "steps": 3},
}  # fmt: skip


def test_the_file_equals_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "all.safetensors"
    _, _, memory = recorded("aed", also=EVERY)
    recorded("aed", also=EVERY, out=file)
    read = load_recording(file)
    assert read.names() == memory.names() and read.metadata == memory.metadata
    assert {"lexical", "log_odds", "saliency", "attention.values"} <= set(read.names())
    assert list(read.metadata.also) == list(EVERY)
    for name in read.names():
        assert read[name].dtype == memory[name].dtype
        np.testing.assert_array_equal(read[name], memory[name])
        assert len(read.axes(name)) == read[name].ndim
    assert read["lexical"].dtype == read["log_odds"].dtype == np.float64
    assert read["saliency"].dtype == np.float32


def test_pieces_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, whole = recorded("aed", also=EVERY)
    monkeypatch.setattr(adapter, "PAIRS_AT_ONCE", 2)
    _, _, parts = recorded("aed", also=EVERY)
    for name in whole.names():
        np.testing.assert_allclose(parts[name], whole[name], atol=1e-5, err_msg=name)


def test_only_some_arrays(tmp_path: Path) -> None:
    _, _, whole = recorded("aed", also=EVERY)
    some = recorded("aed", also=EVERY, only=("weights", "lexical", "decoder.gates.0.reset"))[2]
    words = {f"{side}.{what}" for side in ("encoder", "decoder") for what in ("words", "mask")}
    kept = {"attention.weights", "lexical", "decoder.gates.0.reset", "readout"}
    assert set(some.names()) == words | kept
    for name in some.names():
        np.testing.assert_array_equal(some[name], whole[name])
    out = tmp_path / "x.safetensors"
    with pytest.raises(RegardError, match=r"no array to keep 'weigths'\. Did you mean") as caught:
        recorded("aed", only=("weigths", "states", "lexical"), out=out)
    assert len(caught.value.faults) == 2 and not list(tmp_path.iterdir())


def test_names_as_the_command_line_gives_them() -> None:
    _, _, recording = recorded("aed", also="values,lexical")
    assert {"values", "lexical"} == set(recording.metadata.also)
    plain = recorded("aed", also="")[2]
    assert plain.metadata.also == {} and "attention.values" not in plain


# What cannot be.


def never(*_args: Any, **_options: Any) -> None:
    raise AssertionError("nothing should run")


CANNOT: dict[str, list[tuple[str, Any]]] = {
    "no lexical probe": [
        ("ved", ("lexical",)), ("ved", {"log_odds": {"word": 3}}),
        ("transformer", {"log_odds": {"word": 3}}), ("before", {"log_odds": {"word": 3}}),
    ],
    "no bag of words": [("aed", ("proxy",)), ("keyword", ("proxy",))],
    "no attention": [("ved", ("values",))],
    "no array to record besides 'lexicl'. Did you mean 'lexical'": [("aed", ("lexicl",))],
    "no method of saliency 'gradent'. Did you mean 'gradient'": [
        ("aed", {"saliency": {"method": "gradent"}}),
    ],
    "steps=0": [("aed", {"saliency": {"steps": 0}})],
    "no setting of saliency 'step'. Did you mean 'steps'": [("aed", {"saliency": {"step": 3}})],
    "no setting of gates 'word'": [("aed", {"gates": {"word": 3}})],
    "log_odds needs a setting: .*'word'": [("keyword", ("log_odds",))],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "also", "why"),
    [(name, also, why) for why, some in CANNOT.items() for name, also in some],
)
def test_refused_before_anything_runs(
    name: str, also: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in ("encode", "decode", "step"):
        monkeypatch.setattr(type(build(name)[0]), way, never)
    with pytest.raises(RegardError, match=why):
        recorded(name, also=also, out=tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())


def test_all_faults_at_once() -> None:
    with pytest.raises(RegardError) as caught:
        recorded("ved", also=("proxy", "lexical", "values"))
    assert len(caught.value.faults) == 3
    with pytest.raises(RegardError) as caught:
        recorded("aed", also={"gate": {}, "lexical": {"bias": False}, "log_odds": {"wrd": 1}})
    assert len(caught.value.faults) == 4


def test_what_is_seen_only_when_it_runs_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    with pytest.raises(RegardError, match="no gates to record"):
        recorded("transformer", also=("gates",), out=out)
    with pytest.raises(RegardError, match="word=99 does not fit"):
        recorded("keyword", also={"log_odds": {"word": 99}}, out=out)
    assert not list(tmp_path.iterdir())


def test_arrays_and_modules_have_what_they_have() -> None:
    arrays = {"encoder.states": np.zeros((1, 1, 1)), "encoder.words": np.zeros((1, 1), int)}
    for options in ({"also": ("lexical",)}, {"gates": True}, {"only": ("weights",)}):
        with pytest.raises(RegardError, match="but arrays was given"):
            record(arrays, **options)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="no batches were given"):
        record(nn.Linear(1, 1), gates=True)


@torch.no_grad()
def test_one_wrong_slope_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recording says of its own saliency is the largest error, relative to the largest Δ."""
    from regard.recordings.adapters import _saliency

    model, task = build("aed")
    batch = task.fresh(3, seed=1)
    right = _saliency.differentiate(model, batch, batch.inputs)
    assert _saliency.compare_with_differences(model, batch) < 0.01
    wrong = right.clone()
    largest = float(right.abs().max())
    wrong[0, 0, 0] += 3 * largest
    monkeypatch.setattr(_saliency, "differentiate", lambda *about: wrong)
    found = _saliency.compare_with_differences(model, batch)
    assert found == pytest.approx(3 * largest / float(wrong.abs().max()), rel=0.01)
    whole = right.sum(dim=2)
    monkeypatch.setattr(_saliency, "integrate", lambda *about: right)
    ones = torch.ones(batch.source.shape)
    change = _saliency.score_targets(model, batch, batch.inputs, ones)
    change = change - _saliency.score_targets(model, batch, batch.inputs, 0 * ones)
    mask = batch.target_mask
    wanted = (whole - change)[mask].abs().mean() / change[mask].abs().mean()
    assert _saliency.compare_with_sum(model, batch, 4) == pytest.approx(float(wanted), rel=1e-4)


def test_states_of_all_layers_are_those_of_every_piece() -> None:
    config = assemble("reversal", "transformer", 0, {"hidden": 8, "heads": 2, "held_out": 9})
    task = config.make_task()
    model = config.make_model(task)
    batches = [task.fresh(count, seed=count) for count in (4, 3)]
    words = task.source_vocabulary, task.target_vocabulary
    given = {"vocabularies": words, "inputs": "teacher", "also": ("states",)}
    both = record(model, batches=batches, **given)
    one = record(model, batches=batches[1:], **given)
    more = [name for name in both if name not in record(model, batches=batches, vocabularies=words)]
    assert more
    for name in more:
        width = one[name].shape[1] if one[name].ndim > 1 else None
        assert len(both[name]) == 7
        np.testing.assert_allclose(both[name][4:, :width], one[name], atol=1e-6, err_msg=name)


def test_a_path_of_gradients_has_32_steps_unless_told() -> None:
    *_, told = recorded("keyword", also={"saliency": {"method": "integrated", "steps": 32}})
    *_, untold = recorded("keyword", also={"saliency": {"method": "integrated"}})
    *_, other = recorded("keyword", also={"saliency": {"method": "integrated", "steps": 33}})
    assert np.array_equal(told["saliency"], untold["saliency"])
    assert not np.array_equal(told["saliency"], other["saliency"])
