"""The instruments of scores: what they say of a recording is what its arrays say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard import RegardError, Run, Scores, lexical_probe, proxy_probe, saliency
from regard.instruments.scores import agreement
from regard.runs import assemble, execute

WORDS = {"vocabulary": 6, "length": 5, "embedding": 6, "batch": 8, "updates": 3}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "copying": ("copying", "snell-copying", {**WORDS, "hidden": 8}),
    "keyword": ("keyword", "snell-classifier", {**WORDS, "hidden": 8}),
    "bag": ("copying", "snell-proxy", {**WORDS}),
    "transformer": ("reversal", "transformer", {"hidden": 8, "heads": 2, "updates": 3}),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    root = tmp_path_factory.mktemp("runs")
    return {
        name: execute(assemble(task, model, 0, settings), root)
        for name, (task, model, settings) in MODELS.items()
    }


def test_lexical_probe_tells_what_the_scores_say(trained: dict[str, Run]) -> None:
    run = trained["copying"]
    result = lexical_probe(run, n=6)
    recording = regard.record(run, n=6, also=("lexical",), inputs="teacher")
    alpha, beta = Scores.of_attention(recording), Scores.of_array(recording, "lexical")
    values, shares = result.first.values(), np.exp(beta.values)
    assert values["A(α, β)"] == pytest.approx(float(agreement(alpha, beta)))
    assert values["mean β"] == pytest.approx(float(shares[beta.mask].mean()))
    assert values["mean of the highest β"] == pytest.approx(shares.max(axis=2).mean())
    highest = np.take_along_axis(shares, alpha.values.argmax(axis=2)[:, :, None], axis=2)
    assert values["mean β where α is highest"] == pytest.approx(float(highest.mean()))
    np.testing.assert_allclose(result.first.beta.values, shares * beta.mask)
    assert lexical_probe(recording).first.values() == values
    assert lexical_probe(run, n=6, checkpoint=0).first.values() != values
    assert "<svg" in result.figure().svg()


def test_saliency_tells_what_the_scores_say(trained: dict[str, Run], tmp_path: Path) -> None:
    run, file = trained["keyword"], tmp_path / "kept.safetensors"
    how = {"saliency": {"method": "integrated", "steps": 16}}
    recording = regard.record(run, n=5, also=how, inputs="teacher", out=file)
    result = saliency(run, n=5, method="integrated", steps=16)
    assert saliency(file).first.values() == result.first.values()
    alpha, delta = Scores.of_attention(recording), Scores.of_array(recording, "saliency")
    found = result.estimates()
    assert found["A(α, Δ)"].mean == float(agreement(alpha, delta))
    assert found["A(Δ, α)"].mean == float(agreement(delta, alpha))
    assert found["completeness"].mean < 0.05 and found["finite differences"].mean < 0.05
    assert "completeness" not in saliency(run, n=5).estimates()
    assert "integrated" in result.table().title and result.to_json()["method"] == "integrated"
    with pytest.raises(RegardError, match="with method=integrated, not gradient"):
        saliency(recording, method="gradient")
    with pytest.raises(RegardError, match="with steps=16, not 4"):
        saliency(recording, steps=4)
    with pytest.raises(RegardError, match="steps=0"):
        saliency(run, steps=0)


def test_uniform_attention_has_no_favourite(tmp_path: Path) -> None:
    """What means nothing is left out, and what is left can be written as JSON."""
    settings = {**WORDS, "hidden": 8, "attention": "uniform"}
    run = execute(assemble("keyword", "snell-classifier", 0, settings), tmp_path)
    for result in (lexical_probe(run, n=5), saliency(run, n=5)):
        text = json.dumps(result.to_json(), allow_nan=False)
        assert "A(α" not in text and "Kendall" not in text


def test_proxy_probe(trained: dict[str, Run], tmp_path: Path) -> None:
    bag, other = trained["bag"], trained["copying"]
    options: dict[str, Any] = {"n": 5, "inputs": "teacher"}
    ours = regard.record(bag, also=("proxy",), **options)
    file = tmp_path / "other.safetensors"
    theirs = regard.record(other, also=("lexical",), out=file, **options)
    wanted = agreement(Scores.of_array(ours, "proxy"), Scores.of_array(theirs, "lexical"))
    for against in (other, str(other.folder), theirs, file):
        found = proxy_probe(bag, n=5, against=against).estimates()
        assert found["A(β, β^px)"].mean == float(wanted)
    assert proxy_probe(ours).first.values()["mean β"] == found["mean β"].mean
    with pytest.raises(RegardError, match="no bag of words"):
        proxy_probe(other, n=5)
    with pytest.raises(RegardError, match="other words"):
        proxy_probe(bag, n=5, against=str(trained["keyword"].folder))
    with pytest.raises(RegardError, match="other phrases"):
        proxy_probe(regard.record(bag, also=("proxy",), seed=1, **options), against=theirs)


@pytest.mark.parametrize("name", ["lexical_probe", "saliency", "proxy_probe", "optimal_attention"])
def test_a_recording_without_the_array_is_refused(trained: dict[str, Run], name: str) -> None:
    recording = regard.record(trained["copying"], n=3)
    what = {"lexical_probe": "lexical", "proxy_probe": "proxy", "optimal_attention": "values"}
    wanted = what.get(name, name)
    with pytest.raises(RegardError, match=rf"no {wanted}\. Record once more: .*--also {wanted}"):
        recording.inspect(name)
    with pytest.raises(RegardError, match="n= would say how to record a run"):
        recording.inspect(name, n=4)


def test_a_transformer_has_all_scores(trained: dict[str, Run]) -> None:
    assert lexical_probe(trained["transformer"], n=2).first.beta.values.max() > 0
    assert saliency(trained["transformer"], n=5).first.weights is not None
