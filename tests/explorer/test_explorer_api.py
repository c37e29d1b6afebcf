"""What the explorer answers, held against the Python API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.explorer.heads import pool
from regard.explorer.jobs import Busy, Jobs, Superseded, TooLong
from regard.explorer.packing import pack, unpack

Ask = Callable[..., Any]
SOURCE = "A B C A B"


def record(runs: Path, name: str, source: str, said: list[str], **options: Any) -> regard.Recording:
    """The same sentence through the front door."""
    run = regard.load_run(runs / name)
    return run.record(pairs=[(source.split(), said)], inputs="teacher", **options)


def test_things_are_listed_and_described(ask: Ask, names: dict[str, str]) -> None:
    things = {thing["name"]: thing for thing in ask("things")}
    assert set(names.values()) == set(things)
    first = things[names["aed 0"]]
    assert first["task"] == "one-to-one" and first["checkpoints"] == [0, 20, 40, 60]
    assert first["group"] == things[names["aed 1"]]["group"]
    about = ask("describe", thing=names["aed 0"])
    assert about["live"] and not about["single"] and about["examples"][0]["source"]
    assert ask("describe", thing=names["classifier"])["single"]


@pytest.mark.parametrize("kind", ["aed 0", "transformer"])
def test_what_is_said_is_what_the_model_says(
    ask: Ask, names: dict[str, str], runs: Path, kind: str
) -> None:
    from regard.models.decoding import greedy
    from regard.tasks.typed import read_typed

    run = regard.load_run(runs / names[kind])
    batch = read_typed(run.task(), SOURCE)
    model = run.model()
    words = greedy(model, model.encode(batch.source, batch.source_lengths), 32)
    expected = run.task().target_vocabulary.look_up(words[0].tolist())
    answer = ask("say", thing=names[kind], source=SOURCE)
    assert [step["word"] for step in answer["free"]["steps"]] == expected
    fed = np.array([[1, *words[0, :-1].tolist()]])
    import torch

    with torch.no_grad():
        logits = model(batch.source, batch.source_lengths, torch.from_numpy(fed)).logits
    chances = logits.softmax(dim=2)[0]
    for step, entry in enumerate(answer["free"]["steps"]):
        assert entry["p"] == pytest.approx(float(chances[step].max()), abs=1e-5)
        assert entry["top"][0] == [entry["word"], pytest.approx(entry["p"], abs=1e-5)]


@pytest.mark.parametrize("kind", ["aed 0", "transformer"])
def test_weights_and_terms_are_those_of_a_recording(
    ask: Ask, names: dict[str, str], runs: Path, kind: str
) -> None:
    said = [s["word"] for s in ask("say", thing=names[kind], source=SOURCE)["free"]["steps"]]
    end = said.index("<EOS>") if "<EOS>" in said else len(said)
    rec = record(runs, names[kind], SOURCE, said[:end])
    site = rec.site()
    head = rec.metadata.sites[site].heads - 1
    about, arrays = ask("head", thing=names[kind], source=SOURCE, site=site, head=head)
    rows = min(len(said), rec[f"{site}.weights"].shape[2])
    weights = rec[f"{site}.weights"][0, head, :rows]
    np.testing.assert_allclose(arrays["weights"][:rows], weights, atol=1e-6)
    about, arrays = ask("terms", thing=names[kind], source=SOURCE, site=site, head=head)
    assert about["exact"] and about["terms"][0] == "temporal-temporal"
    scores = rec[f"{site}.scores"][0, head, :rows]
    np.testing.assert_allclose(arrays["terms"].sum(axis=0)[:rows], scores, atol=1e-4)
    reference = regard.load_run(runs / names[kind]).record(n=40)
    queries, keys = reference.decomposition.site(site).head(head)
    known = min(rows, len(queries.temporal))
    own = queries.temporal[:known] @ keys.temporal[: scores.shape[1]].T
    np.testing.assert_allclose(arrays["terms"][0, :known], own, atol=1e-4)
    assert not arrays["terms"][0, known:].any()  # steps that were never recorded have no mean
    one = ask("terms", thing=names[kind], source=SOURCE, site=site, head=head, step=1)[1]["terms"]
    np.testing.assert_allclose(one[:, 0], arrays["terms"][:, 1], atol=1e-5)


def test_what_stands_beside_a_cell(ask: Ask, names: dict[str, str], runs: Path) -> None:
    said = [s["word"] for s in ask("say", thing=names["aed 0"], source=SOURCE)["free"]["steps"]]
    end = said.index("<EOS>") if "<EOS>" in said else len(said)
    rec = record(runs, names["aed 0"], SOURCE, said[:end], also=("lexical", "saliency"))
    about, arrays = ask("beside", thing=names["aed 0"], source=SOURCE)
    rows = min(len(said), rec["lexical"].shape[1])
    for what in ("lexical", "saliency"):
        np.testing.assert_allclose(arrays[what][:rows], rec[what][0, :rows], atol=1e-5)
    lexicon = regard.ibm1(regard.load_run(runs / names["aed 0"]).task(), n=10_000).first
    alpha = lexicon.alpha([(SOURCE.split(), said[:end])]).values[0]
    np.testing.assert_allclose(arrays["ibm1"][:end, :5], alpha, atol=1e-6)
    assert about["why"] == {}


def test_words_are_forced_and_the_target_is_fed(ask: Ask, names: dict[str, str]) -> None:
    answer = ask("say", thing=names["aed 0"], source=SOURCE, forced={"1": "3", "2": "3"})
    assert [s["word"] for s in answer["free"]["steps"][1:3]] == ["3", "3"]
    answer = ask("say", thing=names["aed 0"], source=SOURCE, target="1 2 3 1 2")
    assert [s["word"] for s in answer["forced"]["steps"]] == ["1", "2", "3", "1", "2", "<EOS>"]


def test_changes_change_and_say_how_far(ask: Ask, names: dict[str, str]) -> None:
    asked = {"thing": names["aed 0"], "source": SOURCE, "target": "1 2 3 1 2", "feed": "target"}
    weight = {"kind": "weight", "site": "attention", "step": 2, "source": 0, "weight": 1.0}
    answer = ask("say", **asked, changes=[weight])
    assert answer["reach"] == {"attention": 2, "output": 2}
    found = ask("head", **asked, changes=[weight], site="attention")[1]["weights"]
    plain = ask("head", **asked, site="attention")[1]["weights"]
    assert found[2, 0] == 1 and np.array_equal(found[:2], plain[:2])
    factors = [1.0] * 9
    factors[0] = 0.0
    terms = {"kind": "terms", "site": "attention", "factors": factors}
    scaled = ask("head", **asked, changes=[terms], site="attention")[1]["scores"]
    parts = ask("terms", **asked, site="attention")[1]["terms"]
    np.testing.assert_allclose(scaled, parts[1:].sum(axis=0), atol=1e-4)


def test_every_number_is_averaged_over_seeds(ask: Ask, names: dict[str, str], runs: Path) -> None:
    """Means and intervals of weights, terms, probabilities and curves, by numpy and scipy."""
    from scipy.stats import t

    both = [names["aed 0"], names["aed 1"]]
    asked = {"thing": both[0], "source": SOURCE, "target": "1 2 3 1 2", "feed": "target"}
    head = {**asked, "site": "attention"}
    for question in ("head", "terms"):
        about, arrays = ask("over", ask_name=question, question=head, things=both)
        each = [ask(question, **{**head, "thing": name})[1] for name in both]
        assert about["seeds"] == 2
        for name in each[0]:
            values = np.stack([one[name] for one in each]).astype(np.float64)
            reach = t.ppf(0.975, 1) * values.std(axis=0, ddof=1) / np.sqrt(2)
            np.testing.assert_allclose(arrays[name], values.mean(axis=0), atol=1e-5)
            low = values.mean(axis=0) - reach
            low = np.maximum(low, 0) if name == "weights" else low
            np.testing.assert_allclose(arrays[f"{name} low"], low, atol=1e-4)
    over = ask("over", ask_name="say", question=asked, things=both)
    each = [ask("say", **{**asked, "thing": name})["forced"]["steps"] for name in both]
    for step, (first, second) in enumerate(zip(*each, strict=True)):
        entry = over["mean"]["forced"]["steps"][step]
        assert entry["p"] == pytest.approx((first["p"] + second["p"]) / 2)
        assert entry["first"] == (first["first"] + second["first"]) / 2
    over = ask("over", ask_name="curves", question={"thing": both[0]}, things=both)
    last = [regard.load_run(runs / name).curve("loss")[1][-1] for name in both]
    assert over["mean"]["curves"]["train loss"][-1][1] == pytest.approx(np.mean(last))


def test_all_seeds_are_fed_the_same_words(ask: Ask, names: dict[str, str]) -> None:
    """Where nothing is fed, the second seed is asked for what the first one says."""
    both = [names["aed 0"], names["aed 1"]]
    free = ask("say", thing=both[0], source=SOURCE)["free"]["steps"]
    over = ask("over", ask_name="say", question={"thing": both[0], "source": SOURCE}, things=both)
    assert [w["word"] for w in over["mean"]["free"]["steps"]] == [w["word"] for w in free]
    assert over["low"]["free"]["steps"][0]["p"] <= over["mean"]["free"]["steps"][0]["p"]


def test_what_cannot_be_averaged_is_refused(ask: Ask, names: dict[str, str]) -> None:
    head = {"thing": names["aed 0"], "source": SOURCE, "site": "attention"}
    both = [names["aed 0"], names["transformer"]]
    fault = ask("over", 400, ask_name="head", question=head, things=both)
    assert "not seeds" in fault["error"][0]
    twice = [names["aed 0"]] * 2
    fault = ask("over", 400, ask_name="head", question=head, things=twice)
    assert "twice" in fault["error"][0]
    for name in ("inspect", "over", "export", "spaces"):
        fault = ask("over", 400, ask_name=name, question=head, things=[names["aed 0"]])
        assert "question over seeds" in fault["error"][0]
    fault = ask("over", 400, ask_name="head", question={"x": 1}, things=[names["aed 0"]])
    assert "does not fit" in fault["error"][0]


def test_differences_and_distances_are_those_of_the_weights(
    ask: Ask, names: dict[str, str]
) -> None:
    asked = {"source": SOURCE, "target": "1 2 3 1 2", "feed": "target", "site": "attention"}
    weight = {"kind": "weight", "site": "attention", "step": 2, "source": 0, "weight": 1.0}
    about, arrays = ask("difference", thing=names["aed 0"], **asked, changes=[weight])
    now = ask("head", thing=names["aed 0"], **asked, changes=[weight])[1]["weights"]
    before = ask("head", thing=names["aed 0"], **asked)[1]["weights"]
    assert about["same"] and arrays["difference"][2, 0] == pytest.approx(1 - before[2, 0])
    np.testing.assert_allclose(arrays["difference"], now - before, atol=1e-7)
    first = {"thing": names["aed 0"], **asked}
    second = {"thing": names["aed 1"], **asked}
    other = ask("head", **second)[1]["weights"]
    found = ask("apart", first=first, second=second)
    assert found["moved"] == pytest.approx(np.abs(before - other).sum() / 2 / 6, abs=1e-6)
    assert found["same"] == found["words"] == 6


def test_intervals_of_arrays_are_those_of_every_cell() -> None:
    from regard.statistics import Estimate, estimate_arrays

    values = np.random.default_rng(0).normal(0.5, 0.4, (5, 3, 4))
    ends = estimate_arrays(values, (0, 1))
    for cell in np.ndindex(3, 4):
        one = Estimate.share(values[(slice(None), *cell)])
        found = [float(end[cell]) for end in ends]
        np.testing.assert_allclose(found, [one.mean, one.low, one.high], rtol=1e-12)
    mean, low, high = estimate_arrays(values[:1])
    assert np.array_equal(mean, low) and np.array_equal(mean, high)


def test_thumbnails_keep_thin_lines() -> None:
    thin = np.zeros((1, 512, 300))
    thin[0, np.arange(300), np.arange(300)] = 1
    small = pool(thin, 40)
    assert small.shape == (1, 40, 40) and small.max() == 1
    assert (small[0].max(axis=0) == 1).all()


def test_arrays_survive_packing() -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 255], np.uint8)}
    about, found = unpack(pack({"x": "ü"}, arrays))
    assert about == {"x": "ü"}
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_a_newer_question_ends_the_older_and_the_queue_is_bounded() -> None:
    import asyncio
    import threading

    jobs, go = Jobs(workers=1, waiting=3), threading.Event()

    def wait(alive: Callable[[], None]) -> str:
        go.wait(5)
        alive()
        return "done"

    async def play() -> list[Any]:
        first = [asyncio.create_task(jobs.run("view", wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await jobs.run("view", wait)
        go.set()
        return await asyncio.gather(*first, return_exceptions=True)

    found = asyncio.run(play())
    assert [type(one) for one in found[:2]] == [Superseded, Superseded] and found[2] == "done"
    with pytest.raises(TooLong):
        asyncio.run(jobs.run("", lambda alive: threading.Event().wait(0.5), 0.1))
    jobs.stop()
