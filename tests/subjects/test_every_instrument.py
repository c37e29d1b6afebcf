"""Every door, every instrument: a result whose numbers mean something, or one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nematus
import numpy as np
import pytest
import test_ctranslate2
import test_marian_npz
import torch
from test_modules import Plain, Tutorial, call
from test_silent_errors import Even
from test_subject_contract import native

import regard
from regard import RegardError
from regard.instruments import INSTRUMENTS
from regard.models import EncoderDecoder
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.subjects import Subject
from regard.subjects.subject import Native
from regard.tasks import Vocabulary, collate

PAIRS = [([5, 6, 7, 2], [8, 9, 2]), ([5, 2], [8, 9, 4, 6, 2]), ([4, 4, 8, 9, 6, 2], [3, 2]),
         ([4, 7, 8, 2], [6, 7, 3, 2])] * 4  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "aer": {"gold": [[(0, 0)]] * len(PAIRS)}, "probe": {"splits": 1, "control": False},
    "groups": {"splits": 1}, "strength": {"splits": 1}, "variance": {"least": 2},
    "clusters": {"least": 2}, "swap": {"donors": "nowhere", "component": "encoder"},
    "cumulative_ablation": {"draws": 1},
}  # fmt: skip
TRANSFORMER = ("native", "module", "ctranslate2", "marian", "Marian", "T5")
# What must work, not be refused, of each kind of subject.
WORKS = {
    **dict.fromkeys(TRANSFORMER, (
        "breakdown", "heads", "layers", "offset", "pull", "attention_entropy", "saliency", "ablate",
        "ablate_heads", "cumulative_ablation", "probe", "groups", "heatmaps", "aer",
        "lexical_probe",
    )),
    "recurrent": ("breakdown", "lexical_probe", "optimal_attention", "strength", "gates", "ablate",
                  "ablate_heads", "connectivity", "dictionary", "saliency"),
    "cells": ("strength", "gates", "connectivity", "polarity", "probe", "heatmaps", "saliency"),
    "amun": ("breakdown", "attention_entropy", "heads", "offset", "gates", "strength", "probe",
             "groups", "heatmaps", "polarity", "connectivity", "saliency", "lexical_probe"),
    "tutorial": ("breakdown", "attention_entropy", "heads", "gates", "strength", "probe"),
}  # fmt: skip


def recurrent() -> Subject:
    torch.manual_seed(0)
    model = EncoderDecoder(EncoderDecoderConfig(hidden=8, attention="dot", readout="both"), 10, 10)
    words = Vocabulary.of("abcdefg")

    def read(pairs: Any) -> list[Any]:
        return [collate([s for s, _ in pairs], [t for _, t in pairs])]

    return Native(model.eval(), (words, words), read)


def tutorial() -> Subject:
    torch.manual_seed(0)
    site = regard.at(q="attention.Wa", k="attention.Ua", vector="attention.Va",
                     weights="attention[1]", lag=1, masked=False)  # fmt: skip
    return regard.module(Tutorial().eval(), sites={"attention": site}, readout="out")


def make(door: str, tiny: Callable[..., Any], folder: Path) -> Subject:
    torch.manual_seed(0)
    makers: dict[str, Callable[[], Subject]] = {
        "native": native, "recurrent": recurrent, "tutorial": tutorial,
        "module": lambda: regard.module(Plain().eval(), call, readout="out"),
        "cells": lambda: regard.module(Even().eval(), readout="out"),
        "ctranslate2": lambda: regard.ctranslate2(test_ctranslate2.write(folder / "c")),
        "marian": lambda: regard.marian(test_marian_npz.write(folder / "m")),
        "amun": lambda: regard.marian(nematus.Marian(**nematus.CASES["amun"]).write(folder / "a")),
    }  # fmt: skip
    return makers[door]() if door in makers else regard.hugging_face(tiny(door))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("door", [*TRANSFORMER, "recurrent", "cells", "tutorial", "amun"])
def test_a_result_or_a_sentence(door: str, tiny: Callable[..., Any], tmp_path: Path) -> None:
    subject = make(door, tiny, tmp_path)
    refused: dict[str, str] = {}
    for name in INSTRUMENTS:
        found = INSTRUMENTS[name]
        given = dict(SETTINGS.get(name, {}))
        if "pairs" in found.accepted:
            given["pairs"] = PAIRS
        try:
            result = regard.inspect(subject, name, **given)
        except RegardError as error:
            refused[name] = str(error)
            continue
        numbers = result.estimates()
        bad = [key for key, value in numbers.items() if not np.isfinite(value.mean)]
        assert numbers and not bad, f"{name}: {bad[:3]}"
        assert result.table().rows and result.figure().panels and result.to_json()
    wrong = {name: refused[name] for name in WORKS[door] if name in refused}
    assert not wrong
    assert all(text.endswith((".", "…", "?")) for text in refused.values())


def own_states(net: Any, source: list[int], target: list[int]) -> Any:
    start = torch.full((1, 1), net.config.decoder_start_token_id)
    fed = torch.cat([start, torch.tensor([target[:-1]])], dim=1)
    with torch.no_grad():
        return net(input_ids=torch.tensor([source]), decoder_input_ids=fed, use_cache=False,
                   output_hidden_states=True)  # fmt: skip


@pytest.mark.parametrize("family", ["Marian", "T5", "LED", "ProphetNet"])
def test_states_of_every_layer_are_the_models_own(tiny: Callable[..., Any], family: str) -> None:
    net = tiny(family)
    recording = regard.record(regard.hugging_face(net), pairs=PAIRS[:4], also=("states",))
    for row, (source, target) in enumerate(PAIRS[:4]):
        own = own_states(net, source, target)
        s, t = len(source), len(target)
        np.testing.assert_allclose(
            recording["encoder.layers.0"][row, :s], own.encoder_hidden_states[1][0, :s], atol=1e-5
        )
        if family != "ProphetNet":
            states = own.decoder_hidden_states[1][0]
            np.testing.assert_allclose(recording["decoder.layers.0"][row, :t], states, atol=1e-5)
    assert recording.axes("decoder.layers.1") == ("sample", "target", "hidden")
    found = recording.inspect("probe", quantity="encoder.layers.1", splits=1, control=False)
    assert found.first.quantity == "encoder.layers.1"


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("batch_first", [True, False])
def test_states_of_every_layer_of_a_module(batch_first: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Plain(batch_first).eval()
    subject = regard.module(net, call, readout="out")
    out = tmp_path / "r.safetensors"
    recording = regard.record(subject, pairs=PAIRS[:4], also=("states",), out=out)
    last = torch.from_numpy(recording["decoder.layers.1"])
    norm = net.body.decoder.norm
    assert norm is not None
    mask = recording["decoder.mask"]
    with torch.no_grad():
        np.testing.assert_allclose(norm(last)[mask], recording["decoder.states"][mask], atol=1e-5)
    with pytest.raises(RegardError, match="no layers whose states"):
        regard.record(regard.module(Even()), pairs=PAIRS, also=("states",))


@pytest.mark.parametrize("family", ["Marian", "LED"])
def test_a_head_taken_out_is_a_head_whose_output_is_not_read(
    tiny: Callable[..., Any], family: str
) -> None:
    """Against the model itself, with the head's columns of the output projection set to zero."""
    subject = regard.hugging_face(tiny(family))
    found = regard.ablate_heads(subject, pairs=PAIRS).first
    curves = regard.cumulative_ablation(subject, pairs=PAIRS, by="loss", draws=1).first
    net = subject.model.net

    def loss() -> float:
        total = words = 0.0
        for source, target in PAIRS:
            logits = own_states(net, source, target).logits[0]
            total += float(-logits.log_softmax(-1)[range(len(target)), target].sum())
            words += len(target)
        return total / words

    base = loss()
    assert found.baseline.loss == pytest.approx(base, abs=1e-5)
    maps = [layer.encoder_attn.out_proj for layer in net.get_decoder().layers]
    for layer, linear in enumerate(maps):
        for head in range(2):
            kept = linear.weight.data.clone()
            linear.weight.data[:, 8 * head : 8 * (head + 1)] = 0
            lost = loss() - base
            linear.weight.data.copy_(kept)
            assert found.cost.rows[f"decoder.{layer}.cross"][head] == pytest.approx(lost, abs=1e-5)
    for linear in maps:
        linear.weight.data.zero_()
    for order in ("in order", "reversed", "at random"):
        assert curves.loss[order][-1] == pytest.approx(loss(), abs=1e-5)
        assert curves.loss[order][0] == pytest.approx(base, abs=1e-5)
    costs = [curves.shares[head] for head in curves.order]
    assert costs == sorted(costs, reverse=True)


def test_components_of_one_head_alone(tiny: Callable[..., Any]) -> None:
    subject = regard.hugging_face(tiny("T5"))
    whole = regard.ablate(subject, pairs=PAIRS, site="decoder.1.cross", head=1)
    for part in ("temporal", "input", "delta"):
        found = regard.ablate_heads(subject, pairs=PAIRS, part=part, where="keys", layer=1).first
        kept = found.baseline.accuracy - found.lost.rows["decoder.1.cross"][1]
        assert kept == pytest.approx(whole.first.accuracy["remove", part, "keys"])
    with pytest.raises(RegardError, match="layer=7 does not fit"):
        regard.ablate_heads(subject, pairs=PAIRS, layer=7)
    with pytest.raises(RegardError, match="no order of heads 'temporal'"):
        regard.cumulative_ablation(subject, pairs=PAIRS, by="temporal")


def test_a_timelapse_goes_over_subjects(tiny: Callable[..., Any]) -> None:
    net = tiny("Marian")
    early = regard.hugging_face(net)
    loaded = []

    def late() -> Subject:
        loaded.append(1)
        return regard.hugging_face(tiny("Marian", init_std=0.5))

    found = regard.timelapse({0: early, 500: late}, "attention_entropy", pairs=PAIRS)
    assert found.updates == [0, 500] and loaded == [1]
    alone = regard.inspect(early, "attention_entropy", pairs=PAIRS).estimates()
    assert found.moments[0].estimates == alone != found.moments[1].estimates
    several = regard.timelapse([{0: early, 1: early}, {0: early}], "heatmaps", block="net.lm_head")
    assert several.updates == [0] and several.n == 2
    assert "update 500" in found.page()
    for wrong, message in (
        ([early, early], "Say which update each subject is of"),
        (early, "no checkpoints of its own"),
        ({}, "no subject to look at"),
        ({"late": early}, "'late' is no update"),
        ({3: 4}, "A int is no subject"),
    ):
        with pytest.raises(RegardError, match=message):
            regard.timelapse(wrong, "attention_entropy", pairs=PAIRS)
    with pytest.raises(RegardError, match="needs something to read"):
        regard.timelapse({1: early}, "breakdown")


def test_strength_of_a_modules_cells_by_hand() -> None:
    torch.manual_seed(0)
    net = Even().eval()
    subject = regard.module(net, readout="out")
    found = regard.strength(subject, pairs=PAIRS, splits=1).first
    ih, hh = (p.detach().numpy() for p in (net.encoder.weight_ih_l0, net.encoder.weight_hh_l0))
    into = np.abs(np.concatenate([ih, hh], 1)).reshape(3, 8, -1).mean((0, 2))
    np.testing.assert_allclose(found.strengths, (into + np.abs(hh).mean(0)) / 2, rtol=1e-5)
    gates = regard.strength(subject, quantity="decoder.gates.0.update", pairs=PAIRS, splits=1)
    assert len(gates.first.strengths) == 8
    assert regard.record(subject, pairs=PAIRS, gates=True).metadata.gates["update"] == "keeps"


def test_heads_are_ranked_by_any_number(tiny: Callable[..., Any]) -> None:
    subject = regard.hugging_face(tiny("T5"))
    recording = regard.record(subject, pairs=PAIRS, also=("saliency",))
    entropy = recording.inspect("attention_entropy").first
    grid = recording.inspect("heads", of="attention_entropy").first.grid.rows
    for site, row in grid.items():
        np.testing.assert_allclose(row, entropy.heads[site])
    one = recording.inspect("attention_entropy", layer=1, head=1).first.values()
    assert {name[1] for name in one} == {"head 1"}  # by its own number
    for of, more in (
        ("breakdown", {"number": "input-input"}), ("offset", {}), ("saliency", {}),
        ("aer", {"settings": {"gold": [[(0, 0)]] * 16}}), ("agreement", {"against": recording}),
    ):  # fmt: skip
        found = recording.inspect("heads", of=of, **more)
        assert len(found.estimates()) == 4 and found.figure().panels
        means = [row[2].mean for row in found.ranked().rows]
        assert means == sorted(means, reverse=True)
    assert set(recording.inspect("heads", of="agreement", against=recording).first.grid.rows[
        "decoder.1.cross"].tolist()) == {1.0}  # fmt: skip
    for settings, message in (
        ({"of": "agreement"}, "give against="), ({"of": "sizes"}, "does not look at one head"),
        ({"number": "nothing"}, "no number 'nothing'"), ({"layer": 9}, "layer=9 does not fit"),
    ):  # fmt: skip
        with pytest.raises(RegardError, match=message):
            recording.inspect("heads", **settings)


@pytest.mark.parametrize("name", ["breakdown", "offset", "pull", "trajectories", "saliency", "aer"])
def test_a_layer_is_the_site_in_it(tiny: Callable[..., Any], name: str) -> None:
    recording = regard.record(regard.hugging_face(tiny("T5")), pairs=PAIRS, also=("saliency",))
    given = {"gold": [[(0, 0)]] * 16} if name == "aer" else {}
    by_layer = recording.inspect(name, layer=0, head=1, **given).estimates()
    assert by_layer == recording.inspect(name, site="decoder.0.cross", head=1, **given).estimates()
    assert by_layer != recording.inspect(name, layer=1, head=1, **given).estimates()
    with pytest.raises(RegardError, match="layer=4 does not fit: there are 0, 1"):
        recording.inspect(name, layer=4, **given)


def test_a_module_that_shows_no_logits_is_not_ablated() -> None:
    class Silent(Plain):
        def forward(self, *args: Any) -> Any:
            return {"said": super().forward(*args)}

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject = regard.module(Silent().eval(), call)
        with pytest.raises(RegardError, match="does not show its logits"):
            regard.ablate(subject, pairs=PAIRS)
