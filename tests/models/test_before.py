"""Attention before the recurrent step: parameters, both paths, gradients, forced attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models import EncoderDecoder, greedy
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.attention import force_weights
from regard.models.layers.cells import OUTWEIGHS
from regard.runs import assemble
from regard.tasks import Batch
from regard.training.forcing import encode, forward
from regard.training.losses import guidance, likelihood

FIRST: dict[str, Any] = {"attend": "before", "embedding": 5, "decoder_embedding": 7}
KINDS: dict[str, dict[str, Any]] = {
    "baan": {"cell": "gru", "attention": "additive-relu", "focus": "full"},
    "lstm": {"cell": "lstm", "attention": "additive-relu", "focus": "full"},
    "beside": {"cell": "gru-cho", "attention": "additive", "focus": "concatenate"},
    "heads": {"cell": "gru", "attention": "scaled", "heads": 2, "focus": "full",
              "merge": "concatenate"},
    "layers": {"cell": "gru", "attention": "dot", "focus": "full", "layers": 2},
}  # fmt: skip


def build(name: str, hidden: int = 6, **more: Any) -> EncoderDecoder:
    torch.manual_seed(1)
    config = EncoderDecoderConfig(hidden=hidden, **FIRST, **KINDS[name], **more)
    return EncoderDecoder(config, 9, 8).double()


def batch(rows: int = 3, source: int = 4, target: int = 3, full: bool = False) -> Batch:
    rng = torch.Generator().manual_seed(3)
    lengths = torch.full((rows,), source) if full else torch.arange(source, source - rows, -1)
    words = torch.randint(2, 9, (rows, source), generator=rng)
    goal = torch.randint(2, 8, (rows, target), generator=rng)
    mask = torch.arange(source)[None] < lengths[:, None]
    alignment = torch.arange(target).expand(rows, -1) % lengths[:, None]
    return Batch(words * mask, lengths, goal, torch.full((rows,), target), alignment)


def test_the_preset_has_the_parameters_of_the_program() -> None:
    config = assemble("lookup", "baan", 0, {})
    model = config.make_model(config.make_task())
    assert model.parameter_count == 3_451_708
    every = torch.cat([p.detach().flatten() for p in model.parameters()])
    assert float(every.abs().max()) <= 0.08
    assert abs(float(every.std()) - 0.08 / 3**0.5) < 1e-4
    assert all(float(p.detach().abs().max()) > 0 for p in model.parameters())


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_all_steps_at_once_are_the_steps_one_by_one(name: str) -> None:
    model, given = build(name), batch()
    memory = model.encode(given.source, given.source_lengths)
    output = model.decode(memory, given.inputs)
    state, logits = memory.initial, []
    for t in range(given.inputs.shape[1]):
        found, state = model.step(memory, given.inputs[:, t], state)
        logits.append(found)
    torch.testing.assert_close(torch.stack(logits, dim=1), output.logits)
    traced = model.trace(given.source, given.source_lengths, given.inputs)
    torch.testing.assert_close(traced.logits, output.logits)
    assert traced.gates["decoder.gates.0.update" if "gru" in model.config.cell else
                        "decoder.gates.0.forget"].shape == (3, 3, 6)  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_padding_changes_nothing_and_gets_no_weight(name: str) -> None:
    model, given = build(name), batch()
    site = forward(model, given, torch.ones(3).bool()).sites["attention"]
    weights = site.weights.detach()
    torch.testing.assert_close(weights.sum(dim=3), torch.ones_like(weights[..., 0]))
    assert float(weights.masked_select(~given.source_mask[:, None, None]).abs().max()) == 0
    assert site.lag == 1
    for row in range(3):
        alone = forward(model, given[row : row + 1], torch.ones(3).bool())
        whole = forward(model, given, torch.ones(3).bool())
        torch.testing.assert_close(alone.logits[0], whole.logits[row])


def total(model: EncoderDecoder, given: Batch, forced: Tensor) -> Tensor:
    output = forward(model, given, forced)
    loss = likelihood(output.logits, given.target, given.target_mask, "sequences")
    return loss + 0.7 * guidance(output.sites, given, "sequences")


def gradients(model: EncoderDecoder, given: Batch, forced: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    total(model, given, forced).backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("name", ["baan", "lstm"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_the_pass_by_hand_is_the_walk_of_autograd(
    name: str, full: bool, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = 3 * OUTWEIGHS + 1
    model, given = build(name, hidden=hidden), batch(full=full)
    forced = torch.full((3,), not own)
    assert model._fits(model.encode(given.source, given.source_lengths))
    quick, loss = gradients(model, given, forced), total(model, given, forced)
    monkeypatch.setattr(type(model.decoder[0]), "outweighs", lambda *_: False)  # type: ignore[index]
    torch.testing.assert_close(total(model, given, forced), loss)
    slow = gradients(model, given, forced)
    for key in slow:
        torch.testing.assert_close(quick[key], slow[key], msg=key)


def test_the_way_back_can_be_taken_twice() -> None:
    """As a program does that goes back once for each loss."""
    model, given = build("baan", hidden=3 * OUTWEIGHS + 1), batch()
    loss = total(model, given, torch.ones(3).bool())
    learned = [p for p in model.parameters() if p.requires_grad]
    once, again = (torch.autograd.grad(loss, learned, retain_graph=True) for _ in range(2))
    torch.testing.assert_close(once, again, atol=0, rtol=0)


@pytest.mark.parametrize("name", ["baan", "lstm"])
def test_gradients_by_finite_differences(name: str) -> None:
    model, given = build(name, hidden=3 * OUTWEIGHS + 1), batch()
    forced = torch.ones(3).bool()
    found = gradients(model, given, forced)
    for key, parameter in model.named_parameters():
        flat, step = parameter.data.view(-1), 1e-6
        place = int(found[key].abs().argmax())
        losses = []
        for sign in (1, -1):
            flat[place] += sign * step
            losses.append(float(total(model, given, forced).detach()))
            flat[place] -= sign * step
        slope = (losses[0] - losses[1]) / (2 * step)
        assert slope == pytest.approx(float(found[key].view(-1)[place]), rel=1e-5, abs=1e-8), key


def test_own_predictions_are_fed_back() -> None:
    model, given = build("baan", hidden=60), batch()
    never = torch.zeros(3).bool()
    output = forward(model, given, never)
    with torch.no_grad():
        memory = model.encode(given.source, given.source_lengths)
        fed = model.feed(memory, given.inputs, never)
        again = model.decode(memory, fed)
        torch.testing.assert_close(output.logits.detach(), again.logits)
        assert torch.equal(fed[:, 1:], output.logits.argmax(dim=2)[:, :-1])


@pytest.mark.parametrize("name", KINDS)
def test_attention_can_be_forced(name: str) -> None:
    model, given = build(name), batch()
    assert given.alignment is not None
    alignment = given.alignment.clone()
    alignment[0, 1] = -1
    aligned = replace(given, alignment=alignment)
    output = forward(model, aligned, torch.ones(3).bool(), forced_alignment=True)
    weights = output.sites["attention"].weights.detach()
    for row in range(3):
        for t in range(3):
            if alignment[row, t] >= 0:
                assert float(weights[row, :, t, alignment[row, t]].min()) == 1
    assert float(weights[0, :, 1].max()) < 1
    with torch.no_grad():  # and step by step, past the end of the alignment too
        words = greedy(model, encode(model, aligned, forced_alignment=True), 5)
    assert words.shape == (3, 5) or bool((words == 2).any())


def test_forced_weights_keep_what_is_free() -> None:
    weights = torch.tensor([[[[0.25, 0.75], [0.5, 0.5]]]])
    found = force_weights(weights, torch.tensor([[0, -1]]))
    assert found.tolist() == [[[[1.0, 0.0], [0.5, 0.5]]]]


def test_components_cover_the_model_once() -> None:
    model = build("baan")
    parts = model.components()
    names = [name for name, _ in model.named_parameters()]
    assert sorted(parts["encoder"] + parts["decoder"]) == sorted(names)
    assert parts["encoder.W_hh"] == ["encoder.ahead.0.weight_hh"]
    assert {"attention", "focus", "output", "decoder.embedding"} <= set(parts)
    assert model.parameters_of(["output"]) == ["readout.weight", "readout.bias"]
    with pytest.raises(RegardError, match=r"component.*encoder\.embedding"):
        model.parameters_of(["encoder.embeding"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attend": "before"}, "needs an attention"),
        ({"attend": "before", "attention": "dot"}, "goes with focus"),
        ({"focus": "full", "attention": "dot"}, "goes with focus"),
        ({"attend": "before", "attention": "dot", "focus": "full", "recurrent": "false"},
         "recurrent"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together(settings: dict[str, str], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        assemble("lookup", "chapter36", 0, settings)
