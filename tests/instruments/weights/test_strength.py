"""strength: the weights behind a group's units, against loops by hand."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import recurrent, transformer

import regard
from regard import RegardError
from regard.instruments.units import groups
from regard.instruments.weights import strength
from regard.instruments.weights._unit_strengths import strongest, unit_strengths
from regard.instruments.weights.strength import find_weights, hypergeometric_tail


@pytest.mark.parametrize("by", ["in", "out", "both"])
@pytest.mark.parametrize("norm", ["mean", "l2"])
def test_unit_strengths_by_hand(by: Any, norm: Any) -> None:
    rng = np.random.default_rng(0)
    ih, hh = rng.normal(size=(3 * 4, 5)), rng.normal(size=(3 * 4, 4))
    found = unit_strengths(ih, hh, by, norm)

    def size(values: list[float]) -> float:
        many = np.abs(values)
        return float(many.mean() if norm == "mean" else np.sqrt((many**2).mean()))

    for unit in range(4):
        rows = [unit, unit + 4, unit + 8]
        incoming = size([w for row in rows for w in [*ih[row], *hh[row]]])
        outgoing = size([hh[row, unit] for row in range(12)])
        wanted = {"in": incoming, "out": outgoing, "both": (incoming + outgoing) / 2}[by]
        assert found[unit] == pytest.approx(wanted)
    assert list(strongest(np.array([1.0, 3.0, 2.0]), 0.05)) == [1]
    assert list(strongest(np.array([1.0, 3.0, 2.0]), 0.7)) == [1, 2]


def test_the_tail_is_counted() -> None:
    """All ways to draw 3 of 7 units, of which 2 are strong."""
    draws = [sum(u < 2 for u in draw) for draw in combinations(range(7), 3)]
    for hits in range(3):
        assert hypergeometric_tail(hits, 3, 2, 7) == pytest.approx(
            np.mean([d >= hits for d in draws])
        )


def test_cells_behind_a_quantity() -> None:
    model = recurrent("dot", layers=2)
    parts: Any = model
    assert [hh for _, hh in find_weights(model, "encoder.states")] == [
        parts.encoder.ahead[1].weight_hh
    ]
    assert [hh for _, hh in find_weights(model, "decoder.gates.0.update")] == [
        parts.decoder[0].weight_hh
    ]
    both: Any = recurrent("dot", bidirectional=True, layers=2)
    assert [hh for _, hh in find_weights(both, "encoder.states")] == [
        both.encoder.ahead[1].weight_hh,
        both.encoder.back[1].weight_hh,
    ]
    assert [hh for _, hh in find_weights(both, "encoder.gates.0.back.reset")] == [
        both.encoder.back[0].weight_hh
    ]
    for model, name in ((transformer(), "encoder.states"), (recurrent("dot"), "attention.keys")):
        with pytest.raises(RegardError, match="not a state or gate"):
            find_weights(model, name)
    with pytest.raises(RegardError, match="not a state or gate"):
        find_weights(recurrent("dot", recurrent=False, positions="sinusoidal"), "encoder.states")


def test_strength_by_hand(tmp_path: Path) -> None:
    run = regard.train("one-to-one", "aed", 0, tmp_path, hidden=12, updates=0, held_out=10)
    options: Any = {"quantity": "decoder.gates.update", "label": "word", "splits": 3}
    found = strength(run, n=40, top=0.25, weights="in", **options).first
    kept = regard.record(run, n=40, gates=True)
    chosen = groups(kept, **options).first.groups["aggregate"]
    cell: Any = run.model().decoder[0]  # type: ignore[index]
    both = np.concatenate([cell.weight_ih.detach(), cell.weight_hh.detach()], axis=1)
    sizes = [np.abs(both[unit::12]).mean() for unit in range(12)]
    np.testing.assert_allclose(found.strengths, sizes, rtol=1e-5)
    strong = set(np.argsort(sizes)[-3:])
    shares = [len(strong & set(group.units)) / len(group.units) for group in chosen]
    values = found.values()
    assert values["share"] == pytest.approx(np.mean(shares))
    assert values["chance"] == 3 / 12
    hits = [len(strong & set(g.units)) for g in chosen]
    odds = [hypergeometric_tail(h, len(g.units), 3, 12) for h, g in zip(hits, chosen, strict=True)]
    assert values["p"] == np.median(odds)
    with pytest.raises(RegardError, match="one ranking"):
        strength(run, ranking="both")
    with pytest.raises(RegardError, match="does not fit strength: it is under 1"):
        strength(run, top=1.0)
