"""The scores that models give: α, β, γ, Δ, against loops and finite differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.instruments import lexical_probe, looked, proxy_probe, saliency
from regard.instruments.agreement import agreement
from regard.instruments.saliency import gradient, integrated, said
from regard.models import Seq2Seq
from regard.runs import Run, assemble, execute
from regard.tasks import Batch
from regard.training import evaluate

COPY = {"vocabulary": 6, "length": 5, "hidden": 8, "embedding": 6, "batch": 8, "updates": 3}
READ = {"vocabulary": 6, "length": 5, "hidden": 8, "embedding": 6, "batch": 8, "updates": 3}
MODELS = {
    "copying": ("copying", "snell-copying", {**COPY}),
    "keyword": ("keyword", "snell-classifier", {**READ}),
    "one-to-one": ("one-to-one", "aed", {"hidden": 8, "shortest": 2, "longest": 5, "updates": 3}),
    "transformer": ("reversal", "transformer", {"hidden": 8, "heads": 2, "updates": 3}),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    root = tmp_path_factory.mktemp("runs")
    return {
        name: execute(assemble(task, model, 0, settings), root)
        for name, (task, model, settings) in MODELS.items()
    }


def opened(run: Run, n: int = 5) -> tuple[Seq2Seq, Batch]:
    return run.model().double(), looked.batches_of(run.task(), n)[0]


@pytest.mark.parametrize("name", MODELS)
def test_saliency_is_the_slope_and_has_its_sign(trained: dict[str, Run], name: str) -> None:
    """Every pair by central differences in float64."""
    model, batch = opened(trained[name])
    slopes = gradient(model, batch)
    there = looked.pairs(batch)
    for place in range(batch.source.shape[1]):
        by = torch.ones(batch.source.shape, dtype=torch.float64)
        by[:, place] += 1e-5
        above = said(model, batch, by)
        by[:, place] -= 2e-5
        rise = (above - said(model, batch, by)) / 2e-5
        wanted = there[:, :, place]
        torch.testing.assert_close(
            slopes[:, :, place][wanted].double(), rise[wanted], atol=1e-4, rtol=1e-3
        )
    assert not slopes[~there].any() and slopes[there].abs().max() > 0


@pytest.mark.parametrize("name", ["copying", "keyword"])
def test_integrated_gradients_add_up(trained: dict[str, Run], name: str) -> None:
    model, batch = opened(trained[name])
    total = integrated(model, batch, steps=64).sum(dim=2)
    ones = torch.ones(batch.source.shape, dtype=torch.float64)
    change = said(model, batch, ones) - said(model, batch, 0 * ones)
    torch.testing.assert_close(total.double(), change.detach(), atol=1e-3, rtol=1e-2)


def test_scaling_leaves_no_trace(trained: dict[str, Run]) -> None:
    """One table serves both sides, but only source words are scaled, and only for the while."""
    model, batch = opened(trained["copying"])
    before = model(batch.source, batch.source_lengths, batch.inputs).logits
    gradient(model, batch)
    after = model(batch.source, batch.source_lengths, batch.inputs).logits
    assert torch.equal(before, after)
    ones = torch.ones(batch.source.shape, dtype=torch.float64)
    picked = before.log_softmax(2).gather(2, batch.target[:, :, None])[:, :, 0]
    torch.testing.assert_close(said(model, batch, ones), picked)


def test_scores_of_pieces_are_those_of_the_whole(trained: dict[str, Run]) -> None:
    run = trained["one-to-one"]
    batches = looked.batches_of(run.task(), 7)
    pieces = [piece for batch in batches for piece in batch.pieces(2)]
    whole = looked.looked(run.model(), batches, looked.lexical)
    parts = looked.looked(run.model(), pieces, looked.lexical)
    np.testing.assert_array_equal(whole.mask, parts.mask)
    np.testing.assert_allclose(whole.values, parts.values, atol=1e-5)
    assert whole.values.shape[0] == 7 and (whole.values[whole.mask] < 0).all()


def test_log_odds_are_those_of_the_sigmoid(trained: dict[str, Run]) -> None:
    """γ_l = W h_l + b, eq. 22."""
    model, batch = opened(trained["keyword"])
    memory = model.encode(batch.source, batch.source_lengths)
    reader: Any = model
    gamma = memory.states @ reader.readout.weight[0] + reader.readout.bias[0]
    positive = 3
    found = looked.looked(model, [batch], looked.log_odds(positive))
    np.testing.assert_allclose(found.values[:, 0], gamma.detach().numpy(), atol=1e-6)


def test_lexical_probe_tells_what_the_scores_say(trained: dict[str, Run]) -> None:
    run = trained["copying"]
    result = lexical_probe(run, n=6)
    batches = looked.batches_of(run.task(), 6)
    alpha = looked.looked(run.model(), batches, looked.attention)
    beta = looked.looked(run.model(), batches, looked.lexical)
    values = result.first.values()
    assert values["A(α, β)"] == pytest.approx(float(agreement(alpha, beta)))
    assert values["mean β"] == pytest.approx(float(np.exp(beta.values)[beta.mask].mean()))
    assert values["mean of the highest β"] >= values["mean β"]
    early = lexical_probe(run, n=6, checkpoint=0)
    assert early.first.values() != values
    assert result.figure().svg().startswith("<?xml") or "<svg" in result.figure().svg()


def test_uniform_attention_has_no_favourite(tmp_path: Path) -> None:
    """What means nothing is left out, and what is left can be written as JSON."""
    settings = {**READ, "attention": "uniform"}
    run = execute(assemble("keyword", "snell-classifier", 0, settings), tmp_path)
    for result in (lexical_probe(run, n=5), saliency(run, n=5)):
        text = json.dumps(result.to_json(), allow_nan=False)
        assert "A(α" not in text and "Kendall" not in text


def test_a_course_is_what_its_checkpoints_say(trained: dict[str, Run]) -> None:
    run = trained["keyword"]
    batches = looked.batches_of(run.task(), 9)
    alpha = looked.looked(run.model(), batches, looked.attention)
    found = looked.course(run, [alpha, alpha], batches)
    assert found.updates == run.checkpoints()
    early = looked.looked(run.model(0), batches, looked.attention)
    assert found.agreements[0] == [float(agreement(alpha, early))] * 2
    whole = evaluate(run.model(), run.task(), batches[0])
    assert found.performances[found.updates[-1]] == pytest.approx(whole["forced_token_accuracy"])


def test_saliency_and_proxy_as_instruments(trained: dict[str, Run], tmp_path: Path) -> None:
    found = saliency(trained["keyword"], n=5).estimates()
    assert found["finite differences"].mean < 0.05
    found = saliency(trained["keyword"], n=5, method="integrated", steps=16).estimates()
    assert found["completeness"].mean < 0.05
    settings = {"vocabulary": 6, "length": 5, "embedding": 6, "updates": 3}
    bag = execute(assemble("copying", "snell-proxy", 0, settings), tmp_path)
    result = proxy_probe(bag, n=5, against=str(trained["copying"].folder))
    assert {"mean β", "A(β, β^px)"} <= set(result.estimates())
    with pytest.raises(RegardError, match="no bag of words"):
        proxy_probe(trained["copying"], n=5)
    with pytest.raises(RegardError, match="other words"):
        proxy_probe(bag, n=5, against=str(trained["keyword"].folder))
    with pytest.raises(RegardError, match="steps=0"):
        saliency(trained["keyword"], steps=0)
