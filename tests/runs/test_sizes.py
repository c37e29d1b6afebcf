"""A model is built without its task: nobody needs a corpus to count its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute
from regard.runs.config import sizes_of
from regard.runs.presets import PRESETS
from regard.runs.weights import infer_sizes
from regard.tasks import TASKS


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Run]:
    """A run on a corpus that is gone."""

    def train(**settings: Any) -> Run:
        corpus = tmp_path / "corpus.tsv"
        words = [f"{a} {b}\t{b} {a} {b}\n" for a in "abcdefghij" for b in "klmnop"]
        corpus.write_text("".join(words), encoding="utf-8")
        small = {"source": str(corpus), "hidden": 8, "updates": 2, "held_out": 5}
        run = execute(assemble("parallel", "aed", 0, {**small, **settings}), tmp_path)
        corpus.unlink()
        return Run.open(run.folder)

    return train


def test_a_model_is_there_when_its_corpus_is_not(trained: Callable[..., Run]) -> None:
    run = trained()
    with pytest.raises(RegardError):
        run.task()
    model = run.model()
    (run.folder / "sizes.json").unlink()  # as in a run of an earlier version
    again = run.model()
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_model_whose_weights_do_not_tell_needs_the_task(tmp_path: Path) -> None:
    few = {"hidden": 8, "updates": 1, "held_out": 5}
    run = execute(assemble("one-to-one", "ao", 0, few), tmp_path)  # one-hot words in 100 dimensions
    (run.folder / "sizes.json").unlink()
    assert infer_sizes(run.model().state_dict(), run.config.blank_model) is None
    assert sizes_of(run.task()) == (len(run.model().source_embedding.table),) * 2  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("task", ["copying", "lookup", "reversal"])
def test_shapes_tell_the_sizes_or_nothing(task: str, preset: str) -> None:
    config = assemble(task, preset, 0, {"hidden": 8, "held_out": 5})
    made = config.make_task()
    try:
        weights = config.make_model(made).state_dict()
    except RegardError:  # one table for both sides needs one vocabulary
        return
    found = infer_sizes(weights, config.blank_model)
    assert found == sizes_of(made) or (found is None and preset.startswith("ao"))


def test_shapes_tell_that_there_are_two_labels() -> None:
    config = assemble("keyword", "snell-classifier", 0, {"hidden": 8, "held_out": 5})
    made = config.make_task()
    weights = config.make_model(made).state_dict()
    assert infer_sizes(weights, config.blank_model) == sizes_of(made)


def test_runs_on_the_same_data_share_their_task(
    tmp_path: Path, task_files: dict[str, dict[str, Any]]
) -> None:
    def config(seed: int, **settings: Any) -> RunConfig:
        data = task_files["classification"]
        few = {**data, "held_out": 10, **settings}
        return assemble("classification", "snell-classifier", seed, few)

    first = Run(tmp_path / "a", config(0)).task()
    assert first is Run(tmp_path / "b", config(1, hidden=8)).task()
    assert first is not Run(tmp_path / "a", config(0, held_out=7)).task()


@pytest.mark.parametrize("task", list(TASKS))
def test_every_configuration_of_a_task_can_be_a_key(
    task: str, task_files: dict[str, dict[str, Any]]
) -> None:
    one, two = (assemble(task, "aed", 0, task_files.get(task, {})).task for _ in range(2))
    assert one is not two and hash(one) == hash(two) and one == two
