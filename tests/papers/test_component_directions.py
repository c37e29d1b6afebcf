"""The direction of every measure of aitken2021: made runs, and made recordings taken apart by hand.

Numbers of made runs say whose they are and which instrument gave them with which settings
(`made.py`); what an experiment should report is written down here once more.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made import SEEDS, Everything, MadeResult, MadeRun, make_runs, measure, number, values

from regard.display import Panel
from regard.papers import ledger
from regard.papers.aitken2021 import _attention, escan, features, orders, translation, twice
from regard.papers.aitken2021 import one_to_one as one
from regard.recordings import Recording
from regard.recordings.recording import Metadata
from regard.recordings.site import Site
from regard.recordings.storage import InMemory
from regard.statistics import Estimate

Patch = pytest.MonkeyPatch
MODULES = (one, orders, escan, twice, translation, features)


def same(found: Estimate, wanted: Any) -> None:
    assert list(found.values) == pytest.approx(list(np.atleast_1d(wanted)), abs=1e-6)


def array(condition: str, key: object) -> np.ndarray:
    return np.array(values(condition, key))


class Seed:
    """What an instrument found of one made recording, by any name."""

    def __init__(self, of: Any, tool: str):
        self.of, self.tool = of, tool
        self.words = ["and", "left", "twice"]

    def _two(self, key: object) -> np.ndarray:
        return array(self.of.condition, (self.tool, key, self.of.seed))

    @property
    def by_step(self) -> Any:
        return Everything(self._two)

    @property
    def absolute(self) -> np.ndarray:
        found = np.array(
            [number(self.of.condition, (self.tool, k), self.of.seed) for k in range(9)]
        )
        return found / found.sum()

    @property
    def by_offset(self) -> np.ndarray:
        """(word, offset), below 0 for some words."""
        return np.stack([np.resize(self._two(word), 11) - 0.5 for word in self.words])

    def maximal(self, word: str) -> int:
        return int(10 * number(self.of.condition, (self.tool, word), self.of.seed))


def tool(name: str) -> Callable[..., Any]:
    """An instrument whose numbers say its name and its settings."""

    def look(things: Any, *settings: Any, **more: Any) -> Any:
        named = [f"{key}={value}" for key, value in more.items()]
        found = MadeResult(" ".join([name, *map(str, settings), *named]), things)
        found.seeds = [Seed(thing, found.tool) for thing in found.things]  # type: ignore[misc]
        return found

    return look


@pytest.fixture(autouse=True)
def made(monkeypatch: Patch) -> None:
    """A recording is its run, untrained ones are of another condition; instruments are made."""

    def record(runs: Any, n: int = 0, checkpoint: Any = "last") -> list[Any]:
        end = "" if checkpoint == "last" else " untrained"
        return [MadeRun(run.condition + end, run.seed) for run in runs]

    tools = ("trajectories", "word_clouds", "dictionary", "orthogonality", "simplex", "breakdown",
             "variance", "offset", "clusters", "pull")  # fmt: skip
    for module in MODULES:
        monkeypatch.setattr(module, "record_runs", record)
        for name in tools:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, tool(name))
        for name in ("correlate_order", "share_right", "share_at_ends", "share_before_twice",
                     "compare_halves"):  # fmt: skip
            if hasattr(module, name):
                monkeypatch.setattr(
                    module, name, lambda run, name=name: number(run.condition, name, run.seed)
                )
        if hasattr(module, "draw_attention"):
            monkeypatch.setattr(module, "draw_attention", lambda *about: Panel("p", "x", "y", ()))


def test_one_to_one() -> None:
    found = measure("aitken2021/one-to-one", make_runs(one.MODELS)).measures
    for model in ("ved", "aed", "ao"):
        time, words = found[f"ait.temporal-{model}"], found[f"ait.input-{model}"]
        for key in ("diagonal", "direction", "turns", "adjacent"):
            same(time[key], array(model, ("trajectories", key)))
        same(time["joint"], array(model, ("trajectories", "joint step")))
        same(words["delta_share"], array(model, ("word_clouds", "encoder delta share")))
        same(words["cosine"], array(model, ("simplex A,B,C", "cosine")))
        same(words["cosine_error"], array(model, ("simplex A,B,C", "worst cosine error")))
        assert ("dictionary" in words) == (model != "ved")
        if model != "ved":
            same(words["dictionary"], array(model, ("dictionary", "dictionary")))
        axes = found["ait.pcs"]
        same(axes[f"temporal_3_{model}"], array(model, ("trajectories", "explained 3")))
        same(axes[f"input_2_{model}"], array(model, ("word_clouds", "explained 2")))
    angles = found["ait.orthogonal"]
    key = "μ of decoder, χ+Δ of encoder"
    assert set(angles) == {"aed", "ao", "largest_aed", "largest_ao"}
    for model in ("aed", "ao"):
        same(angles[model], array(model, ("orthogonality", key)))
        largest = [max(values(model, ("orthogonality", key, seed))) for seed in range(SEEDS)]
        same(angles[f"largest_{model}"], largest)


def test_one_to_one_shows_trained_and_untrained_networks_apart() -> None:
    trained, untrained = measure("aitken2021/one-to-one", make_runs(one.MODELS)).tables
    assert "untrained" in untrained.title and "untrained" not in trained.title
    assert trained.columns[1:] == ("ved", "aed", "ao")
    for table, end in ((trained, ""), (untrained, " untrained")):
        (row,) = [row[1:] for row in table.rows if row[0] == "diagonal"]
        for model, cell in zip(("ved", "aed", "ao"), row, strict=True):
            same(cell, array(model + end, ("trajectories", "diagonal")))


def test_sorting(monkeypatch: Patch) -> None:
    drawn: dict[str, tuple[Any, ...]] = {}

    def draw(recording: Any, sample: int, title: str, *pairs: Any) -> Panel:
        drawn[title] = pairs
        return Panel(title, "x", "y", ())

    monkeypatch.setattr(orders, "draw_terms", draw)
    findings = measure("aitken2021/sorting", make_runs(["aed"]))
    own = findings.measures["ait.sorting"]
    shares = {t: number("aed", ("breakdown", t), 0) for t in orders.TERMS}
    largest = max(shares, key=lambda term: shares[term])
    assert f"The largest of the nine terms is {largest}:" in findings.found[0]
    same(own["accuracy"], array("aed", "token_accuracy"))
    same(own["attention"], array("aed", "share_right"))
    assert drawn["μ·μ alone"] == (("temporal", "temporal"),)
    assert drawn["χ of decoder · Δ of encoder"] == (("input", "delta"),)
    assert drawn["Δ of decoder · χ of encoder"] == (("delta", "input"),)
    assert len(set(drawn["All terms"])) == 9


def test_terms_of_sorting_keep_their_names(monkeypatch: Patch) -> None:
    """The decoder's part comes first: Δ of the decoder with χ of the encoder is delta_input."""
    monkeypatch.setattr(orders, "draw_terms", lambda *about: Panel("p", "x", "y", ()))
    terms = {t: Estimate.of([k / 100, k / 100]) for k, t in enumerate(orders.TERMS)}
    result = SimpleNamespace(
        estimates=lambda: terms, shares={t: e.mean for t, e in terms.items()},
        table=lambda: MadeResult("x", [MadeRun("aed", 0)]).table(),
        figure=lambda: MadeResult("x", [MadeRun("aed", 0)]).figure(),
    )  # fmt: skip
    monkeypatch.setattr(orders, "breakdown", lambda seen: result)
    own = measure("aitken2021/sorting", make_runs(["aed"])).measures["ait.sorting"]
    assert own["temporal_temporal"].mean == 0.0
    assert own["temporal_delta"].mean == pytest.approx(0.02)
    assert own["input_delta"].mean == pytest.approx(0.05)
    assert own["delta_input"].mean == pytest.approx(0.07)


def test_escan() -> None:
    runs = make_runs(escan.MODELS)
    own = measure("aitken2021/escan", runs).measures["ait.escan-attention"]
    for model in ("aed", "ao"):
        same(own[f"phrase_end_{model}"], array(model, "share_at_ends"))
        same(own[f"before_twice_{model}"], array(model, "share_before_twice"))
        same(own[f"accuracy_{model}"], array(model, "token_accuracy"))
        same(own[f"direction_{model}"], array(model, ("trajectories reach=0.5", "direction")))


@pytest.mark.parametrize(
    ("ends", "verdict"), [({"aed": 0.9, "ao": 0.3}, "reproduced"), ({"aed": 0.3, "ao": 0.9}, "")]
)
def test_who_reads_ends_decides(ends: dict[str, float], verdict: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(escan, "share_at_ends", lambda run: ends[run.condition])
    monkeypatch.setattr(escan, "share_before_twice", lambda run: ends[run.condition] / 9 + 0.9)
    high = SimpleNamespace(
        estimates=lambda: {"direction": Estimate.of([0.9, 0.9])},
        figure=lambda: MadeResult("x", [MadeRun("aed", 0)]).figure(),
    )
    monkeypatch.setattr(escan, "trajectories", lambda seen, reach: high)
    found = measure("aitken2021/escan", make_runs(escan.MODELS)).measures["ait.escan-attention"]
    assert (ledger()["ait.escan-attention"].verdict(found) == "reproduced") == bool(verdict)


def around(run: Any) -> dict[str, np.ndarray]:
    """Lowered at 0, highest one step before in two of three seeds."""
    lowered = np.zeros(11)
    lowered[5] = -1.0 - run.seed
    aligned = np.arange(11.0)
    aligned[4 if run.seed else 6] = 99.0
    aligned[0] = np.nan
    return {"μ·(χ+Δ)": lowered, "alignment": aligned, "μ·μ": lowered, "rest": lowered}


def test_twice(monkeypatch: Patch) -> None:
    monkeypatch.setattr(twice, "align_around_twice", around)
    found = measure("aitken2021/twice", make_runs(["aed", "ao", "ao without and"])).measures
    own, lean = found["ait.twice"], found["ait.lean"]
    for model in ("aed", "ao"):
        same(own[f"silhouette_{model}"], array(model, ("clusters twice", "silhouette")))
    same(own["accuracy_plain"], array("ao without and", "token_accuracy"))
    same(own["lowering"], [-1.0, -2.0, -3.0])
    same(own["looks_back"], [0.0, 1.0, 1.0])
    seeds = [Seed(MadeRun("ao", s), "pull 5") for s in range(SEEDS)]
    for word in ("and", "twice", "left"):
        rows = [seed.by_offset[seed.words.index(word)] for seed in seeds]
        same(lean[f"{word}_now"], [row[5] for row in rows])
        same(lean[f"{word}_highest"], [row.max() for row in rows])
        same(lean[f"{word}_slope"], array("ao", ("pull 5", f"slope of {word}")))


def test_translation() -> None:
    runs = make_runs(["translation aed", "translation ao"])
    own = measure("aitken2021/translation", runs).measures["ait.translation"]
    for model in ("aed", "ao"):
        condition = f"translation {model}"
        same(own[f"follows_{model}"], array(condition, "correlate_order"))
        same(own[f"early_minus_late_{model}"], array(condition, "compare_halves"))
        same(own[f"accuracy_{model}"], array(condition, "token_accuracy"))


def test_features() -> None:
    names = [
        f"{task} {m}" for task in ("one-to-one", "escan", "translation") for m in ("aed", "ao")
    ]
    findings = measure("aitken2021/features", make_runs(["one-to-one ved", *names]))
    found = findings.measures
    same(found["ait.solve"]["accuracy_one_to_one_ved"], array("one-to-one ved", "token_accuracy"))
    for name in names:
        key = name.replace("-", "_").replace(" ", "_")
        same(found["ait.solve"][f"accuracy_{key}"], array(name, "token_accuracy"))
        terms = [Seed(MadeRun(name, seed), "breakdown").absolute for seed in range(SEEDS)]
        split = found["ait.breakdown"]
        same(split[f"temporal_{key}"], array(name, ("breakdown", "temporal-temporal")))
        same(split[f"three_{key}"], [row[0] + row[1] + row[2] for row in terms])
        same(split[f"largest_{key}"], [row.max() for row in terms])
        moved = found["ait.offset"]
        for what, said in {"offset": "temporal offset", "data": "data offset", "error": "error",
                           "follows": "correlation"}.items():  # fmt: skip
            same(moved[f"{what}_{key}"], array(name, ("offset reach=0.5", said)))
        same(found["ait.variance"][f"drop_{key}"], array(name, ("variance", "drop")))
        same(found["ait.readout"][f"dictionary_{key}"], array(name, ("dictionary", "dictionary")))
        if name.startswith("escan"):
            seeds = [Seed(MadeRun(name, seed), "dictionary") for seed in range(SEEDS)]
            silent = [seed.maximal("and") + seed.maximal("twice") for seed in seeds]
            same(found["ait.readout"][f"silent_{key}"], silent)
    bars = {b.label: b for b in findings.figures[0].panels[0].marks}  # type: ignore[union-attr]
    added = sum(np.array(bars[label].y) for label in ("μ·μ", "μ·χ + μ·Δ", "other six"))  # type: ignore[union-attr]
    assert added == pytest.approx(np.ones(6))


# Recordings taken apart by hand.

WORDS = ("<PAD>", "<SOS>", "<EOS>", "run", "left", "twice")


def recording() -> tuple[Recording, dict[str, np.ndarray]]:
    """Three samples of 5 source and 4 target steps, some masked, with queries and keys."""
    rng = np.random.default_rng(3)
    arrays = {
        "encoder.states": rng.normal(size=(3, 5, 2)).astype(np.float32),
        "encoder.words": np.array([[3, 5, 4, 3, 2], [5, 3, 5, 2, 0], [3, 3, 5, 4, 2]]),
        "encoder.mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool),
        "decoder.states": rng.normal(size=(3, 4, 2)).astype(np.float32),
        "decoder.words": np.array([[1, 3, 4, 3], [1, 4, 0, 0], [1, 3, 3, 0]]),
        "decoder.mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], bool),
        "targets": np.array([[3, 4, 3, 2], [4, 2, 0, 0], [3, 3, 2, 0]]),
        "attention.queries": rng.normal(size=(3, 1, 4, 2)).astype(np.float32),
        "attention.keys": rng.normal(size=(3, 1, 5, 2)).astype(np.float32),
    }
    site = Site(plain=False, score="dot")
    return Recording(InMemory(arrays), Metadata(WORDS, WORDS, {"attention": site})), arrays


def average(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean state of every step, over the samples that have it."""
    return np.stack([states[mask[:, t], t].mean(axis=0) for t in range(mask.shape[1])])


def test_alignment_around_twice_is_that_of_a_loop() -> None:
    made, arrays = recording()
    queries, keys = (
        arrays[f"attention.{name}"][:, 0].astype(float) for name in ("queries", "keys")
    )
    mu_d = average(queries, arrays["decoder.mask"])
    mu_e = average(keys, arrays["encoder.mask"])
    wanted: dict[str, dict[int, list[float]]] = {name: {} for name in twice.ALIGNMENTS}
    places = [(0, 1), (1, 0), (2, 2)]  # sample, step; the third of sample 1 is not decoded
    for sample, s in places:
        for t in range(5):
            if arrays["encoder.mask"][sample, t]:
                q, k = queries[sample, s], keys[sample, t]
                terms = (q @ k, mu_d[s] @ mu_e[t], mu_d[s] @ (k - mu_e[t]), (q - mu_d[s]) @ k)
                for name, value in zip(twice.ALIGNMENTS, terms, strict=True):
                    wanted[name].setdefault(t - s, []).append(float(value))
    found = twice.align_around_twice(made)
    for name in twice.ALIGNMENTS:
        for offset in range(-5, 6):
            here = wanted[name].get(offset)
            value = found[name][offset + 5]
            assert value == pytest.approx(np.mean(here), abs=1e-5) if here else np.isnan(value)


def test_attention_by_some_terms_is_that_of_a_loop() -> None:
    made, arrays = recording()
    parts = {}
    for side, name in (("decoder", "queries"), ("encoder", "keys")):
        states, mask = arrays[f"attention.{name}"][:, 0].astype(float), arrays[f"{side}.mask"]
        mu, words = average(states, mask), arrays[f"{side}.words"]
        chi = {w: (states - mu)[(words == w) & mask].mean(axis=0) for w in set(words[mask])}
        inputs = np.stack([[chi.get(w, np.zeros(2)) for w in row] for row in words])
        parts[side] = {"temporal": np.broadcast_to(mu, states.shape), "input": inputs,
                       "delta": states - mu - inputs}  # fmt: skip
    for pairs in ([("temporal", "input")], [("delta", "temporal"), ("input", "delta")]):
        scores = sum(parts["decoder"][a][2, :3] @ parts["encoder"][b][2].T for a, b in pairs)
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        found = _attention.attend_by_terms(made, 2, pairs)
        assert found == pytest.approx(weights, abs=1e-5)
