"""One contract over all attention kinds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.contracts.attention import (
    CONTRACT,
    attend,
    check_scores,
    make_attentions,
    make_inputs,
)
from regard.contracts.contract import Check
from regard.models.layers.attention import ATTENTIONS
from regard.models.layers.score_functions import ACTIVATIONS

MEMBERS = [(name, label) for name in ATTENTIONS for label, _ in make_attentions(name)]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "label"), MEMBERS)
def test_contract(name: str, label: str, check: Check) -> None:
    check(dict(make_attentions(name))[label])


@pytest.mark.parametrize("name", ["additive-relu", "unasked"])
def test_a_constant_on_all_scores_changes_none_of_the_rest(name: str) -> None:
    attention = ATTENTIONS[name](8).double()
    torch.nn.init.normal_(attention.bias)
    check_scores(attention)


def test_an_old_query_is_not_the_state() -> None:
    early = ATTENTIONS["dot"](8, layer=2, lag=1).double()
    _, site = attend(early, *make_inputs())
    assert (site.layer, site.lag, site.plain) == (2, 1, False)


def test_score_functions_are_the_same_for_arrays_and_tensors() -> None:
    """Models score with torch, recordings with numpy."""
    values = np.linspace(-3, 3, 13)
    assert set(ACTIVATIONS) == {kind.score for kind in ATTENTIONS.values()} - {"dot"}
    for activation in ACTIVATIONS.values():
        with_torch = activation(torch.from_numpy(values)).numpy()
        np.testing.assert_allclose(activation(values), with_torch)


def test_equal_scores_mean_equal_weights() -> None:
    _, site = attend(ATTENTIONS["uniform"](8).double(), *make_inputs())
    torch.testing.assert_close(site.weights[0], torch.full_like(site.weights[0], 1 / 5))
    torch.testing.assert_close(
        site.weights[1, :, :, :2], torch.full_like(site.weights[1, :, :, :2], 0.5)
    )


def test_first_vectors_of_query_free_attention() -> None:
    torch.manual_seed(0)
    made = ATTENTIONS["unasked"](8, size=400)
    values = made.v.detach().abs()
    assert 0.9 / 20 < float(values.max()) <= 1 / 20, "uniform on ±1/√400"
    assert float(made.v.detach().mean().abs()) < 0.01
