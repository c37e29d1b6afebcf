"""heads and layers: tables over all attentions, against the instruments they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from small import recorded, transformer

import regard
from regard import RegardError, record

RNG = np.random.default_rng(0)


def made(samples: int = 40) -> regard.Recording:
    """Two layers of two heads; in the second, keys are what the word is."""
    words = RNG.integers(3, 9, size=(samples, 5))
    table = RNG.normal(size=(9, 8))
    arrays = {
        "encoder.states": RNG.normal(size=(samples, 5, 8)), "encoder.words": words,
        "decoder.states": RNG.normal(size=(samples, 4, 8)),
        "decoder.words": RNG.integers(3, 9, size=(samples, 4)),
        "decoder.0.cross.queries": RNG.normal(size=(samples, 2, 4, 3)) + np.arange(4)[:, None],
        "decoder.0.cross.keys": RNG.normal(size=(samples, 2, 5, 3)),
        "decoder.1.cross.queries": RNG.normal(size=(samples, 2, 4, 4)),
        "decoder.1.cross.keys": np.stack([table[words][..., :4], table[words][..., 4:]], axis=1),
    }  # fmt: skip
    return record(arrays)


def test_heads_are_the_instrument_head_by_head() -> None:
    recording = made()
    found = recording.inspect("heads")
    for layer in range(2):
        whole = recording.inspect("breakdown", site=f"decoder.{layer}.cross").first
        np.testing.assert_allclose(
            found.first.grid.rows[f"decoder.{layer}.cross"], whole.by_head[:, 0]
        )
    ranked = found.ranked().rows
    assert len(ranked) == 4 and ranked[0][2].mean >= ranked[-1][2].mean
    assert found.figure().panels
    one = recording.inspect("heads", of="breakdown", number="input-input", layer=1)
    assert list(one.first.grid.rows) == ["decoder.1.cross"]


def test_layers_say_where_words_and_positions_enter() -> None:
    found = made().inspect("layers").first.shares
    np.testing.assert_allclose([row.sum() for row in found.values()], 1)
    assert found["decoder.1.cross", "keys"][1] > 0.95  # the word and nothing else
    assert found["decoder.0.cross", "queries"][0] > 0.4  # the position, and noise
    assert found["decoder.0.cross", "keys"][2] > 0.8  # noise


def test_what_has_no_heads_is_refused() -> None:
    with pytest.raises(RegardError, match="does not look at one head"):
        made().inspect("heads", of="sizes")
    with pytest.raises(RegardError, match="no number 'nothing'"):
        made().inspect("heads", number="nothing")
    with pytest.raises(RegardError, match="layer=7 does not fit: there are 0, 1"):
        made().inspect("heads", layer=7)


def test_entropy_by_hand() -> None:
    recording = made()
    weights = recording["decoder.0.cross.weights"].astype(np.float64)
    wanted = -(weights * np.log(weights)).sum(-1).mean(axis=(0, 2)) / np.log(5)
    found = recording.inspect("entropy", site="decoder.0.cross").first.heads["decoder.0.cross"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(RegardError, match="layer=9 does not fit"):
        recording.inspect("entropy", layer=9)
    with pytest.raises(RegardError, match="head=2 does not fit"):
        recording.inspect("entropy", head=2)
    with pytest.raises(
        RegardError, match=r"head=2 does not fit: .decoder\.0\.cross. has the heads 0 to"
    ):
        recording.inspect("breakdown", site="decoder.0.cross", head=2)
    assert recording.inspect("breakdown", site="decoder.0.cross", head=1).estimates()


def test_layers_look_across_unless_told_otherwise() -> None:
    kept = recorded(transformer())
    plain, both = kept.inspect("layers").first.shares, kept.inspect("layers", crossing=False)
    assert {site for site, _ in plain} == {"decoder.0.cross"}
    assert {site for site, _ in both.first.shares} > {site for site, _ in plain}
