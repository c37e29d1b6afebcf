"""snell2021's models: their sizes, their output network, their probe, and what goes together."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models import MODELS, EncoderDecoder, Seq2Seq
from regard.models.classifier import Classifier, find_log_probability
from regard.runs import assemble
from regard.runs.files import packed
from regard.runs.presets import preset_for

SMALL = {"hidden": 6, "embedding": 5}
LENGTHS = torch.tensor([4, 2, 3])


def made(preset: str, task: str, words: tuple[int, int], **settings: Any) -> Seq2Seq:
    values = preset_for(preset, task)
    config, kind = MODELS[values.pop("model.kind")]
    own = {k.removeprefix("model."): v for k, v in values.items() if k.startswith("model.")}
    built: Any = kind
    torch.manual_seed(0)
    return built(config(**{**own, **settings}), *words).eval()


def batch(words: int, steps: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    source = torch.randint(3, words, (3, 4)) * (torch.arange(4) < LENGTHS[:, None])
    return source, torch.randint(3, words, (3, steps))


def test_sizes_are_those_of_the_paper() -> None:
    """A.8 and facts of its program, without embeddings; copying with them."""
    translation = made("snell-translation", "translation", (8000, 8000))
    assert translation.parameter_count - 8000 * 256 == 6_132_544
    classifier = made("snell-classifier", "classification", (100, 4))
    assert classifier.parameter_count - 100 * 300 == 1_274_882
    assert made("snell-copying", "copying", (42, 42)).parameter_count == 1_337_130


def brute_force(model: EncoderDecoder, source: Tensor, targets: Tensor) -> Tensor:
    """β by forcing all weight onto each position in turn."""
    memory = model.encode(source, LENGTHS)
    inputs = torch.cat([torch.ones(3, 1, dtype=torch.long), targets[:, :-1]], dim=1)
    found = []
    for place in range(source.shape[1]):
        forced = model.force_alignment(memory, torch.full(targets.shape, place))
        # Beyond a row's end its states are zero, and nothing is asked of them.
        logits = model.decode(forced._replace(initial=memory.initial), inputs).logits
        found.append(logits.log_softmax(2).gather(2, targets[:, :, None])[:, :, 0])
    return torch.stack(found, dim=2)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"readout_layer": "none"},
        {"readout": "sum", "readout_layer": "none"},
        {"readout": "sum", "readout_layer": "tanh"},
        {"readout": "context"},
        {"heads": 3, "merge": "mean"},
        {"heads": 3, "merge": "sum"},
        {"heads": 2, "merge": "concatenate", "cell": "gru"},
        {"attention": "scaled", "readout_layer": "none", "context_layer": False},
        {"readout_bias": False},
    ],
)
def test_lexical_probe_is_the_output_with_all_weight_at_one_position(
    settings: dict[str, Any],
) -> None:
    model = made("snell-translation", "translation", (11, 11), **{**SMALL, **settings})
    assert isinstance(model, EncoderDecoder)
    source, targets = batch(11)
    inputs = torch.cat([torch.ones(3, 1, dtype=torch.long), targets[:, :-1]], dim=1)
    memory = model.encode(source, LENGTHS)
    states = model.decode(memory, inputs).decoder_states
    mask = memory.mask[:, None] & torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]]).bool()[:, :, None]
    found = model.lexical(memory, states, targets, mask)
    expected = brute_force(model, source, targets)
    torch.testing.assert_close(found[mask], expected[mask])
    assert not found[~mask].any()


@pytest.mark.parametrize("layer", ["relu", "none"])
def test_padding_of_the_target_changes_nothing(layer: str) -> None:
    """Given lengths, the output network runs over words only; losses and gradients are the same."""
    settings = {**SMALL, "readout_layer": layer, "dropout": 0.0}
    model = made("snell-translation", "translation", (11, 11), **settings).double()
    source, targets = batch(11, steps=5)
    lengths = torch.tensor([2, 5, 3])
    mask = torch.arange(5) < lengths[:, None]
    found = []
    for given in (None, lengths):
        model.zero_grad()
        logits = model.decode(model.encode(source, LENGTHS), targets, given).logits
        (logits[mask] * torch.arange(11)).log_softmax(1)[:, 3].sum().backward()  # type: ignore[no-untyped-call]
        gradients = {name: p.grad for name, p in model.named_parameters()}
        found.append((logits[mask].detach(), gradients))
    torch.testing.assert_close(*found)
    assert bool(logits[~mask].any()) == (layer == "none")  # mask was nothing to compute


def test_output_layer_is_the_whole_map_where_it_is_one() -> None:
    for settings in ({"readout": "sum"}, {"readout": "both"}, {"readout": "context"}):
        model = made(
            "snell-translation", "translation", (11, 11), readout_layer="none", **SMALL, **settings
        )
        source, targets = batch(11)
        output = model(source, LENGTHS, targets)
        layer = model.output_layer()
        assert layer is not None and layer.bias is not None
        weights = output.sites["attention"].weights[:, 0]
        parts = {"state": output.decoder_states, "context": weights @ output.encoder_states}
        logits = layer.bias + sum(
            parts[name] @ layer.weight[:, a:b].T for name, (a, b) in layer.parts.items()
        )
        torch.testing.assert_close(output.logits, logits)
    bent = made("snell-translation", "translation", (11, 11), **SMALL)
    assert bent.output_layer() is None


def test_decoder_starts_from_the_mean_of_both_directions() -> None:
    model = made("snell-translation", "translation", (11, 11), **SMALL)
    assert isinstance(model, EncoderDecoder)
    source, _ = batch(11)
    memory = model.encode(source, LENGTHS)
    _, finals = model.encoder(model.source_embedding(source), LENGTHS)  # type: ignore[operator]
    for start, final in zip(memory.initial, finals, strict=True):
        torch.testing.assert_close(start, (final[:, :6] + final[:, 6:]) / 2)
    assert memory.states.shape[2] == 12


def test_dropout_lies_between_layers_and_only_in_training() -> None:
    model = made("snell-translation", "translation", (11, 11), **SMALL)
    source, targets = batch(11)
    calm = model(source, LENGTHS, targets).logits
    torch.testing.assert_close(calm, model(source, LENGTHS, targets).logits)
    model.train()
    torch.manual_seed(0)
    first = model(source, LENGTHS, targets).logits
    assert not torch.allclose(first, model(source, LENGTHS, targets).logits)
    torch.manual_seed(0)
    torch.testing.assert_close(first, model(source, LENGTHS, targets).logits)


def test_a_shared_table_is_kept_once() -> None:
    model = made("snell-copying", "copying", (9, 9), **SMALL)
    tables = [name for name in model.state_dict() if "embedding" in name]
    assert tables == ["source_embedding.weight"]
    again = copy.deepcopy(model)
    assert again.target_embedding is again.source_embedding is not model.source_embedding
    packed(model.state_dict())


def test_a_head_begins_alike_in_one_and_in_many() -> None:
    many = made("snell-heads", "copying", (9, 9), heads=3, head_seeds=(5, 6, 7), **SMALL)
    one = made("snell-heads", "copying", (9, 9), heads=1, head_seeds=(6,), **SMALL)
    assert isinstance(many, EncoderDecoder) and isinstance(one, EncoderDecoder)
    assert torch.equal(many.attention.query.weight[6:12], one.attention.query.weight)  # type: ignore[union-attr, index]
    assert torch.equal(many.attention.query.bias[6:12], one.attention.query.bias)  # type: ignore[union-attr, index]


def test_one_backbone_for_all_seeds() -> None:
    settings = {"vocabulary": 40, "initial_seed": 3, "head_seeds": "1", "heads": 1, "hidden": 6}
    first, second = (
        config.make_model(config.make_task())
        for config in (assemble("copying", "snell-heads", seed, settings) for seed in (0, 1))
    )
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, dict(second.named_parameters())[name])
    drawn = assemble("copying", "snell-heads", 0, {**settings, "initial_seed": 4})
    other = drawn.make_model(drawn.make_task())
    assert not torch.equal(other.encoder.ahead[0].weight_hh, first.encoder.ahead[0].weight_hh)  # type: ignore[union-attr, index]


def test_classifier_is_that_of_the_paper() -> None:
    """eq. 7 to 9, by hand."""
    model = made("snell-classifier", "keyword", (9, 4), hidden=4, embedding=3, attention_size=5)
    assert isinstance(model, Classifier)
    source, _ = batch(9)
    targets = torch.tensor([[2], [3], [3]])
    output = model(source, LENGTHS, torch.ones(3, 1, dtype=torch.long))
    attention: Any = model.attention
    for row, length in enumerate(LENGTHS.tolist()):
        h = output.encoder_states[row, :length]
        a = torch.relu(h @ attention.key.weight.T + attention.key.bias) @ attention.v[0]
        alpha = torch.softmax(a + attention.bias, 0)
        torch.testing.assert_close(output.sites["attention"].weights[row, 0, 0, :length], alpha)
        gamma = alpha @ h @ model.readout.weight[0] + model.readout.bias[0]
        torch.testing.assert_close(output.logits[row, 0].softmax(0)[3], torch.sigmoid(gamma))
        sign = 2.0 * (targets[row, 0] == 3) - 1
        beta = torch.sigmoid(sign * (h @ model.readout.weight[0] + model.readout.bias[0]))
        memory = model.encode(source, LENGTHS)
        found = model.lexical(memory, output.decoder_states, targets, memory.mask[:, None])
        torch.testing.assert_close(found[row, 0, :length].exp().float(), beta)


def test_sure_positions_do_not_tie() -> None:
    """σ(40) is 1 in single precision, and so is σ(50); their logarithms differ."""
    gamma = torch.tensor([[[0.0, 0.0, -20.0, 20.0], [0.0, 0.0, -25.0, 25.0]]])
    gamma[:, :, :2] = -1e4
    found = find_log_probability(gamma, torch.tensor([3]))[0]
    exact = [-math.log1p(math.exp(-40)), -math.log1p(math.exp(-50))]
    assert found.tolist() == pytest.approx(exact, rel=1e-9) and found[0] < found[1] < 0


def test_bag_of_words_does_not_mind_the_order() -> None:
    """eq. 5 and 6; β^px leaves the bias out."""
    model = made("snell-proxy", "translation", (11, 11), embedding=4)
    assert isinstance(model, Classifier)
    source, targets = batch(11)
    logits = model(source, LENGTHS, targets).logits
    row = source[0].flip(0)[None]
    turned = model(row, LENGTHS[:1], targets[:1]).logits
    torch.testing.assert_close(turned, logits[:1])
    mean = model.source_embedding.weight[source[1, :2]].mean(0)
    by_hand = model.readout.weight @ mean + model.readout.bias
    torch.testing.assert_close(logits[1, 0], by_hand)
    memory = model.encode(source, LENGTHS)
    mask = memory.mask[:, None].expand(-1, 3, -1)
    found = model.lexical(memory, logits, targets, mask, bias=False)
    theta = (model.source_embedding.weight @ model.readout.weight.T).log_softmax(1)
    torch.testing.assert_close(found[2, 1, 0], theta[source[2, 0], targets[2, 1]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "dot"}, "project_memory"),
        ({"head_seeds": "1,2"}, "head_seeds"),
        ({"readout": "sum", "context_layer": False}, "context_layer"),
        ({"dropout": 0.5, "layers": 1}, "dropout"),
        ({"shared_embedding": True, "decoder_embedding": 7}, "shared_embedding"),
        ({"attention": "none"}, "context_layer"),
        ({"bidirectional": False}, "bridge=mean"),
        ({"head_seeds": "1", "uniform": 0.1}, "both draw"),
    ],
)
def test_what_does_not_fit_is_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        assemble("reversal", "snell-translation", 0, settings)


def test_one_head_is_not_too_wide_to_be_summed() -> None:
    narrow = {"attention": "dot", "readout": "sum", "merge": "concatenate"}
    assemble("reversal", "chapter36", 0, {**narrow, "heads": 1})
    with pytest.raises(RegardError, match="too wide"):
        assemble("reversal", "chapter36", 0, {**narrow, "attention": "bilinear", "heads": 2})


def test_labels_and_one_vocabulary_are_asked_for() -> None:
    with pytest.raises(RegardError, match="two of them or more"):
        made("snell-classifier", "keyword", (9, 3))
    with pytest.raises(RegardError, match="one vocabulary"):
        made("snell-copying", "copying", (9, 8))
    plain = assemble("reversal", "chapter36", 0, {})
    model = plain.make_model(plain.make_task())
    memory = model.encode(*batch(9)[:1], LENGTHS)
    with pytest.raises(RegardError, match="no lexical probe"):
        model.lexical(memory, memory.states, memory.mask, memory.mask)
