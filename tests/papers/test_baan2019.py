"""Every experiment of baan2019 measures what the rules of its claims need, on any runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from regard.papers import EXPERIMENTS, ledger
from regard.papers.baan2019.accuracy import compare_times
from regard.papers.framework import Experiment, Findings, Plan
from regard.runs import Run, RunConfig, assemble, execute

Check = Callable[[Experiment, Findings], None]
NAMES = [name for name in EXPERIMENTS if name.startswith("baan2019/")]


def small(config: RunConfig) -> RunConfig:
    """The same run, hardly trained, with a few hidden units."""
    model = config.model.model_copy(update={"hidden": 20, "decoder_embedding": 20})
    short = {"updates": 30, "batch": 16, "evaluate_every": 30, "checkpoint_every": 30}
    training = config.training.model_copy(update=short)
    return replace(config, model=model, training=training)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of runs for all experiments: they share most."""
    return tmp_path_factory.mktemp("runs")


def trained(plan: Plan, folder: Path, *, shrink: bool) -> dict[str, list[Run]]:
    return {
        condition: [execute(small(c) if shrink else c, folder) for c in configs[:2]]
        for condition, configs in plan.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_measures_what_its_rules_need(
    name: str, folder: Path, check_findings: Check
) -> None:
    experiment = EXPERIMENTS[name]()
    runs = trained(experiment.plan("quick"), folder, shrink=True)
    further = experiment.then(runs, "quick")
    for config in (c for configs in further.values() for c in configs):
        assert config.training.start is not None
        assert Path(config.training.start).parent == folder.resolve() / "starts"
    runs |= trained(further, folder, shrink=False)
    check_findings(experiment, experiment.measure(runs, "quick"))


def test_every_claim_of_the_paper_has_an_experiment() -> None:
    claims = [claim.id for claim in ledger().values() if claim.paper == "baan2019"]
    assert len(claims) == 15
    assert sorted(claims) == sorted(c for name in NAMES for c in EXPERIMENTS[name].claims)


def conditions(name: str, data: Mapping[str, str] | None = None) -> Plan:
    return EXPERIMENTS[f"baan2019/{name}"](data).plan("full")


def test_full_scale_is_the_paper_s_recipe_over_five_seeds(tmp_path: Path) -> None:
    plan = conditions("accuracy", {"lookup": str(tmp_path)})
    for condition, guidance in (("guided", 1.0), ("baseline", 0.0)):
        assert [config.seed for config in plan[condition]] == [0, 1, 2, 3, 4]
        for config in plan[condition]:
            assert (config.training.batch, config.training.updates) == (1, 23_200)
            assert config.training.guidance == guidance
            assert config.to_json()["task"]["data"] == str(tmp_path)
    assert {c.to_json()["model"]["cell"] for c in conditions("lstm")["lstm"]} == {"lstm"}


def test_the_time_of_a_recipe_grows_with_its_updates() -> None:
    tiny = {"hidden": "16", "batch": "2"}
    short = assemble("lookup", "baan", 0, {**tiny, "updates": "100"})
    long = assemble("lookup", "baan", 0, {**tiny, "updates": "1000"})
    assert 0.05 < compare_times(short, long, rounds=3, updates=5) < 0.2
