"""A timelapse is the instrument at each checkpoint, and says what it leaves out."""

from __future__ import annotations

import csv
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import RegardError
from regard.instruments import INSTRUMENTS, sources
from regard.instruments._course import FACTOR, LINES, PANELS, Courses
from regard.instruments.components import breakdown
from regard.instruments.interventions import ablate
from regard.instruments.result import SIZE
from regard.instruments.timelapse import _shorten
from regard.recordings.record import record
from regard.runs import Run
from regard.statistics import Estimate

SMALL = {"hidden": 6, "updates": 4, "held_out": 10, "batch": 8}
KEPT = [0, 2, 4]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    out = tmp_path_factory.mktemp("runs")
    made = [
        regard.train("one-to-one", "aed", seed, out, checkpoint_every=2, **SMALL)
        for seed in range(2)
    ]
    return [*made, regard.train("one-to-one", "aed", 2, out, checkpoint_every=4, **SMALL)]


def test_numbers_are_those_of_each_checkpoint(runs: list[Run]) -> None:
    found = regard.timelapse(runs[:2], "breakdown", n=20, top=2)
    assert found.updates == KEPT and found.n == 2 and not found.left_out
    for moment in found.moments:
        kept = [record(run, n=20, checkpoint=moment.update) for run in runs[:2]]
        alone = breakdown(kept, top=2)
        assert moment.estimates == alone.estimates()
        assert moment.figure == alone.figure()
        for name, value in alone.estimates().items():
            assert found.estimates()[f"{name} at {moment.update}"] == value
            seeds = tuple(seed.values()[f"{name} at {moment.update}"] for seed in found.seeds)
            assert seeds == value.values


def test_instruments_of_runs_are_asked_at_the_checkpoint(runs: list[Run]) -> None:
    found = runs[0].timelapse("weights", block="readout", clip=0)
    assert found.of == "heatmaps"
    means = found.courses["readout mean"]
    for update in KEPT:
        weight = runs[0].model(update).output_layer().weight  # type: ignore[union-attr]
        assert means[update].mean == pytest.approx(float(weight.detach().abs().mean()), rel=1e-5)
    changed = regard.timelapse(runs[0], "ablate", n=20, checkpoints=[4, 0])
    assert changed.updates == [0, 4]
    alone = ablate(runs[0], n=20, checkpoint=0)
    assert changed.moments[0].estimates == alone.estimates()


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_every_instrument_that_a_checkpoint_can_be_named_to(name: str, runs: list[Run]) -> None:
    refused = {"proxy_probe": "no bag of words", "agreement": "two models and more"}
    if "checkpoint" not in INSTRUMENTS[name].accepted:
        refused[name] = "cannot be asked at a checkpoint"
    if name in refused:
        with pytest.raises(RegardError, match=refused[name]):
            regard.timelapse(runs[0], name, n=40, checkpoints=[4])
        return
    found = regard.timelapse(runs[0], name, n=40, checkpoints=[4])
    assert found.updates == [4] and found.table().rows and found.figure().panels
    assert found.moments[0].figure.panels


def test_seeds_share_checkpoints(runs: list[Run]) -> None:
    assert regard.timelapse([runs[0], runs[2]], "sizes", n=10, pool=True).updates == [0, 4]
    assert runs[0].checkpoints() == KEPT and runs[2].checkpoints() == [0, 4]
    with pytest.raises(RegardError, match=r"differ in their configuration.*pool=True"):
        regard.timelapse([runs[0], runs[2]], "sizes", n=10)


def test_one_recording_at_a_time(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Any]] = []

    def one(*args: Any, **more: Any) -> Any:
        assert all(old() is None for old in alive)
        made = record(*args, **more)
        alive.append(weakref.ref(made))
        return made

    monkeypatch.setattr(sources, "record", one)
    for name in ("breakdown", "gates"):
        regard.timelapse(runs[:2], name, n=10)
    assert len(alive) == 2 * 2 * len(KEPT)


def test_progress_is_told(runs: list[Run]) -> None:
    seen: list[tuple[int, int]] = []
    regard.timelapse(runs[:2], "sizes", n=10, watch=lambda done, total: seen.append((done, total)))
    assert seen == [(k + 1, 6) for k in range(6)]


def test_what_cannot_be_measured_is_left_out_and_told(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = Run.model

    def sometimes(run: Run, checkpoint: str | int = "reported") -> Any:
        if checkpoint == 2:
            raise RegardError("There is nothing yet.")
        return plain(run, checkpoint)

    monkeypatch.setattr(Run, "model", sometimes)
    found = regard.timelapse(runs[0], "heatmaps")
    assert found.updates == [0, 4] and found.left_out == {2: "There is nothing yet."}
    assert "nothing at 2" in found.table().title
    assert "Nothing at update 2: There is nothing yet." in found.figure().caption
    assert "There is nothing yet." in found.page()
    assert found.to_json()["left_out"] == {"2": "There is nothing yet."}


def test_what_is_wrongly_asked_is_said(runs: list[Run], tmp_path: Path) -> None:
    run = runs[0]
    with pytest.raises(RegardError, match="Did you mean 'breakdown'"):
        regard.timelapse(run, "breakdwn")
    with pytest.raises(RegardError, match="cannot be asked at a checkpoint"):
        regard.timelapse(run, "swap")
    with pytest.raises(RegardError, match="Did you mean 'top'"):
        regard.timelapse(run, "breakdown", tpo=3)
    with pytest.raises(RegardError, match="instead of checkpoint"):
        regard.timelapse(run, "heatmaps", checkpoint=0)
    with pytest.raises(RegardError, match=r"no checkpoint 3\. Kept: 0, 2, 4"):
        regard.timelapse(run, "breakdown", checkpoints=[0, 3])
    with pytest.raises(RegardError, match="Name a checkpoint"):
        regard.timelapse(run, "breakdown", checkpoints=[])
    with pytest.raises(RegardError, match="1 or more"):
        regard.timelapse(run, "breakdown", n=5, top=0)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text((run.folder / "config.json").read_text())
    with pytest.raises(RegardError, match="no checkpoint that all runs kept"):
        regard.timelapse([run, tmp_path / "empty"], "breakdown")


def test_files(runs: list[Run], tmp_path: Path) -> None:
    found = regard.timelapse(runs[:2], "breakdown", n=10)
    files = found.save(tmp_path)
    assert [f.name for f in files] == [
        f"timelapse-breakdown.{end}" for end in ("json", "csv", "svg", "html")
    ]
    plain = json.loads(files[0].read_text())
    assert (plain["instrument"], plain["of"], plain["checkpoints"]) == (
        "timelapse", "breakdown", KEPT,
    )  # fmt: skip
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    assert len(rows) == len(plain["rows"]) == len(found.estimates())
    for row, entry in zip(rows, plain["rows"], strict=True):
        assert (int(row["update"]), row["number"]) == (entry["update"], entry["number"])
        assert float(row["mean"]) == pytest.approx(entry["mean"])
        assert [float(row["low"]), float(row["high"])] == pytest.approx(entry["interval"])
    page = files[3].read_text()
    assert all(f'"name": "update {update}"' in page for update in KEPT)
    assert "http" not in page.split("const film = ")[1].split("const get")[0]
    table = found.table(["temporal-temporal"])
    assert table.columns == ("update", "temporal-temporal") and len(table.rows) == len(KEPT)
    with pytest.raises(RegardError, match="Did you mean 'temporal-temporal'"):
        found.table(["temporal-temprl"])


def course(*values: float, within: tuple[float, float] | None = None) -> dict[int, Estimate]:
    return {10 * k: Estimate.of([value], within) for k, value in enumerate(values)}


def test_what_changes_most_is_shown() -> None:
    made = Courses(
        still=course(5, 5, 5),
        half=course(0.2, 0.7, within=(0, 1)),
        tenth=course(0.9, 1.0, within=(0, 1)),
        grows=course(0, 8, 4),
        tiny=course(1e-3, 2e-3, within=SIZE),
    )
    assert made.change("half") == pytest.approx(0.5) and made.change("grows") == 1
    assert made.liveliest(2) == ["half", "grows"] or made.liveliest(2) == ["grows", "tiny"]
    panels, shown, every = made.panels()
    labels = [[line.label for line in panel.marks] for panel in panels]  # type: ignore[union-attr]
    assert labels == [["half", "tenth"], ["grows"], ["tiny"]]
    assert (shown, every) == (4, 5)


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30))
def test_panels_hold_what_can_be_compared(values: list[float]) -> None:
    made = Courses({str(k): course(value, value / 2) for k, value in enumerate(values)})
    for family in made.families():
        sizes = [made.size(name) for name in family]
        assert max(sizes) <= FACTOR * min(sizes) or max(sizes) == 0 or min(sizes) == 0
    assert sorted(n for family in made.families() for n in family) == sorted(made)
    panels, shown, every = made.panels()
    assert 1 <= len(panels) <= PANELS and every == len(values)
    assert shown == sum(len(panel.marks) for panel in panels)
    assert all(len(panel.marks) <= LINES for panel in panels)


def test_bands_over_seeds() -> None:
    made = Courses(a={0: Estimate.of([1.0, 2.0]), 5: Estimate.of([2.0, 4.0])})
    (line,) = made.panels()[0][0].marks
    assert line.x == (0, 5) and line.y == (1.5, 3.0)  # type: ignore[union-attr]
    np.testing.assert_allclose(line.low[0], Estimate.of([1.0, 2.0]).low)  # type: ignore[union-attr, index]


def test_one_seed_has_no_interval_to_show() -> None:
    several = Estimate.of([0.2, 0.4])
    assert _shorten(Estimate.of([0.25])) == 0.25
    assert _shorten(several) is several and _shorten(None) is None
