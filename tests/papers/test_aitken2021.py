"""Every experiment of aitken2021 measures what the rules of its claims need, on any runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.papers import EXPERIMENTS, ledger, reproduce
from regard.papers.aitken2021 import _attention
from regard.papers.framework import Experiment, Findings, Plan
from regard.runs import Run, RunConfig, execute

Check = Callable[[Experiment, Findings], None]
NAMES = [name for name in EXPERIMENTS if name.startswith("aitken2021/")]


def small(config: RunConfig) -> RunConfig:
    """The same run, hardly trained, with a few hidden units."""
    model = config.model.model_copy(update={"hidden": 10})
    task = config.task.model_copy(update={"held_out": 60})
    short = {"updates": 2, "batch": 8, "evaluate_every": 2, "checkpoint_every": 2}
    training = config.training.model_copy(update=short)
    return replace(config, model=model, task=task, training=training)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of runs for all experiments: they share many."""
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_measures_what_its_rules_need(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, check_findings: Check
) -> None:
    monkeypatch.setattr(_attention.record_runs, "__defaults__", (60, "last"))
    experiment = EXPERIMENTS[name]()
    plan: Plan = experiment.plan("quick")
    runs: dict[str, list[Run]] = {}
    for condition, configs in plan.items():
        runs[condition] = [execute(small(config), folder) for config in configs[:2]]
    findings = experiment.measure(runs, "quick")
    check_findings(experiment, findings)
    for claim in experiment.claims:
        assert all(value.n == 2 for value in findings.measures[claim].values())


def test_every_claim_of_the_paper_has_an_experiment() -> None:
    claims = [claim.id for claim in ledger().values() if claim.paper == "aitken2021"]
    assert len(claims) == 27
    assert sorted(claims) == sorted(c for name in NAMES for c in EXPERIMENTS[name].claims)


def test_full_scale_has_five_seeds_and_takes_the_corpus_that_is_named(tmp_path: Path) -> None:
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text("a\tb\n", encoding="utf-8")
    for name in NAMES:
        plan = EXPERIMENTS[name]({"english-french": str(corpus)}).plan("full")
        assert all(len(configs) >= 5 for configs in plan.values())
        for condition, configs in plan.items():
            if condition.startswith("translation"):
                assert configs[0].to_json()["task"]["source"] == str(corpus)


def test_data_that_nobody_wants_is_a_fault() -> None:
    with pytest.raises(RegardError, match="english-french"):
        reproduce("aitken2021", data={"english-frnch": "x"})


def test_a_corpus_that_is_not_there_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(RegardError, match=r"There is no file .*nowhere"):
        reproduce("aitken2021", "full", runs, tmp_path, data={"english-french": "nowhere.tsv"})
    assert not runs.exists()
