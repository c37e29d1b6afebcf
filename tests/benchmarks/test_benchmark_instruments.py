from __future__ import annotations

import numpy as np
import pytest

from benchmarks import BENCHMARKS
from benchmarks.instruments import instruments
from benchmarks.measuring import in_memory, streamed
from benchmarks.plain_attention import own_predictions
from benchmarks.synthetic import synthetic
from benchmarks.textbook import averages
from regard.recordings.decomposition import Decomposition


def test_both_versions_give_the_same_nine_shares() -> None:
    recording, _ = synthetic(2100, length=7, hidden=16)
    ours, textbook = streamed(recording), in_memory(recording)()
    np.testing.assert_allclose(ours, textbook, atol=1e-6)
    assert ours.sum() == pytest.approx(1)


def test_both_versions_give_the_same_averages() -> None:
    recording, _ = synthetic(1500, length=5, hidden=8)
    found = Decomposition.of(recording).encoder
    mu, chi = averages(recording["encoder.states"], recording["encoder.words"])
    np.testing.assert_allclose(found.temporal, mu, atol=1e-5)
    np.testing.assert_allclose(found.input, chi, atol=1e-5)


def test_a_synthetic_recording_is_the_same_however_it_is_read() -> None:
    recording, storage = synthetic(1200, length=3, hidden=4)
    pieces = [chunk["encoder.states"] for chunk in recording.chunks(rows=500)]
    np.testing.assert_array_equal(np.concatenate(pieces), recording["encoder.states"])
    assert recording.shape("encoder.states") == (1200, 3, 4)
    assert storage.seconds > 0


def test_training_equals_the_plain_loop_update_by_update() -> None:
    """Same weights, same batches, own predictions: the loop over steps has the same losses."""
    ours, plain = own_predictions()
    for _ in range(4):
        assert ours.step() == pytest.approx(plain.step(), abs=1e-4)


def test_the_benchmark_runs_small() -> None:
    found = instruments(sequences=1000, rounds=1, calls=4)
    assert set(found.ratios) == {"nine_terms", "memory", "own_predictions"}
    assert all(measured > 0 for measured, _, _ in found.ratios.values())
    assert BENCHMARKS["instruments"] is instruments
