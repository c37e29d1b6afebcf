"""What was decided before the runs: plans, thresholds, presets and defaults are what they were.

Published results rest on all of it. A change that is meant goes into the file that is compared with
(`REGARD_SHOWN=write`, see `shown.py`), where everybody can read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest
from shown import hold

import regard.papers
from regard.models import MODELS
from regard.papers import EXPERIMENTS
from regard.papers.across._transformers import plan_transformer_multi30k
from regard.papers.snell2021 import _with_sets
from regard.papers.snell2021._data_sets import SETS
from regard.runs import RunConfig
from regard.runs.presets import PRESETS
from regard.tasks import TASKS
from regard.training.config import TrainingConfig

FILE = Path(__file__).with_name("decided.json")
PLAIN = (bool, int, float, str, tuple, list, dict, range, type(None))
MODULES = [
    info.name for info in walk_packages(regard.papers.__path__, "regard.papers.") if not info.ispkg
]


def plain(named: Mapping[str, Any]) -> dict[str, Any]:
    """What is written in capitals and is data."""
    found = {k: v for k, v in named.items() if isinstance(v, PLAIN) and k == k.upper()}
    return {k: list(v) if isinstance(v, range) else v for k, v in found.items()}


@pytest.mark.parametrize("name", MODULES)
def test_constants_of_experiments(name: str) -> None:
    module = vars(import_module(name))
    found = {k: v for k, v in plain(module).items() if not k.startswith("__") and k != "SETS"}
    kinds = [kind for kind in EXPERIMENTS.values() if kind.__module__ == name]
    for kind in kinds:
        own = {k: v for k, v in vars(kind).items() if isinstance(v, PLAIN) and k[0] != "_"}
        found[kind.__name__] = {k: v for k, v in own.items() if k not in ("title", "about")}
    hold(FILE, name, found, exact=True)


def digest(configs: list[RunConfig]) -> str:
    """All that determines some runs, in short."""
    settings = [config.placeless() for config in configs]
    return sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:10]


@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_plans(name: str, scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    experiment = EXPERIMENTS[name]({})
    if experiment.lacks(scale) and name != "across/hf":  # whose plan needs no package
        assert name in ("snell2021/agreement", "snell2021/bleu", "snell2021/optimal",
                        "snell2021/aer", "across/transformer-tasks")  # fmt: skip
        return  # their models are those below; aer's are read off its text
    plan = experiment.plan(scale)
    found = {condition: [len(runs), digest(runs)] for condition, runs in plan.items()}
    kept = {name: [count, _letters(text)] for name, (count, text) in found.items()}
    hold(FILE, f"{name} {scale}", kept, exact=True)


@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", SETS)
def test_models_of_data_sets(name: str, scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_with_sets, "count_updates", lambda data, task, recipe: recipe["epochs"])
    plan = _with_sets.plan_models(name, Path("data"), scale)
    kept = {
        condition: [len(runs), sum(run.seed for run in runs), _letters(digest(runs))]
        for condition, runs in plan.items()
    }
    hold(FILE, f"models of {name} {scale}", kept, exact=True)


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_transformers_that_translate(scale: Any) -> None:
    runs = plan_transformer_multi30k(Path("data"), scale)
    kept = [len(runs), sum(run.seed for run in runs), _letters(digest(runs))]
    hold(FILE, f"Transformers on multi30k {scale}", kept, exact=True)
    others = EXPERIMENTS["across/transformer-tasks"]({}).plan(scale)
    guided = EXPERIMENTS["across/transformer-guidance"]().plan(scale)
    assert others["lookup"] == guided["baseline"]  # trained once
    assert others["escan"] == EXPERIMENTS["across/transformer-terms"]().plan(scale)["escan"]


def _letters(text: str) -> str:
    """Without digits, which descriptions leave out."""
    return text.translate(str.maketrans("0123456789", "ghijklmnop"))


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    hold(FILE, f"preset {name}", dict(PRESETS[name]), exact=True)


KINDS = {
    **{f"task {name}": task.Config for name, task in TASKS.items()},
    **{f"model {name}": config for name, (config, _) in MODELS.items()},
    "training": TrainingConfig,
}


@pytest.mark.parametrize("name", KINDS)
def test_defaults_and_their_limits(name: str) -> None:
    schema = KINDS[name].model_json_schema()
    fields = {
        key: {k: v for k, v in field.items() if k not in ("description", "title")}
        for key, field in schema["properties"].items()
    }
    hold(FILE, f"settings of {name}", fields, exact=True)
