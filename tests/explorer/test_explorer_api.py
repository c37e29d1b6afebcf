"""What the explorer answers, held against the Python API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.explorer.jobs import Busy, Jobs, Superseded, TooLong
from regard.explorer.packing import pack, unpack
from regard.explorer.views import pool

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


def test_seeds_are_averaged_and_others_refused(ask: Ask, names: dict[str, str]) -> None:
    both = [names["aed 0"], names["aed 1"]]
    asked = {"source": SOURCE, "target": "1 2 3 1 2", "feed": "target", "site": "attention"}
    about, arrays = ask("seeds", thing=both[0], things=both, **asked)
    each = [ask("head", thing=name, **asked)[1]["weights"] for name in both]
    np.testing.assert_allclose(arrays["mean"], np.mean(each, axis=0), atol=1e-6)
    assert about["seeds"] == 2 and (arrays["low"] <= arrays["mean"]).all()
    others = [names["aed 0"], names["transformer"]]
    fault = ask("seeds", 400, thing=both[0], things=others, **asked)
    assert "not seeds" in fault["error"][0]


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
