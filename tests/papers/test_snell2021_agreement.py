"""snell2021/agreement: every cell against loops over checkpoints and turns, on tiny runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.instruments.scores import Scores, agreement
from regard.papers.framework.experiment import EXPERIMENTS, Runs
from regard.papers.snell2021 import agreement as module
from regard.papers.snell2021._compared import Cell, Compared, Models, draw_sentences
from regard.papers.snell2021._course import read_scores
from regard.papers.snell2021._data_sets import COLUMNS, MORE_XI, SETS, XI, DataSet
from regard.papers.snell2021._row import Row
from regard.papers.snell2021._with_sets import count_updates, plan_models
from regard.runs import Run, assemble, execute
from regard.tasks import Batch, CorpusTask

TINY = {"hidden": 5, "embedding": 4, "updates": 6, "batch": 8, "evaluate_every": 2,
        "checkpoint_every": 2, "held_out": 30, "minimum": 1, "milestones": (0,)}  # fmt: skip


@pytest.fixture(scope="module")
def models(
    tmp_path_factory: pytest.TempPathFactory, task_files: dict[str, dict[str, Any]]
) -> Models:
    root = tmp_path_factory.mktemp("runs")

    def run(seed: int, model: str = "snell-classifier", **more: Any) -> Run:
        settings = {**TINY, **task_files["classification"], **more}
        if model == "snell-proxy":
            settings.pop("hidden")
        return execute(assemble("classification", model, seed, settings), root)

    return Models(
        [run(seed) for seed in range(3)],
        run(3, attention="uniform"),
        run(0, "snell-proxy"),
        run(4, freeze=("encoder", "output")),
    )


@pytest.fixture(scope="module")
def compared(models: Models) -> Compared:
    task = models.attending[0].task()
    assert isinstance(task, CorpusTask)
    return Compared(models, draw_sentences(task, "validation", 30))


def share_right(run: Run, update: int, batches: Sequence[Batch]) -> float:
    """The share of target words that a model finds when the teacher's are fed."""
    model, right, total = run.model(update), 0, 0
    for batch in batches:
        logits = model(batch.source, batch.source_lengths, batch.inputs).logits
        right += int((logits.argmax(-1) == batch.target)[batch.target_mask].sum())
        total += int(batch.target_mask.sum())
    return right / total


def test_cells_are_those_of_a_loop(models: Models, compared: Compared) -> None:
    def read(run: Run, what: str, checkpoint: str | int = "reported") -> Scores:
        return read_scores(run, compared.batches, what, checkpoint)

    betas = [read(models.uniform, "lexical", at) for at in models.uniform.checkpoints()]
    proxy = read(models.proxy, "proxy")
    own = [read(run, "lexical") for run in models.attending]
    for turn, run in enumerate(models.attending):
        alpha, delta = read(run, "attention"), read(run, "saliency")
        cell = compared.cells[COLUMNS[0]][turn]
        assert cell.value == max(float(agreement(alpha, beta)) for beta in betas)
        assert cell.tau == max(agreement(alpha, beta).kendall for beta in betas)
        assert compared.cells[COLUMNS[2]][turn].value == max(
            float(agreement(delta, beta)) for beta in betas
        )
        others = [float(agreement(alpha, own[k])) for k in range(3) if k != turn]
        assert compared.cells[COLUMNS[3]][turn].value == pytest.approx(np.mean(others))
    (cell,) = compared.cells[COLUMNS[1]]
    assert cell.value == max(float(agreement(proxy, beta)) for beta in betas)


def test_xi_is_the_first_checkpoint_that_agrees_more(models: Models, compared: Compared) -> None:
    for turn, run in enumerate(models.attending):
        alpha = read_scores(run, compared.batches, "attention")
        others = [other for k, other in enumerate(models.attending) if k != turn]
        steps = run.checkpoints()
        agreed = np.array([[
            float(agreement(alpha, read_scores(other, compared.batches, "attention", at)))
            for at in steps] for other in others])  # fmt: skip
        right = np.array(
            [[share_right(other, at, compared.batches) for at in steps] for other in others]
        )
        best = right.max(axis=1).mean()
        found = compared.xi(turn)
        for name, column in ((XI[0], COLUMNS[0]), (XI[1], COLUMNS[3])):
            over = np.flatnonzero(agreed.mean(0) > compared.cells[column][turn].value)
            wanted = right.mean(0)[over[0]] if len(over) else best
            assert found[name] == (pytest.approx(wanted), bool(len(over)))
        assert found[XI[2]] == (pytest.approx(best), True)


def test_xi_of_the_other_columns_and_by_rank(models: Models, compared: Compared) -> None:
    for turn, run in enumerate(models.attending):
        alpha = read_scores(run, compared.batches, "attention")
        others = [other for k, other in enumerate(models.attending) if k != turn]
        steps = run.checkpoints()
        found = [
            [agreement(alpha, read_scores(o, compared.batches, "attention", at)) for at in steps]
            for o in others
        ]
        right = np.array([[share_right(o, at, compared.batches) for at in steps] for o in others])
        best = right.max(axis=1).mean()
        columns = (XI[0], *MORE_XI)
        for ranked, shown in ((False, compared.xi(turn)), (True, compared.xi_by_rank(turn))):
            agreed = np.array([[a.kendall if ranked else float(a) for a in row] for row in found])
            for name, column in zip(columns, COLUMNS[:3], strict=True):
                cells = compared.cells[column]
                cell = cells[turn] if len(cells) > 1 else cells[0]  # one bag of words
                over = np.flatnonzero(agreed.mean(0) > (cell.tau if ranked else cell.value))
                wanted = right.mean(0)[over[0]] if len(over) else best
                assert shown[name] == (pytest.approx(wanted), bool(len(over)))
        assert set(compared.xi_by_rank(turn)) == {*columns, XI[2]}


def test_the_papers_cells_are_where_they_belong() -> None:
    sst, captions = SETS["sst2"], SETS["multi30k"]
    assert sst.held_out[XI[2]] == pytest.approx(0.8353) and sst.held_out[MORE_XI[1]] == 0.7816
    assert sst.trained[XI[1]] == 1 and sst.kendall[XI[0]] == pytest.approx(0.7669)
    assert captions.bleu_kendall[MORE_XI[0]] == 6.91 and captions.bleu_trained[XI[2]] == 52.28


def test_trend_is_judged_on_other_sentences_than_its_peak_is_found(compared: Compared) -> None:
    found = compared._uniform
    for turn in compared.turns:
        peak = max(found, key=lambda at: found[at]["even"][turn].value)
        odd = {at: found[at]["odd"][turn].value for at in found}
        rise, fall = compared.ends(turn)
        assert rise == odd[peak] - odd[min(odd)] and fall == odd[peak] - odd[max(odd)]


def test_measures_of_the_claims(
    models: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = DataSet("Tiny", "tiny", "classification", {}, {}, {COLUMNS[0]: 0.9}, {}, {})
    monkeypatch.setitem(SETS, "tiny", data)
    made = EXPERIMENTS["snell2021/agreement"]({})
    monkeypatch.setattr(type(made), "find_sets", lambda self, scale: {"tiny": tmp_path})
    assert models.frozen is not None
    runs: Runs = {
        "tiny attention": models.attending, "tiny uniform": [models.uniform],
        "tiny proxy": [models.proxy], "tiny frozen": [models.frozen],
    }  # fmt: skip
    found = made.measure(runs, "full")
    table, kendall = found.measures["snell.table2"], found.measures["snell.kendall"]
    cells = [table[f"tiny_{name}"] for name in module.NAMES.values()]
    assert [cell.n for cell in cells] == [3, 1, 3, 3]
    assert table["farthest"].mean == pytest.approx(abs(cells[0].mean - 0.9))
    assert "farthest" not in kendall  # the paper has no τ to compare with: the claim is not run
    for claim in made.rows():
        assert claim.names - set(found.measures[claim.id]) <= {"farthest"}
    frozen = found.measures["snell.frozen"]
    assert frozen["least_difference"].mean == pytest.approx(
        cells[0].mean - frozen["tiny_frozen"].mean
    )
    for figure in found.figures:
        assert "<svg" in figure.svg()
    assert "Tiny" in str(found.tables[0].cells())


def test_runs_that_are_compared_share_no_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task_files: dict[str, dict[str, Any]]
) -> None:
    path = Path(task_files["classification"]["data"])
    data = DataSet("Tiny", "tiny", "classification", {"data": path.name}, {"held_out": 20})
    monkeypatch.setitem(SETS, "tiny", data)
    for scale in ("quick", "full"):
        plan = plan_models("tiny", path.parent, scale)  # type: ignore[arg-type]
        seeds = [
            c.seed for kind in ("attention", "uniform", "frozen") for c in plan[f"tiny {kind}"]
        ]
        assert len(set(seeds)) == len(seeds)
        assert len(plan["tiny attention"]) == (3 if scale == "quick" else 6)


def test_rows_need_no_paper(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETS, "tiny", DataSet("Tiny", "tiny", "classification", {}))
    row = Row.of("tiny", compared)
    assert 0 <= row.shuffled.mean <= 1 and row.xi(XI[2]).n == 3


def test_frozen_attention_is_not_scored_on_training_sentences(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETS, "tiny", DataSet("Tiny", "tiny", "classification", {}))
    assert Row.of("tiny", compared).frozen  # held-out sentences: a number for each turn
    monkeypatch.setattr(Compared, "compare_frozen", lambda self: pytest.fail("scored for nothing"))
    assert Row.of("tiny", compared, held_out=False).frozen == []


def test_a_row_is_kept_as_it_is(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETS, "tiny", DataSet("Tiny", "tiny", "classification", {}))
    row = Row.of("tiny", compared)
    row.cells[COLUMNS[0]][0] = Cell(0.5, 0.25, float("nan"))  # type: ignore[index]
    plain = json.loads(json.dumps(row.to_json(), allow_nan=False))
    assert repr(Row.from_json(plain)) == repr(row)


def test_sets_that_were_measured_before_stay_in_the_tables(
    models: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("other", "tiny"):  # in the order of the paper
        monkeypatch.setitem(SETS, name, DataSet(name.title(), name, "classification", {}))
    made: Any = EXPERIMENTS["snell2021/agreement"]({})
    at_hand = {"tiny": tmp_path}
    monkeypatch.setattr(type(made), "find_sets", lambda self, scale: at_hand)

    def runs(name: str) -> Runs:
        return {
            f"{name} attention": models.attending, f"{name} uniform": [models.uniform],
            f"{name} proxy": [models.proxy], f"{name} frozen": [models.frozen],
        }  # fmt: skip

    first = made.measure(runs("tiny"), "full")
    assert set(first.parts) == {"tiny"} and first.hours_before == 0
    assert made.coverage("full").startswith("1 of ")
    at_hand = {"other": tmp_path}
    made.earlier = {**first.parts, "gone": {}}  # a data set that there is no more
    both = made.measure(runs("other"), "full")
    assert list(both.parts) == ["other", "tiny"] and both.parts["tiny"] == first.parts["tiny"]
    assert both.hours_before == first.parts["tiny"]["core_hours"] > 0
    assert made.coverage("full").endswith("Other, Tiny") and made.coverage("full")[0] == "2"
    assert [row[0] for row in both.tables[0].cells()] == ["Other", "Tiny"]
    assert "Tiny was measured before, by version" in both.found[-1]
    ours, theirs = both.measures["snell.table2"], first.measures["snell.table2"]
    assert ours["tiny_alpha_beta"] == ours["other_alpha_beta"] == theirs["tiny_alpha_beta"]
    assert ours["least_over_shuffled"] == theirs["least_over_shuffled"]


def test_updates_are_those_of_whole_epochs(task_files: dict[str, dict[str, Any]]) -> None:
    data = DataSet("Tiny", "tiny", "classification", {})
    settings = {**task_files["classification"], "held_out": 30, "minimum": 1}
    task = assemble("classification", "snell-proxy", 0, settings).make_task()
    assert isinstance(task, CorpusTask)
    rows = len(task.rows["train"])
    assert count_updates(data, settings, {"epochs": 30, "batch": 7}) == 30 * rows // 7 > 1
    assert count_updates(data, settings, {"epochs": 1, "batch": 10 * rows}) == 1
