"""What experiments take: measured when they are done, told before they begin."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from regard.cli.main import app
from regard.papers import EXPERIMENTS
from regard.papers.framework import Plan, cost
from regard.papers.framework.claims import ledger
from regard.papers.framework.cost import add_hours, expect, tabulate
from regard.papers.snell2021.agreement import AgreementExperiment
from regard.papers.snell2021.bleu import BleuExperiment
from regard.report.markdown import show_hours
from regard.statistics import Estimate
from regard.training.config import TrainingConfig
from regard.training.loop import Trainer

NAME = "chapter36/scratchpad"


def run(folder: str, seconds: float, **more: float) -> Any:
    return SimpleNamespace(folder=Path(folder), summary={"seconds": seconds, **more})


def test_a_run_that_conditions_share_counts_once() -> None:
    shared = run("a", 1800.0)
    assert add_hours({"x": [shared, run("b", 900.0)], "y": [shared]}, 900.0) == 1.0
    waited = run("c", 7200.0, core_seconds=1800.0)
    assert add_hours({"x": [waited]}) == 0.5, "waiting does not count"


@pytest.fixture
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update takes half a second, an evaluation ten, and nothing is published."""
    monkeypatch.setattr(cost, "time_parts", lambda config: (0.5, 10.0))
    monkeypatch.setattr(cost, "published_rows", lambda: {})


@pytest.mark.usefixtures("half_a_second")
def test_what_is_left_is_counted(tmp_path: Path) -> None:
    experiment = EXPERIMENTS[NAME]()
    found = expect(NAME, experiment, "full", tmp_path)
    assert (found.runs, found.done, found.seeds, found.then) == (10, 0, 5, False)
    evaluations = cost.count_evaluations(experiment.plan("full")["plain"][0].training)
    each = (4000 * 0.5 + evaluations * 10) / 3600
    assert evaluations > 10 and found.core_hours == pytest.approx(10 * each)
    assert found.known_from == "timed"
    done = tmp_path / experiment.plan("full")["plain"][2].name
    done.mkdir()
    (done / "DONE").write_text("{}")
    left = expect(NAME, experiment, "full", tmp_path)
    assert left.done == 1 and left.core_hours == pytest.approx(9 * each)
    assert list(tmp_path.iterdir()) == [done]  # nothing was begun


@pytest.mark.usefixtures("half_a_second")
def test_a_bar_goes_from_experiment_to_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int, str]] = []
    monkeypatch.setattr(cost, "make_bar", lambda what, wanted: lambda *now: told.append(now))
    monkeypatch.setattr(cost, "expect", lambda name, *about: name)
    assert cost.expect_all({"a": None, "b": None}, "quick", progress=True) == ["a", "b"]  # type: ignore[comparison-overlap, dict-item]
    assert told == [(1, 2, "a"), (2, 2, "b")]


def test_further_runs_are_announced() -> None:
    found = expect("snell2021/heads", EXPERIMENTS["snell2021/heads"](), "full", None)
    assert found.then and cost.LATER in str(tabulate([found], "full").rows)


def test_what_was_measured_is_taken_where_there_is_that(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"experiment": NAME, "scale": "full", "core_hours": 2.5}
    monkeypatch.setattr(cost, "published_rows", lambda: {"c36.scratchpad": row})
    found = expect(NAME, EXPERIMENTS[NAME](), "full", None)
    assert (found.core_hours, found.known_from) == (2.5, "published")
    assert cost.read_published(NAME, EXPERIMENTS[NAME](), "quick", {}) is None
    monkeypatch.setattr(cost, "published_rows", lambda: {"x": {**row, "core_hours_from": "timed"}})
    told = cost.read_published(NAME, EXPERIMENTS[NAME](), "full", {})
    assert told is None, "timing it here is as good, and of here"


def test_data_sets_that_were_measured_one_by_one_count_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "parts.json"
    path.write_text(json.dumps({"sst2": {"core_hours": 0.5}, "multi30k": {"core_hours": 2.0}}))
    monkeypatch.setattr(cost, "parts_path", lambda name: path)
    one: Plan = {"sst2 proxy": []}
    both: Plan = {**one, "multi30k proxy": []}
    other: Plan = {"yelp a": []}

    def read(plan: Plan) -> float | None:
        name = "snell2021/agreement"
        return cost.read_published(name, EXPERIMENTS[name](), "full", plan)

    assert read(one) == 0.5
    assert read(both) == 2.5
    assert read(other) is None, "it is timed"
    assert read({**one, **other}) is None


def test_hours_that_are_only_expected_are_told_from_those_it_took() -> None:
    claim = ledger()["c36.scratchpad"]
    measures = {name: Estimate.of([0.5]) for name in claim.names}
    took = claim.row("full", measures, None, 1.5)
    expected = claim.row("full", measures, None, 1.5, "timed")
    assert (took["core_hours_from"], expected["core_hours_from"]) == ("measured", "timed")
    assert cost.took(took) and not cost.took(expected) and not cost.took(claim.row(None, None))
    assert (show_hours(took), show_hours(expected)) == ("1.5", "~1.5")
    assert show_hours(claim.row(None, None)) == "–"
    assert claim.row(None, None)["core_hours_from"] is None


def test_updates_and_evaluations_are_timed_on_one_core() -> None:
    (config, *_) = EXPERIMENTS[NAME]().plan("quick")["plain"]
    update, evaluation = cost.time_parts(config)
    assert 0 < update < 10 and 0 < evaluation < 60


def test_words_that_are_fed_at_the_end_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update counts as the mean of those of the first and of the last."""
    (config, *_) = EXPERIMENTS[NAME]().plan("quick")["plain"]
    stepped: list[int] = []
    step = Trainer.step

    def note(trainer: Trainer) -> float:
        stepped.append(trainer.update)
        return step(trainer)

    monkeypatch.setattr(Trainer, "step", note)
    cost.time_parts(config)
    last = config.training.updates
    assert stepped == [0, 1, 2, 3, last - 3, last - 2, last - 1]


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        ({"updates": 100, "evaluate_every": 50}, 3),
        ({"updates": 120, "evaluate_every": 50}, 4),
        ({"updates": 100, "evaluate_every": 50, "milestones": (0, 10, 50, 200)}, 5),
    ],
)
def test_evaluations_are_counted(settings: dict[str, Any], times: int) -> None:
    assert cost.count_evaluations(TrainingConfig(**settings)) == times


def test_the_command_starts_nothing(tmp_path: Path, half_a_second: None) -> None:
    runs = tmp_path / "runs"
    words = ["reproduce", NAME, "--plan", "--runs", str(runs), "--out", str(tmp_path / "out")]
    answer = CliRunner().invoke(app, [*words, "--json"])
    assert answer.exit_code == 0, answer.output
    (row,) = json.loads(answer.output)
    assert row["experiment"] == NAME and row["runs"] == 4 and row["core_hours"] > 0
    shown = CliRunner().invoke(app, words)
    assert "core hours" in shown.output and not list(tmp_path.iterdir())


def test_a_row_says_how_many_data_sets_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {"sst2": Path(), "yelp": Path(), "multi30k": Path()}
    monkeypatch.setattr("regard.papers.snell2021._with_sets.find_sets", lambda *_: sets)
    words = AgreementExperiment().coverage("full")
    assert words == "3 of 11 data sets: Yelp (stand-in), SST, Multi30k"
    assert BleuExperiment().coverage("full") == "1 of 5 data sets: Multi30k"
