"""Beams, spaces, units, finders, instruments, the ledger and files, held against the Python API."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.explorer.heads import show_head
from regard.explorer.splitting import split_head
from regard.instruments.interventions.ablate import ablate_model
from regard.instruments.scores._heads import describe_heads, entropies
from regard.models.decoding import beam
from regard.tasks.typed import read_typed

Ask = Callable[..., Any]
SOURCE, TARGET = "A B C A B", "1 2 3 1 2"
FED = {"source": SOURCE, "target": TARGET, "feed": "target"}


def run_of(runs: Path, name: str) -> regard.Run:
    return regard.load_run(runs / name)


def test_a_beam_is_a_tree_whose_best_path_is_what_the_search_gives(
    ask: Ask, names: dict[str, str], runs: Path
) -> None:
    run = run_of(runs, names["aed 0"])
    tree = ask("beam", thing=names["aed 0"], source=SOURCE, width=3)["tree"]
    model, batch = run.model(), read_typed(run.task(), SOURCE)
    memory = model.encode(batch.source, batch.source_lengths)
    words = beam(model, memory, 32, 3)[0]
    best = max((node for node in tree if node["best"]), key=lambda node: node["step"])
    said = run.task().target_vocabulary.look_up(words.tolist())
    assert best["path"] == said[: len(best["path"])] and best["ended"]
    nodes = {node["id"]: node for node in tree}
    for node in tree:
        parent = nodes.get(node["parent"])
        assert node["path"][:-1] == (parent["path"] if parent else [])
        assert node["score"] == pytest.approx((parent or {"score": 0})["score"] + node["log_p"])
    forced = {str(n): word for n, word in enumerate(best["path"])}
    steps = ask("say", thing=names["aed 0"], source=SOURCE, forced=forced)["free"]["steps"]
    total = sum(np.log(step["p"]) for step in steps[: len(forced)])
    assert total == pytest.approx(best["score"], abs=1e-3)


def test_spaces_are_those_of_the_instruments(ask: Ask, names: dict[str, str], runs: Path) -> None:
    run = run_of(runs, names["aed 0"])
    rec = run.record(n=40)
    found = ask("spaces", thing=names["aed 0"], **FED)
    paths = rec.inspect("trajectories", reach=0.05).first
    np.testing.assert_allclose(
        np.abs(found["paths"]["encoder"]), np.abs(paths.axes.project(paths.encoder, 3)), atol=1e-4
    )
    one = run.record(pairs=[(SOURCE.split(), TARGET.split())], inputs="teacher")
    here = paths.axes.project(one["encoder.states"][0].astype(np.float64), 3)
    np.testing.assert_allclose(
        np.abs(found["paths"]["sentence"]["encoder"]), np.abs(here), atol=1e-4
    )
    assert len(found["words"]["sentence"]["encoder"]) == 6 and found["words"]["words"]


def test_neighbours_are_the_nearest_of_all(ask: Ask, names: dict[str, str], runs: Path) -> None:
    run = run_of(runs, names["aed 0"])
    rec, one = run.record(n=40), run.record(pairs=[(SOURCE.split(), TARGET.split())])
    near = ask("neighbours", thing=names["aed 0"], **FED, side="encoder", step=2, count=5)["near"]
    away = np.linalg.norm(rec["encoder.states"] - one["encoder.states"][0, 2], axis=2)
    away[~rec["encoder.mask"]] = np.inf
    assert [n["distance"] for n in near] == pytest.approx(
        np.sort(away.ravel())[:5].tolist(), abs=1e-5
    )
    assert near[0]["words"][near[0]["step"]] == "C"


def test_units_and_gates_are_those_of_a_recording(
    ask: Ask, names: dict[str, str], runs: Path
) -> None:
    pairs = [(SOURCE.split(), TARGET.split())]
    rec = run_of(runs, names["aed 0"]).record(pairs=pairs, inputs="teacher", gates=True)
    about, arrays = ask("units", thing=names["aed 0"], **FED, side="encoder", label="word")
    np.testing.assert_allclose(arrays["states"], rec["encoder.states"][0], atol=1e-6)
    gates = [name for name in rec.names() if name.startswith("encoder.gates")]
    assert gates
    for name in gates:
        np.testing.assert_allclose(arrays[name], rec[name][0], atol=1e-6)
    assert len(about["reading"]["words"]) == 6 and 0 <= about["reading"]["accuracy"] <= 1


def test_heads_are_measured_as_by_hand(ask: Ask, names: dict[str, str], runs: Path) -> None:
    run = run_of(runs, names["transformer"])
    rec = run.record(n=40)
    rows = ask("heads", thing=names["transformer"])["rows"]
    assert len(rows) == 12
    row = next(r for r in rows if (r["site"], r["head"]) == ("decoder.1.cross", 1))
    entropy, diagonal, count = 0.0, 0.0, 0
    weights, mask = rec["decoder.1.cross.weights"], rec["decoder.mask"]
    for sample in range(40):
        for step in range(int(mask[sample].sum())):
            p = weights[sample, 1, step].astype(np.float64)
            entropy -= sum(x * np.log(x) for x in p if x > 0)
            diagonal += p[min(step, len(p) - 1)]
            count += 1
    assert row["entropy"] == pytest.approx(entropy / count, rel=1e-5)
    assert row["diagonal"] == pytest.approx(diagonal / count, rel=1e-5)
    assert "lost" in row
    assert describe_heads(rec)[0]["site"] == "encoder.0.self"
    assert entropies(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist() == pytest.approx([np.log(2), 0])


def test_a_head_taken_out_is_no_context(ask: Ask, names: dict[str, str], runs: Path) -> None:
    """Without its one head, the model must do as with its context removed altogether."""
    run = run_of(runs, names["aed 0"])
    rows = ask("heads", thing=names["aed 0"])["rows"]
    task, model = run.task(), run.model()
    batch = task.fresh(40, 0)
    with torch.no_grad():
        memory = model.encode(batch.source, batch.source_lengths)
        keys, values = memory.prepared
        empty = memory._replace(prepared=(keys, torch.zeros_like(values)))
        found = []
        for one in (memory, empty):
            said = model.decode(one, batch.inputs).logits.argmax(dim=2)
            found.append(float(((said == batch.target) & batch.target_mask).sum()
                               / batch.target_mask.sum()))  # fmt: skip
    assert rows[0]["lost"] == pytest.approx(found[0] - found[1], abs=1e-6)
    assert ablate_model is not None


def test_sentences_have_their_numbers(ask: Ask, names: dict[str, str], runs: Path) -> None:
    rec = run_of(runs, names["aed 0"]).record(n=40)
    rows = ask("sentences", thing=names["aed 0"])["rows"]
    assert len(rows) == 40
    wrong = (rec["predictions"] != rec["targets"]) & rec["decoder.mask"]
    for row in rows[:5]:
        n = row["sample"]
        assert row["error"] == pytest.approx(wrong[n].sum() / rec["decoder.mask"][n].sum())


def test_instruments_go_through_the_door(ask: Ask, names: dict[str, str], runs: Path) -> None:
    both = [names["aed 0"], names["aed 1"]]
    found = ask("inspect", things=both, instrument="breakdown", settings={"top": "3", "n": 50})
    table = regard.inspect([run_of(runs, n) for n in both], "breakdown", top=3, n=50).table()
    assert found["rows"] == table.cells() and found["seeds"] == 2
    assert found["svg"].lstrip().startswith(("<?xml", "<svg"))
    listed = {one["name"] for one in ask("instruments")}
    assert "breakdown" in listed and "prune" not in listed
    for fault in ({"instrument": "prune"}, {"instrument": "nothing"},
                  {"instrument": "breakdown", "settings": {"top": 0}},
                  {"instrument": "breakdown", "settings": {"n": 10**9}},
                  {"instrument": "breakdown", "settings": {"watch": {"a": 1}}}):  # fmt: skip
        assert ask("inspect", 400, things=both[:1], **fault)["error"]


def test_curves_are_those_of_the_run(ask: Ask, names: dict[str, str], runs: Path) -> None:
    found = ask("curves", thing=names["aed 0"])
    updates, losses = run_of(runs, names["aed 0"]).curve("loss")
    points = dict(map(tuple, found["curves"]["train loss"]))
    assert found["done"] and points[updates[-1]] == pytest.approx(losses[-1])


def test_curves_of_a_run_that_is_training_grow(
    runs: Path, names: dict[str, str], tmp_path: Path
) -> None:
    """A run without its DONE is training; what it has written since is there when asked again."""
    import shutil
    from types import SimpleNamespace

    from regard.explorer.doors import read_curves
    from regard.explorer.things import Things
    from regard.explorer.views import Views

    folder = tmp_path / names["aed 0"]
    shutil.copytree(runs / names["aed 0"], folder)
    for name in ("DONE", "SHA256SUMS"):
        (folder / name).unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:20]))
    views = Views(Things([folder]))
    asked: Any = SimpleNamespace(thing=folder.name)
    first = read_curves(views, asked, lambda: None)
    assert not first["done"]
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("".join(lines[20:]))
    second = read_curves(views, asked, lambda: None)
    assert len(second["curves"]["train loss"]) > len(first["curves"]["train loss"])


def test_the_ledger_is_all_claims(ask: Ask) -> None:
    from regard.explorer.doors import SHOWN_IN

    rows = ask("claims")
    assert [row["id"] for row in rows] == [row["id"] for row in regard.claims()]
    assert {row["view"] for row in rows} >= {"spaces", "training"} and SHOWN_IN


def test_files_hold_the_same_numbers(ask: Ask, names: dict[str, str], runs: Path) -> None:
    asked = {"thing": names["aed 0"], **FED, "site": "attention", "step": 2, "source_step": 1}
    weights = ask("head", thing=names["aed 0"], **FED, site="attention")[1]["weights"]
    rows = list(csv.DictReader(io.StringIO(ask("export", **asked, form="csv").text)))
    assert len(rows) == weights.size
    assert float(rows[7]["weight"]) == pytest.approx(weights[1, 1], abs=1e-9)
    assert "<svg" in ask("export", **asked, form="svg").text
    page = ask("export", **asked, form="html").text
    assert "<html" in page and "http://" not in page.split("<script")[0]


@pytest.mark.parametrize("changes", [
    [], [{"kind": "terms", "site": "attention", "factors": [0] + [1] * 8}],
    [{"kind": "weight", "site": "attention", "step": 1, "source": 0, "weight": 0.5},
     {"kind": "unit", "side": "encoder", "unit": 2}],
    [{"kind": "part", "site": "attention", "part": "temporal", "where": "alignment"},
     {"kind": "part", "site": "attention", "part": "input", "where": "context"}],
    [{"kind": "state", "side": "encoder", "step": 1, "sentence": "C C C", "other": 0},
     {"kind": "head", "site": "attention", "head": 0}],
])  # fmt: skip
def test_the_lines_of_python_give_the_same_numbers(
    ask: Ask, names: dict[str, str], changes: list[dict[str, Any]]
) -> None:
    asked = {"thing": names["aed 0"], **FED, "site": "attention", "changes": changes}
    weights = ask("head", **asked)[1]["weights"]
    lines = ask("export", **asked, form="python").text
    scope: dict[str, Any] = {}
    exec(lines, scope)  # what a person would paste
    np.testing.assert_allclose(scope["weights"], weights, atol=1e-5)


def test_a_classifier_says_one_thing(ask: Ask, names: dict[str, str], runs: Path) -> None:
    about = ask("describe", thing=names["classifier"])
    source = about["examples"][0]["source"]
    answer = ask("say", thing=names["classifier"], source=source)
    assert len(answer["free"]["steps"]) == 1
    found = ask("head", thing=names["classifier"], source=source, site="attention")[1]["weights"]
    assert found.shape == (1, len(answer["source"])) and found.sum() == pytest.approx(1, abs=1e-5)
    beside = ask("beside", thing=names["classifier"], source=source)[1]
    assert {"lexical", "saliency"} <= set(beside)


def test_a_recording_is_looked_at_as_it_is(
    runs: Path, names: dict[str, str], tmp_path: Path
) -> None:
    from regard.explorer import questions
    from regard.explorer.things import Things
    from regard.explorer.views import Views

    rec = run_of(runs, names["aed 0"]).record(n=30, out=tmp_path / "aed.safetensors")
    views = Views(Things([tmp_path / "aed.safetensors"]))
    (thing,) = views.list_things()
    assert thing["kind"] == "recording" and views.describe(thing["name"])["examples"]
    asked = questions.HeadQuestion(thing=thing["name"], sample=3, site="attention")
    found = show_head(views, asked, lambda: None)[1]["weights"]
    steps, width = int(rec["decoder.mask"][3].sum()), int(rec["encoder.mask"][3].sum())
    np.testing.assert_array_equal(found, rec["attention.weights"][3, 0, :steps, :width])
    terms = split_head(views, asked, lambda: None)[1]["terms"]
    scores = rec["attention.scores"][3, 0, :steps, :width]
    np.testing.assert_allclose(terms.sum(axis=0), scores, atol=1e-4)


def test_of_a_long_recording_the_first_samples_are_measured(
    runs: Path, names: dict[str, str]
) -> None:
    from regard.explorer.finders import take_samples

    rec = run_of(runs, names["aed 0"]).record(n=30)
    few = take_samples(rec, 10)
    assert len(few) == 10 and take_samples(rec, 30) is rec
    np.testing.assert_array_equal(few["attention.weights"], rec["attention.weights"][:10])
    assert describe_heads(few)[0]["entropy"] > 0
