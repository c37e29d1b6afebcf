"""Blocks of weights by name, their heat maps, graphs and polarities, against loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import torch
from torch import nn

import regard
from regard import RegardError
from regard.display import Edges, Heat
from regard.instruments.weights import connectivity, heatmaps, polarity
from regard.instruments.weights._blocks import Blocks, Matrices
from regard.instruments.weights._graph import (
    busiest,
    by_chance,
    gini,
    modularity,
    modules,
    strongest,
)
from regard.models.layers.cells import CELLS

RNG = np.random.default_rng(0)


def blocks(model: Any) -> Blocks:
    """The matrices of a model, as the instruments get them."""
    return Matrices().open(model, {}, {})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[regard.Run]:
    out = tmp_path_factory.mktemp("runs")
    settings: dict[str, Any] = {
        "cell": "gru-torch", "inputs": "embedding", "embedding": 5, "hidden": 8, "updates": 0,
        "held_out": 10,
    }  # fmt: skip
    return [regard.train("one-to-one", "aed", seed, out, **settings) for seed in range(2)]


@pytest.mark.parametrize("name", CELLS)
def test_a_block_moves_the_gate_of_its_name(name: str) -> None:
    """A bias-free cell with weights in one block only: that gate leaves ½, the others stay."""
    cell = CELLS[name](3, 2)
    for number, part in enumerate(cell.block_names):
        with torch.no_grad():
            for parameter in cell.parameters():
                parameter.zero_()
            cell.weight_ih[2 * number : 2 * number + 2] = 1.0
        found = blocks(cell)
        full = f"W_ih.{part}" if part else "W_ih"
        assert (found[full] == 1).all()
        assert sum(float(np.abs(array).sum()) for array in found.arrays.values()) == 6
        state, gates = cell.step(cell.project(torch.ones(1, 3)), cell.initial(1))
        moved = {gate for gate, values in gates.items() if (values > 0.9).all()}
        assert moved == ({part} if part in cell.gate_effects else set())
        assert all((gates[gate] == 0.5).all() for gate in set(gates) - moved)
        if part in ("", "candidate"):
            assert (state[0] > 0.1).all()


def test_names_of_a_recurrent_model() -> None:
    model = small.recurrent("bilinear", layers=2, bidirectional=True)
    found = blocks(model).arrays
    assert list(found)[:3] == ["encoder.embedding", "decoder.embedding", "encoder.0.W_ih.reset"]
    back = model.encoder.back[1]  # type: ignore[union-attr, index]
    update = back.weight_hh[6:12].detach().numpy()  # type: ignore[union-attr, index]
    assert np.array_equal(found["encoder.1.back.W_hh.update"], update)
    candidate = model.decoder[0].weight_ih[12:].detach().numpy()  # type: ignore[index]
    assert np.array_equal(found["decoder.0.W_ih.candidate"], candidate)
    assert {"attention.query", "readout", "bridge.0", "memory"} <= set(found)
    total = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    assert sum(array.size for array in found.values()) == total, "every matrix, once"


def test_without_recurrence_there_is_no_w_hh() -> None:
    found = blocks(small.recurrent("dot", recurrent=False)).arrays
    assert "encoder.0.W_ih.update" in found and not any("W_hh" in name for name in found)


def test_modules_of_torch() -> None:
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    found = blocks(nn.ModuleDict({"rnn": lstm}))
    expected = lstm.weight_hh_l1_reverse[4:8].detach().numpy()
    assert np.array_equal(found["rnn.1.back.W_hh.forget"], expected)
    gru = nn.GRUCell(3, 4)
    assert np.array_equal(blocks(gru)["W_ih.update"], gru.weight_ih[4:8].detach().numpy())
    assert blocks(nn.RNN(3, 4))["0.W_hh"].shape == (4, 4)
    assert set(blocks(nn.Sequential(nn.Linear(2, 3))).arrays) == {"0"}


def test_wrong_names_and_shapes() -> None:
    model = small.recurrent("dot")
    for instrument in (heatmaps, connectivity, polarity):
        with pytest.raises(RegardError, match=r"Did you mean 'encoder\.0\.W.*Known: .*readout"):
            instrument(model, block="encoder.0.W_hx")
    with pytest.raises(RegardError, match="two axes"):
        heatmaps({"a": np.zeros(3)})
    with pytest.raises(RegardError, match="no matrix"):
        heatmaps(nn.LayerNorm(3))
    with pytest.raises(RegardError, match="nothing to inspect"):
        heatmaps([])
    with pytest.raises(RegardError, match="two gates"):
        polarity(small.transformer())
    for wrong in ({"top": 0.0}, {"top": 5.0}, {"threshold": -1.0}):
        with pytest.raises(RegardError, match="does not fit"):
            connectivity(model, **wrong)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="does not fit"):
        heatmaps(model, clip=-1)
    with pytest.raises(RegardError, match="does not fit"):
        polarity(model, share=0)


def test_weights_of_runs(runs: list[regard.Run]) -> None:
    result = heatmaps(runs, clip=0.5)
    assert result.blocks == ["decoder.embedding"]
    words = runs[0].task().target_vocabulary.words
    assert result.first.names["decoder.embedding"] == words
    array = runs[1].model().target_embedding.weight.detach().numpy()  # type: ignore[union-attr]
    beyond, total = 0, 0.0
    for row in array:
        for value in row:
            total += abs(float(value))
            beyond += abs(value) > 0.5
    found = result.seeds[1].values()
    assert found["decoder.embedding", "mean"] == pytest.approx(total / array.size)
    assert found["decoder.embedding", "clipped"] == beyond / array.size > 0
    assert found["decoder.embedding", "largest"] == pytest.approx(np.abs(array).max())
    for number, word in enumerate(words):
        mean = sum(abs(float(v)) for v in array[number]) / array.shape[1]
        assert result.rows("decoder.embedding")[word].values[1] == pytest.approx(mean, abs=1e-7)
    heat = result.figure().panels[0].marks[0]
    assert isinstance(heat, Heat) and heat.signed and (heat.low, heat.high) == (-0.5, 0.5)
    assert heat.rows == words
    own = runs[0].model().target_embedding.weight.detach().numpy()  # type: ignore[union-attr]
    assert np.allclose(heat.values, np.clip(own, -0.5, 0.5), atol=1e-4)
    plain = json.loads(json.dumps(result.to_json()))
    assert plain["rows"]["decoder.embedding"]["<SOS>"]["seeds"] == 2
    loose = heatmaps(runs[0], clip=0).figure().panels[0].marks[0]
    assert isinstance(loose, Heat) and loose.high == pytest.approx(np.abs(own).max())
    assert heatmaps(runs[0], clip=None).first.clipped("decoder.embedding") == 0


def test_a_beginning_names_all_gates(runs: list[regard.Run]) -> None:
    result = heatmaps(runs[0], block="encoder.0.W_hh")
    assert [name.rpartition(".")[2] for name in result.blocks] == ["reset", "update", "candidate"]
    assert len(result.figure().panels) == 6
    wide = heatmaps({"w.a": np.ones((50, 9)), "w.b": np.ones((60, 9))}, block="w")
    assert [len(panel.marks) for panel in wide.figure().panels] == [1, 1, 2]


def test_a_checkpoint_by_name_or_number(runs: list[regard.Run]) -> None:
    kept = runs[0].checkpoints()[-1]
    last = heatmaps(runs[0]).estimates()
    for checkpoint in ("last", kept, str(kept)):
        assert heatmaps(runs[0], checkpoint=checkpoint).estimates() == last
    with pytest.raises(RegardError, match="no checkpoint"):
        heatmaps(runs[0], checkpoint="77")


def loops(weights: Any, kept: Any) -> tuple[list[int], list[int], list[float]]:
    """Degrees in and out, and the polarity of each row over kept edges."""
    rows, columns = weights.shape
    into, out = [0] * rows, [0] * columns
    polarity = []
    for i in range(rows):
        total = size = 0.0
        for j in range(columns):
            if kept[i, j]:
                into[i] += 1
                out[j] += 1
                total, size = total + weights[i, j], size + abs(weights[i, j])
        polarity.append(total / size if size else np.nan)
    return into, out, polarity


def test_connectivity_against_loops() -> None:
    weights = RNG.normal(size=(40, 30)).round(3)
    result = connectivity({"w": weights}, top=0.1)
    graph, found = result.first, result.first.values()
    cut = sorted(np.abs(weights).ravel())[-120]
    kept = np.abs(weights) >= cut
    assert abs(int(kept.sum()) - 120) <= 2, "rounded weights may tie"
    assert found["edges"] == 120 and found["threshold"] == pytest.approx(cut)
    kept = graph.kept
    into, out, polarity = loops(weights, kept)
    assert graph.degrees("in").tolist() == into and graph.degrees("out").tolist() == out
    assert np.allclose(graph.polarity("in"), polarity, equal_nan=True)
    assert found["positive"] == (weights[kept] > 0).sum() / 120
    busy = sorted(range(40), key=lambda unit: -into[unit])[:2]
    assert found["held in"] == sum(into[unit] for unit in busy) / 120
    assert found["polarity in"] == pytest.approx(np.mean([abs(polarity[unit]) for unit in busy]))
    every = [abs(row.sum()) / np.abs(row).sum() for row in weights]
    assert found["polarity in, all weights"] == pytest.approx(np.mean(every))
    every = [abs(column.sum()) / np.abs(column).sum() for column in weights.T]
    assert found["polarity out, all weights"] == pytest.approx(np.mean(every))
    pairs = sum(abs(a - b) for a in into for b in into)
    assert found["gini in"] == pytest.approx(pairs / (2 * len(into) * sum(into)))


def test_connectivity_with_a_threshold() -> None:
    weights = np.array([[0.3, -0.2, 0.1], [0.21, 0.0, -0.5]])
    graph = connectivity({"w": weights}, threshold=0.2).first
    assert graph.kept.tolist() == [[True, False, False], [True, False, True]]
    nothing = connectivity({"w": weights}, threshold=2.0)
    assert nothing.first.values()["edges"] == 0 == nothing.first.values()["modularity"]
    assert nothing.table().rows and nothing.figure().svg() and nothing.figure().interactive()
    assert not strongest(np.zeros((3, 3)), None, 0.5).any(), "no weight, no edge"


@pytest.mark.parametrize("order", ["own", "modules"])
def test_the_graph_that_is_drawn_is_the_graph(order: Any) -> None:
    weights = RNG.normal(size=(12, 9))
    result = connectivity({"w": weights}, top=0.2, order=order)
    edges = result.figure().panels[0].marks[0]
    assert isinstance(edges, Edges) and edges.nodes == (9, 12)
    drawn = {
        (int(edges.name(1, high)), int(edges.name(0, low))): value
        for low, high, value in zip(edges.bottom, edges.top, edges.values, strict=True)
    }
    kept = result.first.kept
    expected = {(int(i), int(j)): weights[i, j] for i, j in zip(*np.nonzero(kept), strict=True)}
    assert drawn == pytest.approx(expected, abs=1e-5)
    if order == "modules":
        degrees = edges.degrees(1)
        assert 0 not in degrees[: len(degrees) - degrees.count(0)], "those without edges come last"


def barber(edges: Any, rows: Any, columns: Any) -> float:
    """Barber 2007, equation 14, as it stands."""
    m = edges.sum()
    total = 0.0
    for i in range(edges.shape[0]):
        for j in range(edges.shape[1]):
            if rows[i] == columns[j]:
                total += edges[i, j] - edges[i].sum() * edges[:, j].sum() / m
    return float(total / m)


def test_modularity_against_loops() -> None:
    edges = RNG.random((9, 7)) < 0.3
    rows, columns = RNG.integers(0, 3, 9), RNG.integers(0, 3, 7)
    assert modularity(edges, rows, columns) == pytest.approx(barber(edges, rows, columns))


def test_modules_that_are_there_are_found() -> None:
    """Four groups with all edges inside: Q = 1 − 1/4. Shuffled, so that order does not help."""
    edges = np.kron(np.eye(4), np.ones((5, 6))) > 0
    rows, columns = RNG.permutation(20), RNG.permutation(24)
    found = modules(edges[np.ix_(rows, columns)])
    assert modularity(edges[np.ix_(rows, columns)], *found) == pytest.approx(0.75)
    for group in range(4):
        both = {*found[0][rows // 5 == group], *found[1][columns // 6 == group]}
        assert len(both) == 1, "a group is one module"
    noisy = edges ^ (RNG.random(edges.shape) < 0.05)
    assert modularity(noisy, *modules(noisy)) > by_chance(noisy) + 0.2


def test_modules_reach_the_best_partition_of_small_graphs() -> None:
    """Against all partitions into two modules of graphs with 4 + 4 nodes."""
    for seed in range(10):
        edges = np.random.default_rng(seed).random((4, 4)) < 0.45
        if not edges.any():
            continue
        best = max(
            barber(edges, [code >> n & 1 for n in range(4)], [code >> n & 1 for n in range(4, 8)])
            for code in range(256)
        )
        assert modularity(edges, *modules(edges)) >= best - 0.03


def test_random_graphs_are_as_modular_as_chance() -> None:
    edges = RNG.random((60, 60)) < 0.06
    assert modularity(edges, *modules(edges)) == pytest.approx(by_chance(edges), abs=0.05)


def test_gini() -> None:
    assert gini(np.array([2, 2, 2])) == pytest.approx(0)
    assert gini(np.array([0, 0, 0, 8])) == pytest.approx(0.75)
    assert gini(np.zeros(3)) == 0


@pytest.mark.parametrize("side", ["next", "previous"])
def test_polarity_against_loops(side: Any) -> None:
    update, reset = RNG.normal(size=(30, 20)), RNG.normal(size=(30, 20))
    reset -= 0.6 * update.mean(axis=1, keepdims=True) * 4
    given = {"x.W_hh.update": update, "x.W_hh.reset": reset}
    result = polarity(given, side=side, share=0.2)
    axis = range(30) if side == "next" else range(20)
    a, b = [], []
    for unit in axis:
        a.append(float(np.mean(update[unit] if side == "next" else update[:, unit])))
        b.append(float(np.mean(reset[unit] if side == "next" else reset[:, unit])))
    found = result.first.values()
    assert found["x.W_hh", "pearson"] == pytest.approx(np.corrcoef(a, b)[0, 1])
    ranks = [np.argsort(np.argsort(values)) for values in (a, b)]
    assert found["x.W_hh", "spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    scale = [np.sqrt(np.mean(np.square(values))) for values in (a, b)]
    size = [max(abs(x) / scale[0], abs(y) / scale[1]) for x, y in zip(a, b, strict=True)]
    strong = sorted(axis, key=lambda unit: -size[unit])[: len(a) // 5]
    x, y = [a[unit] for unit in strong], [b[unit] for unit in strong]
    assert found["x.W_hh", "strong pearson"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    opposite = sum(p * q < 0 for p, q in zip(x, y, strict=True)) / len(x)
    assert found["x.W_hh", "opposite"] == opposite


def test_polarity_takes_all_matrices_of_a_run(runs: list[regard.Run]) -> None:
    result = polarity(runs)
    sides = [f"{side}.0.{m}" for side in ("encoder", "decoder") for m in ("W_ih", "W_hh")]
    assert list(result.first.matrices) == sides and len(result.figure().panels) == 4
    assert len(polarity(runs, block="decoder.0.W_ih").table().rows) == 1
    assert result.estimates()["encoder.0.W_hh opposite"].within == (0, 1)
    lstm = polarity(nn.LSTM(3, 4)).first.matrices["0.W_hh"]
    assert lstm.gates == ("input", "forget")


def test_graphs_of_runs_have_intervals(runs: list[regard.Run], tmp_path: Path) -> None:
    result = connectivity(runs, top=0.2)
    assert result.first.block == "encoder.0.W_hh.update"
    array = runs[0].model().encoder.ahead[0].weight_hh[8:16].detach()  # type: ignore[index, union-attr]
    assert np.array_equal(result.first.weights, array.numpy())
    assert all(value.interval is not None for value in result.estimates().values())
    assert {path.suffix for path in result.save(tmp_path)} == {".json", ".csv", ".svg", ".html"}


@pytest.mark.parametrize("seed", range(3))
def test_sparse_modules_are_put_together(seed: int) -> None:
    """Groups held together by few edges: no worse than the division that made them."""
    rng = np.random.default_rng(seed)
    group = np.arange(60) // 20
    inside = group[:, None] == group[None]
    edges = rng.random((60, 60)) < np.where(inside, 0.15, 0.01)
    assert modularity(edges, *modules(edges)) >= modularity(edges, group, group) - 0.01


def test_of_equals_the_first_are_taken() -> None:
    weights = np.tile([1.0, -2.0, 2.0, 1.0], (50, 5))  # 500 of each size
    kept = strongest(weights, None, 0.6)  # all of size 2, and the first hundred of size 1
    ones = np.flatnonzero(np.abs(weights) == 1)
    assert np.flatnonzero(kept & (np.abs(weights) == 1)).tolist() == ones[:100].tolist()
    assert busiest(np.tile([3, 5, 5, 3], 25), 0.1).tolist() == [1, 2, 5, 6, 9, 10, 13, 14, 17, 18]
