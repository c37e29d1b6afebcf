"""What a recording says of its attentions is what its arrays say, for every preset and more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard import Recording, record
from regard.models import Seq2Seq
from regard.recordings import Site
from regard.recordings.derived import compute_scores
from regard.runs import assemble
from regard.runs.presets import PRESETS
from regard.tasks import Batch, Vocabulary, collate

DOT = {"attention": Site(plain=True)}
BILINEAR = {"attention": Site()}
TOY = {"vocabulary": 6, "length": 5}
# Every preset with a task and small sizes, and the sites that it has by its paper.
SITES: dict[str, tuple[str, dict[str, Any], dict[str, Site]]] = {
    "chapter36": ("reversal", {}, {}),
    "chapter36-bidirectional": ("reversal", {}, {}),
    "chapter36-attention": ("reversal", {}, DOT),
    "quickstart": ("reversal", {}, {}),
    "quickstart-attention": ("reversal", {}, DOT),
    "transformer": (
        "reversal",
        {"layers": 2, "heads": 2},
        {
            f"{ours}.{n}.{'self' if ours == theirs else 'cross'}": Site(
                query_side=ours, key_side=theirs, layer=n, heads=2, projected=True
            )
            for ours, theirs in (("encoder",) * 2, ("decoder",) * 2, ("decoder", "encoder"))
            for n in range(2)
        },
    ),
    "aed": ("one-to-one", {}, DOT),
    "aed-paper": ("one-to-one", {}, DOT),
    "ved": ("one-to-one", {}, {}),
    "ved-paper": ("one-to-one", {}, {}),
    "ao": ("one-to-one", {}, DOT),
    "ao-paper": ("one-to-one", {}, DOT),
    "baan": (
        "lookup",
        {"decoder_embedding": 8},
        {"attention": Site(score="additive-relu", lag=1)},
    ),
    "snell-translation": ("reversal", {"embedding": 4}, {"attention": Site(layer=1)}),
    "snell-copying": ("copying", {**TOY, "embedding": 4}, BILINEAR),
    "snell-heads": ("copying", {**TOY, "embedding": 4, "heads": 2}, {"attention": Site(heads=2)}),
    "snell-classifier": ("keyword", TOY, {"attention": Site(score="additive-relu")}),
    "snell-proxy": ("copying", {**TOY, "hidden": None}, BILINEAR),
}
# Wirings of no preset: two layers, heads, keys of another size, a dot product before the step.
MORE: dict[str, tuple[dict[str, Any], Site]] = {
    "two layers": ({"layers": 2, "attention": "dot"}, Site(layer=1, plain=True)),
    "scaled": (
        {"attention": "scaled", "heads": 2, "attention_size": 3},
        Site(heads=2, projected=True),
    ),
    "additive": ({"attention": "additive", "heads": 2}, Site(heads=2, score="additive")),
    "two ways": ({"attention": "dot", "bidirectional": True}, Site(plain=True)),
    "before": ({"attention": "dot", "attend": "before", "focus": "concatenate"}, Site(lag=1)),
    "uniform": ({"attention": "uniform"}, Site()),
}


def build(task: str, preset: str, settings: dict[str, Any]) -> Seq2Seq:
    given = {key: value for key, value in {"hidden": 8, **settings}.items() if value is not None}
    config = assemble(task, preset, 0, given)
    model = config.make_model(config.make_task()).eval()
    with torch.no_grad():  # where parameters start from zero, nothing could be told from them
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


MODELS = [
    pytest.param(task, name, settings, sites, id=name)
    for name, (task, settings, sites) in SITES.items()
] + [
    pytest.param("reversal", "chapter36", settings, {"attention": site}, id=name)
    for name, (settings, site) in MORE.items()
]


def phrases(change: int | None = None) -> Batch:
    """Three sources of up to six words, three targets of four; one target word can be changed."""
    target = [[3, 4, 3, 4], [4, 4, 3, 3], [3, 3, 4, 3]]
    for row in target if change is not None else ():
        row[change] = 7 - row[change]
    return collate([[3, 4, 3, 4, 4, 3], [4, 3, 4, 4], [3, 3, 4, 4, 3]], target)


def recorded(model: Seq2Seq, batch: Batch) -> Recording:
    known = Vocabulary(tuple(f"w{number}" for number in range(50)))
    also = ("values",) if model.crossing_sites() else ()
    return record(model, batches=[batch], vocabularies=(known, known), inputs="teacher", also=also)


def test_every_preset_is_here() -> None:
    assert set(SITES) == set(PRESETS)


@pytest.mark.parametrize(("task", "preset", "settings", "sites"), MODELS)
def test_facts(task: str, preset: str, settings: dict[str, Any], sites: dict[str, Site]) -> None:
    model = build(task, preset, settings)
    recording = recorded(model, phrases())
    assert recording.metadata.sites == sites
    later = recorded(model, phrases(change=1))
    for name, site in sites.items():
        check_axes(recording, name, site)
        check_states(recording, name, site)
        check_scores(recording, name, site)
        check_lag(recording, later, name, site)


def check_axes(recording: Recording, name: str, site: Site) -> None:
    """Six source words and four target words tell the sides apart."""
    times = {"encoder": 6, "decoder": 4}
    wanted = {
        "queries": (times[site.query_side],), "keys": (times[site.key_side],),
        "values": (times[site.key_side],), "scores": (times[site.query_side], times[site.key_side]),
        "weights": (times[site.query_side], times[site.key_side]),
    }  # fmt: skip
    for part, ends in wanted.items():
        shape = recording.shape(f"{name}.{part}")
        assert shape[:2] == (3, site.heads) and shape[2 : 2 + len(ends)] == ends, part
    future = np.triu(recording[f"{name}.weights"], 1)
    assert not future.any() if site.causal else future.any()
    assert site.crosses == (times[site.query_side] == 4 and times[site.key_side] == 6)


def check_states(recording: Recording, name: str, site: Site) -> None:
    """Plain: queries and keys are the states. Projected: what is mixed is not."""
    ours, theirs = (
        recording[f"{side}.states"][:, None] for side in (site.query_side, site.key_side)
    )
    queries, keys, values = (recording[f"{name}.{p}"] for p in ("queries", "keys", "values"))
    assert site.plain == (np.array_equal(queries, ours) and np.array_equal(keys, theirs))
    same = values.shape[-1] == theirs.shape[-1] and np.array_equal(values, values * 0 + theirs)
    assert site.projected == (not same)


def check_scores(recording: Recording, name: str, site: Site) -> None:
    """Scores follow by the score function, up to a constant that no softmax sees."""
    queries, keys, scores = (recording[f"{name}.{p}"] for p in ("queries", "keys", "scores"))
    vector = None if site.bilinear else recording[f"{name}.vector"]
    assert site.bilinear == (f"{name}.vector" not in recording)
    asking, asked = (recording[f"{side}.mask"] for side in (site.query_side, site.key_side))
    mask = asking[:, None, :, None] & asked[:, None, None, :] & np.ones(scores.shape, bool)
    gap = scores - compute_scores(site.score, queries, keys, vector)
    for head in range(site.heads):
        over = gap[:, head][mask[:, head]]
        np.testing.assert_allclose(over, over.mean(), atol=1e-4)
        assert site.score == "additive-relu" or abs(over.mean()) < 1e-4


def check_lag(recording: Recording, later: Recording, name: str, site: Site) -> None:
    """The second target word is fed at the third step: whether its query knows it already."""
    queries, changed = recording[f"{name}.queries"], later[f"{name}.queries"]
    if site.query_side == "encoder" or not queries.any():  # nothing is fed, or nothing asks
        assert site.lag == 0 and np.array_equal(queries, changed)
        return
    moved = np.abs(queries - changed).max(axis=(0, 1, 3)) > 1e-6
    assert moved.tolist()[: 3 + site.lag] == [False] * (2 + site.lag) + [True]
    words = recording["decoder.words"]
    known = site.shift_words(words)
    assert (known[:, site.lag :] == words[:, : 4 - site.lag]).all() and known.shape == words.shape
    assert (known[:, : site.lag] == 0).all()
