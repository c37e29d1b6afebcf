"""The computations behind docs/errata.md."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from regard.models import MODELS
from regard.models.layers.cells import CELLS


def test_worked_softmax() -> None:
    right = torch.tensor([1.2, -0.4, 2.1, 0.0]).softmax(0).tolist()
    assert right == pytest.approx([0.25, 0.05, 0.62, 0.08], abs=0.005)
    assert sum([0.21, 0.04, 0.53, 0.06]) == pytest.approx(0.84)
    assert sum(map(math.exp, [1.2, -0.4, 2.1, 0.0])) == pytest.approx(13.157, abs=0.001)


def test_information_table() -> None:
    assert 200 * math.log2(26) == pytest.approx(940, abs=0.5)
    assert 128 * 8 / (200 * math.log2(26)) == pytest.approx(1.09, abs=0.005)


def test_size_of_the_addition_model() -> None:
    config, kind = MODELS["encoder-decoder"]
    count = kind(config(cell="lstm", hidden=128, embedding=32), 15, 15).parameter_count
    by_hand = 2 * 15 * 32 + 2 * 4 * 128 * (32 + 128 + 2) + 128 * 15 + 15
    assert count == by_hand == 168_783


def test_an_open_update_gate_keeps_in_one_gru_and_writes_in_the_other() -> None:
    h, x = torch.ones(1, 1), torch.zeros(1, 3)
    x[:, 1] = 20.0  # the update gate's block: wide open
    for name, kept in (("gru-torch", 1.0), ("gru-cho", 0.0)):
        cell = CELLS[name](1, 1)
        for parameter in cell.parameters():
            torch.nn.init.zeros_(parameter)
        with torch.no_grad():
            (after,), gates = cell.step(x, (h,))
        assert float(gates["update"]) == pytest.approx(1.0)
        assert float(after) == pytest.approx(kept, abs=1e-6)


def test_a_default_probe_is_regularised() -> None:
    x = np.random.default_rng(0).normal(size=(200, 5))
    y = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(int)
    sizes = [
        np.abs(LogisticRegression(C=C, max_iter=10_000).fit(x, y).coef_).sum() for C in (1.0, 1e6)
    ]
    assert LogisticRegression().C == 1.0
    assert sizes[1] > 5 * sizes[0]


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


def test_heads_with_weights_in_the_denominator_do_not_add_up() -> None:
    """snell2021, eq. 20: whichever α one starts from, e^a / Σ e^α is no distribution."""
    logits = torch.tensor([0.3, -1.2, 2.0])
    alpha = logits.softmax(0)
    as_printed = logits.exp() / alpha.exp().sum()
    assert not torch.isclose(as_printed.sum(), torch.tensor(1.0), atol=0.1)


def test_first_movement_of_probabilities_has_a_factor() -> None:
    """snell2021, eq. 15: the logits move by 2(C − mean C), the probabilities by 1/|O| of that."""
    torch.manual_seed(0)
    pairs = [([0, 1], [0, 2]), ([2], [1]), ([1, 2, 2], [2, 1])]
    size, words = 40_000, 3
    weight = (torch.randn(words, size, dtype=torch.float64) * size**-0.5).requires_grad_()
    vectors = (torch.randn(words, size, dtype=torch.float64) * size**-0.5).requires_grad_()
    count = torch.zeros(words, words, dtype=torch.float64)
    loss = torch.zeros((), dtype=torch.float64)
    for source, target in pairs:
        said = (weight @ vectors[source].mean(0)).log_softmax(0)
        for word in target:
            loss = loss - said[word]
            for given in source:
                count[given, word] += 1 / len(source)
    d_weight, d_vectors = torch.autograd.grad(loss, (weight, vectors))
    logits = -(d_vectors @ weight.T + vectors @ d_weight.T).detach()  # (source, target)
    limit = 2 * (count - count.mean(dim=1, keepdim=True))
    torch.testing.assert_close(logits, limit, atol=0.1, rtol=0.05)
    theta = (vectors @ weight.T).softmax(1).detach()
    moved = theta * (logits - (theta * logits).sum(1, keepdim=True))
    torch.testing.assert_close(moved, limit / words, atol=0.05, rtol=0.05)
