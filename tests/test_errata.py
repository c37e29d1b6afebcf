"""The computations behind docs/errata.md."""

from __future__ import annotations

import math

import pytest
import torch

from regard.models import models


def test_worked_softmax() -> None:
    right = torch.tensor([1.2, -0.4, 2.1, 0.0]).softmax(0).tolist()
    assert right == pytest.approx([0.25, 0.05, 0.62, 0.08], abs=0.005)
    assert sum([0.21, 0.04, 0.53, 0.06]) == pytest.approx(0.84)
    assert sum(map(math.exp, [1.2, -0.4, 2.1, 0.0])) == pytest.approx(13.157, abs=0.001)


def test_information_table() -> None:
    assert 200 * math.log2(26) == pytest.approx(940, abs=0.5)
    assert 128 * 8 / (200 * math.log2(26)) == pytest.approx(1.09, abs=0.005)


def test_size_of_the_addition_model() -> None:
    config, kind = models["encoder-decoder"]
    count = kind(config(cell="lstm", hidden=128, embedding=32), 15, 15).parameter_count
    by_hand = 2 * 15 * 32 + 2 * 4 * 128 * (32 + 128 + 2) + 128 * 15 + 15
    assert count == by_hand == 168_783


def test_a_softmax_over_decoder_steps_gives_no_mean_of_encoder_states() -> None:
    scores = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])  # (decoder step, source position)
    assert scores.softmax(dim=1).sum(dim=1).tolist() == pytest.approx([1, 1])
    printed = scores.softmax(dim=0).sum(dim=1).tolist()
    assert printed != pytest.approx([1, 1], abs=0.1)


def test_the_mean_cosine_of_centred_vectors_says_nothing_about_a_simplex() -> None:
    """Four vectors in a plane, at right angles: no simplex, and yet −1/3."""
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    cosines = vectors @ vectors.t()
    off = ~torch.eye(4, dtype=torch.bool)
    assert float(cosines[off].mean()) == pytest.approx(-1 / 3)
    assert float(cosines[off].std()) > 0.4
