"""Models of `transformers`: what is recorded is what they do, in every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import RegardError

FAMILIES = ["Marian", "Bart", "MBart", "M2M100", "Pegasus", "Blenderbot", "T5", "MT5", "UMT5",
            "ProphetNet", "LED"]  # fmt: skip
PAIRS: list[tuple[list[int], list[int]]] = [
    ([5, 6, 7, 2], [8, 9, 2]),
    ([5, 2], [8, 9, 10, 11, 2]),
    ([*range(5, 55), 2], [*range(20, 58), 2]),
]


def own_outputs(net: Any, pair: tuple[list[int], list[int]]) -> Any:
    """One sentence through the model itself, alone, with eager attention."""
    source, target = (torch.tensor([one]) for one in pair)
    start = torch.full((1, 1), net.config.decoder_start_token_id)
    before = net.config._attn_implementation
    for module in net.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = "eager"
    with torch.no_grad():
        out = net(input_ids=source, decoder_input_ids=torch.cat([start, target[:, :-1]], 1),
                  use_cache=False, output_attentions=True, output_hidden_states=True)  # fmt: skip
    for module in net.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = before
    return out


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_states_and_words_are_the_models_own(
    tiny: Callable[..., Any], family: str, tmp_path: Path
) -> None:
    net = tiny(family)
    subject = regard.hugging_face(net)
    recording = regard.record(subject, pairs=PAIRS, out=tmp_path / "r.safetensors")
    assert recording.axes("decoder.1.cross.weights") == ("sample", "head", "target", "source")
    for row, (source, target) in enumerate(PAIRS):
        s, t = len(source), len(target)
        out = own_outputs(net, (source, target))
        for layer in range(2):
            weights = out.cross_attentions[layer]
            if family == "ProphetNet":  # scores of three streams; the second is the next word's
                weights = weights[:, :, t : 2 * t].softmax(-1)
            ours = recording[f"decoder.{layer}.cross.weights"][row, :, :t, :s]
            np.testing.assert_allclose(ours, weights[0, :, :, :s], atol=1e-5)
        if family != "ProphetNet":
            np.testing.assert_allclose(
                recording["decoder.states"][row, :t], out.decoder_hidden_states[-1][0], atol=1e-5
            )
            ours = recording["decoder.1.self.weights"][row, :, :t, :t]
            np.testing.assert_allclose(ours, out.decoder_attentions[1][0], atol=1e-5)
        logits = recording["decoder.states"][row, :t] @ recording["readout"].T
        if "readout.bias" in recording:
            logits = logits + recording["readout.bias"]
        np.testing.assert_allclose(logits, out.logits[0], atol=1e-4)
        assert recording["decoder.words"][row, 0] == net.config.decoder_start_token_id
        assert recording["encoder.words"][row, :s].tolist() == source
    assert recording.metadata.origin["parity"]["attentions compared"] >= 4
    assert recording.inspect("breakdown", top=3).estimates()


@pytest.mark.parametrize("family", ["Marian", "T5"])
def test_scores_bias_and_weights_belong_together(tiny: Callable[..., Any], family: str) -> None:
    recording = regard.record(regard.hugging_face(tiny(family)), pairs=PAIRS)
    for site in ("encoder.1.self", "decoder.1.self", "decoder.0.cross"):
        queries, keys, scores = (recording[f"{site}.{p}"] for p in ("queries", "keys", "scores"))
        side = recording.metadata.sites[site]
        mask = recording[f"{side.key_side}.mask"][:, None, None, :]
        both = mask & recording[f"{side.query_side}.mask"][:, None, :, None]
        products = queries @ keys.transpose(0, 1, 3, 2)
        np.testing.assert_allclose(products * both, scores, atol=1e-5)
        total = scores
        if f"{site}.bias" in recording:
            total = scores + recording[f"{site}.bias"]
        if side.causal:
            mask = mask & np.tril(np.ones(scores.shape[2:], bool))
        raised = np.exp(total) * mask
        wanted = raised / raised.sum(-1, keepdims=True) * both
        np.testing.assert_allclose(recording[f"{site}.weights"], wanted, atol=1e-5)
    assert (family == "T5") == ("encoder.1.self.bias" in recording)
    assert "decoder.0.cross.bias" not in recording


def test_speech_has_frames_for_words(tiny: Callable[..., Any]) -> None:
    net = tiny("Whisper")
    subject = regard.hugging_face(net)
    features = torch.randn(2, 8, 40, generator=torch.Generator().manual_seed(1))
    pairs = [(features[0], [5, 6, 2]), (features[1], [2, 7, 8, 2])]
    recording = regard.record(subject, pairs=pairs, sites="cross")
    assert recording.shape("decoder.0.cross.weights") == (2, 2, 3, 20)
    assert recording["decoder.words"].tolist() == [[2, 5, 6], [2, 7, 8]]
    with torch.no_grad():
        out = net(input_features=features[:1], decoder_input_ids=torch.tensor([[2, 5, 6]]))
    logits = recording["decoder.states"][0] @ recording["readout"].T
    np.testing.assert_allclose(logits, out.logits[0], atol=1e-4)


def test_sites_are_chosen_by_name(tiny: Callable[..., Any]) -> None:
    subject = regard.hugging_face(tiny("Bart"))
    for wanted, count in (("cross", 2), ("decoder.1.cross", 1), ("decoder.*.self", 2),
                          ("encoder", 2), (["cross", "encoder.0.self"], 3), (None, 6)):  # fmt: skip
        assert len(subject.choose_sites(wanted)) == count
        recording = regard.record(subject, pairs=PAIRS[:1], sites=wanted)
        assert len(recording.metadata.sites) == count
    with pytest.raises(RegardError, match="no attention site 'corss'"):
        regard.record(subject, pairs=PAIRS, sites="corss")


def test_a_folder_is_compared_with_its_file(tiny: Callable[..., Any], tmp_path: Path) -> None:
    from regard.subjects.hugging_face._files import compare_files

    tiny("Marian").save_pretrained(tmp_path)
    subject = regard.hugging_face(tmp_path)
    assert subject.parity["tensors equal to the file"] > 50
    net = subject.model.net
    with torch.no_grad():
        net.model.encoder.layers[0].fc1.weight[0, 0] += 1
    with pytest.raises(
        RegardError, match=r"'model\.encoder\.layers\.0\.fc1\.weight' was loaded with"
    ):
        compare_files(tmp_path, net)


def test_a_model_that_is_not_itself_is_refused(tiny: Callable[..., Any]) -> None:
    net = tiny("Bart")

    class Odd(torch.nn.Linear):
        """Looks like a projection, but adds something to what it is asked alone."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + (len(x) > 1)

    attention = net.model.decoder.layers[1].encoder_attn
    odd = Odd(16, 16)
    odd.load_state_dict(attention.v_proj.state_dict())
    attention.v_proj = odd
    with pytest.raises(RegardError, match="a sentence alone and padded are not equal"):
        regard.hugging_face(net)


def test_own_outputs_of_beams_are_recorded_as_chosen(tiny: Callable[..., Any]) -> None:
    net = tiny("Marian")
    subject = regard.hugging_face(net)
    net.generation_config.num_beams = 3
    recording = regard.record(subject, pairs=[(s, None) for s, _ in PAIRS[:2]], sites="cross")
    with torch.no_grad():
        chosen = net.generate(torch.tensor([PAIRS[0][0]]), num_beams=3, max_new_tokens=128)[0]
    said = recording["targets"][0][recording["decoder.mask"][0]]
    np.testing.assert_array_equal(said, chosen[1 : len(said) + 1])
    fed = recording["decoder.words"][0][recording["decoder.mask"][0]]
    np.testing.assert_array_equal(fed, chosen[: len(said)])


@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_left_as_it_was(tiny: Callable[..., Any], training: bool) -> None:
    net = tiny("Bart").train(training)
    before = net.config._attn_implementation
    regard.record(regard.hugging_face(net), pairs=PAIRS)
    assert all(module.training == training for module in net.modules())
    assert net.config._attn_implementation == before
    hooks = [
        h
        for m in net.modules()
        for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())
    ]
    assert not any(hook.__module__.startswith("regard") for hook in hooks)


def test_half_precision_is_recorded_as_single(tiny: Callable[..., Any]) -> None:
    recording = regard.record(regard.hugging_face(tiny("Bart").bfloat16()), pairs=PAIRS)
    assert recording["decoder.1.cross.queries"].dtype == np.float32


def test_not_a_number_is_told_where_it_begins(tiny: Callable[..., Any]) -> None:
    net = tiny("Bart")
    subject = regard.hugging_face(net)
    with torch.no_grad():
        net.model.decoder.layers[1].encoder_attn.k_proj.weight[0] = torch.nan
    with pytest.raises(RegardError, match=r"'decoder\.1\.cross\.keys' is not a number"):
        regard.record(subject, pairs=PAIRS)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a text", "a text")], "no tokenizer"),
        ([([5] * 150, [6, 2])], "150 pieces, but this model has 140 positions"),
        ([([5, 99], [6, 2])], "beyond the 60 words"),
        ([([], [6, 2])], "empty"),
        ([([5], [6]), ([5], None)], "with every source, or with none"),
        ([], "needs something to read"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tiny: Callable[..., Any], pairs: list[Any], message: str
) -> None:
    subject = regard.hugging_face(tiny("Bart"))
    with pytest.raises(RegardError, match=message):
        regard.record(subject, pairs=pairs)


def test_what_is_no_encoder_decoder_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    with pytest.raises(RegardError, match="no encoder-decoder"):
        regard.hugging_face(torch.nn.Linear(2, 2))
    with pytest.raises(RegardError, match=r"no config\.json"):
        regard.hugging_face(tmp_path)


def test_large_vocabularies_keep_only_what_was_seen(tiny: Callable[..., Any]) -> None:
    net = tiny("M2M100", vocab_size=60_000, d_model=8)
    subject = regard.hugging_face(net)
    recording = regard.record(subject, pairs=[([50_000, 7, 2], [55_000, 9, 2])] * 3)
    assert recording.shape("readout")[0] < 10
    assert recording["decoder.words"][0].tolist() == [2, 55_000, 9]
    assert len(recording.compact.words("decoder")) < 10
    assert recording.inspect("breakdown").estimates()
    assert recording.decomposition.encoder.input.shape[0] < 10


def test_a_folder_without_a_tokenizer_takes_no_texts(
    tiny: Callable[..., Any], tmp_path: Path
) -> None:
    tiny("T5").save_pretrained(tmp_path)
    subject = regard.hugging_face(tmp_path)
    with pytest.raises(RegardError, match="no tokenizer"):
        regard.record(subject, pairs=[("a text", "a text")])


@pytest.mark.parametrize("family", ["Marian", "Bart", "T5"])
def test_beta_is_what_the_model_says_when_it_sees_one_state(
    tiny: Callable[..., Any], family: str
) -> None:
    """With one decoder layer, a step that looks at l alone might as well have no other state."""
    from transformers.modeling_outputs import BaseModelOutput

    one = {"num_decoder_layers": 1} if family == "T5" else {"decoder_layers": 1}
    net = tiny(family, **one)
    pairs = PAIRS[:2]
    subject = regard.hugging_face(net)
    if subject.model.listener.hooked:  # T5 of `transformers` 4.57: its weights are only seen
        with pytest.raises(RegardError, match="no lexical probe"):
            regard.record(subject, pairs=pairs, also=("lexical",))
        return
    found = regard.record(subject, pairs=pairs, also=("lexical",))["lexical"]
    for row, (source, target) in enumerate(pairs):
        fed = torch.tensor([[net.config.decoder_start_token_id, *target[:-1]]])
        with torch.no_grad():
            states = net.get_encoder()(input_ids=torch.tensor([source])).last_hidden_state
            for place in range(len(source)):
                seen = BaseModelOutput(last_hidden_state=states[:, place : place + 1])
                logits = net(encoder_outputs=seen, decoder_input_ids=fed, use_cache=False).logits
                said = logits[0].log_softmax(1)[torch.arange(len(target)), target]
                np.testing.assert_allclose(found[row, : len(target), place], said, atol=1e-5)
    assert found[0, :3, :4].std() > 1e-4
    with pytest.raises(RegardError, match="no lexical probe"):
        regard.record(regard.hugging_face(tiny("ProphetNet")), pairs=pairs, also=("lexical",))
