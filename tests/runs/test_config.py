from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.runs import RunConfig, assemble
from regard.runs.presets import PRESETS
from regard.tasks import TASKS


def test_json_and_back() -> None:
    config = assemble("addition", "transformer", 3, {"digits": "2+2,3+3", "hidden": 32})
    assert RunConfig.from_json(config.to_json()) == config
    assert config.model.hidden == 32


def test_text_and_numbers_mean_the_same_run() -> None:
    text = assemble("reversal", "chapter36", 0, {"hidden": "64", "learning_rate": "1e-3"})
    numbers = assemble(
        "reversal", "chapter36", 0, {"model.hidden": 64, "training.learning_rate": 0.001}
    )
    assert text.name == numbers.name


def test_everything_that_determines_a_run_is_in_its_name() -> None:
    base = assemble("reversal", "chapter36", 0, {}).name
    for seed, settings in ((1, {}), (0, {"hidden": 127}), (0, {"clip": 2}), (0, {"longest": 11})):
        assert assemble("reversal", "chapter36", seed, settings).name != base


def test_gru_says_which() -> None:
    assert assemble("reversal", "chapter36", 0, {"cell": "gru"}).model.cell == "gru-torch"


def test_all_faults_at_once_with_nearest_names() -> None:
    with pytest.raises(RegardError) as caught:
        assemble("reversl", "chapter3", 0, {"hiden": 4, "training.updats": 3, "embedding": "x"})
    text = "\n".join(caught.value.faults)
    assert len(caught.value.faults) == 5
    for right in ("'reversal'", "'chapter36'", "'hidden'", "'training.updates'"):
        assert f"Did you mean {right}" in text
    assert "model.embedding='x' does not fit" in text
    assert ", ".join(sorted(TASKS)) in text
    assert ", ".join(sorted(PRESETS)) in text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"hidden": 0}, "greater than or equal to 1"),
        ({"cell": "lstn"}, "Did you mean 'lstm'"),
        ({"attention": "dott"}, "Did you mean 'dot'"),
        ({"shortest": 12}, "shortest is 12 but longest is 10"),
        ({"forcing": "sometimes"}, "'always', 'never'"),
        ({"device": "abacus"}, "auto, cpu, cuda or mps"),
        ({"padding": "seen"}, "'masked' or 'read'"),
    ],
)
def test_faults_say_what_would_fit(settings: dict[str, object], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        assemble("reversal", "chapter36", 0, settings)


def test_every_preset_assembles_and_builds() -> None:
    for name in PRESETS:
        config = assemble("reversal", name, 0, {"hidden": 8})
        assert config.make_model(config.make_task()).parameter_count > 0


def test_a_preset_has_settings_of_its_own_for_a_task() -> None:
    plain, other = assemble("one-to-one", "ao", 0, {}), assemble("escan", "ao", 0, {})
    assert plain.to_json()["model"]["time_scale"] == 20
    assert other.to_json()["model"]["time_scale"] == 100
    assert assemble("escan", "ao", 0, {"time_scale": 30}).to_json()["model"]["time_scale"] == 30


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("task", list(TASKS))
def test_every_preset_fits_every_task(
    preset: str, task: str, task_files: dict[str, dict[str, Any]]
) -> None:
    """Or says what does not fit: one table for both sides needs one vocabulary."""
    settings = {"held_out": 20, "updates": 0, **task_files.get(task, {})}
    config = assemble(task, preset, 0, settings)
    made = config.make_task()
    sizes = len(made.source_vocabulary), len(made.target_vocabulary)
    if getattr(config.model, "shared_embedding", False) and sizes[0] != sizes[1]:
        with pytest.raises(RegardError, match="one vocabulary"):
            config.make_model(made)
        return
    assert config.make_model(made).parameter_count > 0


def test_the_place_of_a_file_does_not_matter(tmp_path: Path) -> None:
    names = set()
    for folder in ("here", "there"):
        path = tmp_path / folder / "a.tsv"
        path.parent.mkdir()
        path.write_text("good\tfine day\nbad\train\n", encoding="utf-8")
        names.add(assemble("classification", "snell-classifier", 0, {"data": str(path)}).name)
    assert len(names) == 1
    other = tmp_path / "there" / "b.tsv"
    other.write_text("good\tfine day\nbad\thail\n", encoding="utf-8")
    assert assemble("classification", "snell-classifier", 0, {"data": str(other)}).name not in names


def test_other_content_in_a_file_makes_another_run(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    names = []
    for text in ("a b\tc d\n", "a b\tc e\n", "a b\tc d\n"):
        pairs.write_text(text, encoding="utf-8")
        names.append(assemble("parallel", "aed", 0, {"source": str(pairs)}).name)
    assert names[0] == names[2] != names[1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recurrent": "false", "attention": "none"}, "needs an attention"),
        ({"readout": "context", "attention": "none"}, "needs an attention"),
        ({"heads": "2", "attention": "dot"}, "needs an attention that has heads"),
        ({"attention_size": "8", "attention": "dot"}, "needs an attention that has one"),
        ({"recurrent": "false", "attention": "dot", "bidirectional": "true"}, "no direction"),
    ],
)
def test_wirings_that_make_no_sense_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(RegardError, match=words):
        assemble("reversal", "chapter36", 0, settings)


def test_one_hot_inputs_need_room_for_every_word() -> None:
    config = assemble("one-to-one", "ao", 0, {"one_hot_size": 4})
    with pytest.raises(RegardError, match="one_hot_size=4"):
        config.make_model(config.make_task())


def test_components_to_freeze_are_one_word_on_the_command_line() -> None:
    config = assemble("lookup", "baan", 0, {"freeze": "encoder.embedding,output"})
    assert config.training.freeze == ("encoder.embedding", "output")
    assert RunConfig.from_json(config.to_json()) == config


def test_settings_that_do_not_go_together_are_told_without_all_the_others() -> None:
    with pytest.raises(RegardError) as caught:
        assemble("lookup", "baan", 0, {"guidance_by": "force"})
    (fault,) = caught.value.faults
    assert fault == "The settings of training do not fit: guidance_by=force needs guidance=1."
