"""Ranges of hidden units and saturation of gates, against loops over samples and steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest

import regard
from regard import RegardError
from regard.display import Boxes, Line, Points
from regard.instruments.units import activations, gates
from regard.recordings import Recording

SMALL: dict[str, Any] = {"hidden": 8, "updates": 0, "held_out": 10}


def gated(cell: str | None = None) -> Recording:
    """Random gates, of a cell that is known or not."""
    origin = {"model": {"cell": cell}} if cell else None
    return brute.recording(brute.gated(brute.arrays(samples=11)), origin=origin)


def collected(recording: Recording, name: str, side: str, unit: int) -> list[float]:
    """A unit's values at all samples and steps where there is a word."""
    values, mask = recording[name], recording[f"{side}.mask"]
    return [
        float(values[a, t, unit])
        for a in range(values.shape[0])
        for t in range(values.shape[1])
        if mask[a, t]
    ]


def test_activations_against_loops() -> None:
    recording = brute.recording(brute.arrays(3, samples=40, hidden=7, noise=0.2))
    result = activations(recording, units=4, seed=5, width=3.0)
    for side in ("encoder", "decoder"):
        units = [collected(recording, f"{side}.states", side, unit) for unit in range(7)]
        ranges = [max(values) - min(values) for values in units]
        found = result.first.values()
        assert found[side, "range"] == pytest.approx(np.mean(ranges), rel=1e-6)
        assert found[side, "narrow"] == sum(r < 3.0 for r in ranges) / 7
        quartiles = [np.quantile(values, (0.25, 0.5, 0.75)) for values in units]
        close = max(ranges) / 4096
        assert np.abs(result.first.sides[side].quartiles.T - quartiles).max() < close
        between = np.mean([q[2] - q[0] for q in quartiles])
        assert found[side, "interquartile"] == pytest.approx(between, abs=2 * close)
        shown = result.first.sides[side].sampled
        assert len(set(shown)) == 4
        assert [quartiles[unit][1] for unit in shown] == sorted(quartiles[u][1] for u in shown)
    again = activations(replace(recording, rows=7), units=4, seed=5, width=3.0)
    assert again.first.values() == pytest.approx(result.first.values()), "pieces change nothing"


def test_padding_is_no_activation() -> None:
    """States far from zero: were the zeros of the padding counted, the range would reach them."""
    given = brute.arrays(1, samples=20)
    for side in ("encoder", "decoder"):
        given[f"{side}.states"] = given[f"{side}.states"] * 0.01 + 5
    low = activations(brute.recording(given)).first.sides["encoder"].low
    assert (low > 4).all()


def test_boxes_show_the_sampled_units() -> None:
    recording = brute.recording(brute.arrays(0, samples=20, hidden=12))
    result = activations(recording, units=3, side="decoder")
    (panel,) = result.figure().panels
    (boxes,) = panel.marks
    assert isinstance(boxes, Boxes) and len(boxes.x) == 3
    for number, name in enumerate(boxes.x):
        values = collected(recording, "decoder.states", "decoder", int(name))
        assert (boxes.low[number], boxes.high[number]) == pytest.approx((min(values), max(values)))
        assert boxes.quarter[number] <= boxes.median[number] <= boxes.three_quarters[number]
    other = activations(recording, units=3, side="decoder", seed=1)
    assert set(other.first.sides["decoder"].sampled) != set(map(int, boxes.x))
    assert other.estimates() == result.estimates(), "numbers are of all units"


def test_activations_that_cannot_be() -> None:
    recording = brute.recording(brute.arrays())
    for wrong, fits in (({"units": 0}, "1 or more"), ({"width": 0.0}, "more than 0")):
        with pytest.raises(RegardError, match=fits):
            activations(recording, **wrong)  # type: ignore[arg-type]
    given = brute.arrays()
    alone = {name: given[name] for name in ("encoder.states", "encoder.words", "encoder.mask")}
    with pytest.raises(RegardError, match="no states of the decoder"):
        activations(brute.recording(alone), side="decoder")
    assert list(activations(brute.recording(alone)).first.sides) == ["encoder"]


@pytest.mark.parametrize("rows", [3, 1000])
def test_gates_against_loops(rows: int) -> None:
    recording = replace(gated(), rows=rows)
    seed = gates(recording, low=0.2, high=0.7).first
    assert list(seed.gates) == ["encoder.0.reset", "encoder.0.update", "decoder.0.update"]
    for short, name in (
        ("encoder.0.update", "encoder.gates.0.ahead.update"),
        ("decoder.0.update", "decoder.gates.0.update"),
    ):
        left, right = [], []
        for unit in range(6):
            values = collected(recording, name, name[:7], unit)
            left.append(sum(value < 0.2 for value in values) / len(values))
            right.append(sum(value > 0.7 for value in values) / len(values))
        assert seed.gates[short].left == pytest.approx(left)
        assert seed.gates[short].right == pytest.approx(right)
        assert seed.values()[short, "left"] == pytest.approx(np.mean(left))


def test_numbers_of_saturation() -> None:
    """Five units: on the left axis, on the right axis, at the origin, on the diagonal, between."""
    left, right = [0.9, 0.01, 0.02, 0.4, 0.3], [0.0, 0.6, 0.03, 0.6, 0.2]
    given = brute.arrays(samples=25, source=4)
    given["encoder.mask"][:] = True
    gate = np.full((100, 5), 0.5, dtype=np.float32)
    for unit in range(5):
        gate[: round(100 * left[unit]), unit] = 0.0
        gate[100 - round(100 * right[unit]) :, unit] = 1.0
    given["encoder.gates.0.ahead.update"] = gate.reshape(25, 4, 5)
    found = gates(brute.recording(given)).first.values()
    assert {gate for gate, _ in found} == {"encoder.0.update"}
    plain = {what: value for (_, what), value in found.items()}
    assert plain == pytest.approx(
        {
            "left": np.mean(left),
            "right": np.mean(right),
            "on an axis": 2 / 5,
            "mostly left": 1 / 5,
            "mostly right": 2 / 5,
            "never": 1 / 5,
            "distance": np.mean([0, 0.01, 0.02, 0.4, 0.2]),
        },
        abs=1e-6,
    )


@pytest.mark.parametrize(
    ("cell", "own"),
    [("gru-torch", "keeps"), ("gru-renn", "keeps"), ("ugrnn", "keeps"), ("gru-cho", "writes")],
)
def test_conventions(cell: str, own: str) -> None:
    recording = gated(cell=cell)
    plain = gates(recording)
    assert plain.first.gates["encoder.0.update"].open == own
    assert cell in plain.figure().caption and cell in plain.table().title
    for convention in ("keeps", "writes"):
        told: Any = convention
        result = gates(recording, convention=told)
        update, was = (r.first.gates["encoder.0.update"] for r in (result, plain))
        assert update.open.startswith(convention)
        turned = convention != own
        expected = (was.right, was.left) if turned else (was.left, was.right)
        assert np.allclose((update.left, update.right), expected)
        assert ("1 − z" in update.open) == turned
        reset, before = (r.first.gates["encoder.0.reset"] for r in (result, plain))
        assert np.array_equal(reset.left, before.left), "only update gates are turned"
    sense = "new information enters" in gates(recording, convention="writes").figure().caption
    assert sense


def test_an_unknown_cell_says_so() -> None:
    recording = gated()
    result = gates(recording)
    assert result.first.gates["encoder.0.update"].open == "unknown"
    assert "unknown" in result.figure().caption and "unknown" in result.table().title
    with pytest.raises(RegardError, match="Give cell="):
        gates(recording, convention="writes")
    told = gates(recording, convention="writes", cell="gru-torch")
    assert told.first.gates["encoder.0.update"].open == "writes (1 − z)"
    with pytest.raises(RegardError, match="do not fit"):
        gates(recording, low=0.9, high=0.1)
    with pytest.raises(RegardError, match="no gates"):
        gates(brute.recording(brute.arrays()))


def test_the_figure_has_a_panel_per_gate_and_the_diagonal() -> None:
    result = gates(gated())
    panels = result.figure().panels
    assert len(panels) == 3
    for panel, gate in zip(panels, result.first.gates.values(), strict=True):
        line, points = panel.marks
        assert isinstance(line, Line) and isinstance(points, Points)
        assert all(x + y == 1 for x, y in zip(line.x, line.y, strict=True))
        assert np.allclose(points.x, gate.left) and np.allclose(points.y, gate.right)


@pytest.mark.parametrize("cell", ["lstm", "gru-torch"])
def test_gates_of_a_run(cell: str, tmp_path: Path) -> None:
    run = regard.train("one-to-one", "aed", 0, tmp_path, cell=cell, **SMALL)
    recording = regard.record(run, n=20, gates=True)
    result = gates(recording)
    assert result.first.cell == cell
    kinds = {"input": "writes", "forget": "keeps", "output": "shows"}
    if cell == "gru-torch":
        kinds = {"reset": "reads the old state", "update": "keeps"}
    expected = {
        f"{side}.0.{k}": does for side in ("encoder", "decoder") for k, does in kinds.items()
    }
    assert {name: gate.open for name, gate in result.first.gates.items()} == expected
