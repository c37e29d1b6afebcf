"""One contract over all attention kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.models.layers.attention import ATTENTIONS, AdditiveReLU, Attention, QueryFree, Site
from regard.models.layers.score_functions import ACTIVATIONS

MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])


KINDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ATTENTIONS),
    *(
        (name, {"heads": 3, "size": 4, "merge": merge})
        for name, kind in ATTENTIONS.items()
        if kind.many_heads
        for merge in ("sum", "mean", "concatenate")
    ),
]


@pytest.fixture(params=KINDS, ids=lambda k: "-".join([k[0], *map(str, k[1].values())]))
def attention(request: pytest.FixtureRequest) -> Attention:
    name, options = request.param
    return ATTENTIONS[name](8, **options).double()


def attended(
    attention: Attention, states: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, Site]:
    context, site = attention(states, *attention.remember(memory), mask)
    return context, site


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True),
    )


def test_weights_are_a_distribution_over_what_is_there(attention: Attention) -> None:
    context, site = attended(attention, *inputs(), MASK)
    assert context.shape == (2, 3, attention.features)
    assert site.weights.shape == (2, attention.heads, 3, 5)
    torch.testing.assert_close(site.weights.sum(-1), torch.ones_like(site.weights[..., 0]))
    assert (site.weights[1, :, :, 2:] == 0).all()
    assert site.weights.shape == site.scores.shape


def test_padding_changes_nothing(attention: Attention) -> None:
    states, memory = inputs()
    context, _ = attended(attention, states, memory, MASK)
    alone, _ = attended(attention, states[1:], memory[1:, :2], MASK[1:, :2])
    torch.testing.assert_close(context[1:], alone)


def test_bilinear_sites_are(attention: Attention) -> None:
    given = inputs()
    _, site = attended(attention, *given, MASK)
    if site.bilinear:
        torch.testing.assert_close(site.scores, site.queries @ site.keys.transpose(-1, -2))
    else:
        assert site.vector is not None
        activation = {"additive": torch.tanh, "additive-relu": torch.relu}[site.score]
        both = activation(site.queries[:, :, :, None] + site.keys[:, :, None])
        found = (both * site.vector[:, None, None]).sum(-1)
        if isinstance(attention, AdditiveReLU | QueryFree):
            torch.nn.init.normal_(attention.bias)  # a constant, which no softmax sees
            site = attended(attention, *given, MASK)[1]
            found = found + attention.bias[:, None, None]
        torch.testing.assert_close(site.scores, found)


def test_a_site_says_what_it_is(attention: Attention) -> None:
    """`plain`: the score is of the states themselves; `projected`: the mixture is not of them."""
    states, memory = inputs()
    context, site = attended(attention, states, memory, MASK)
    assert site.crosses and site.heads == attention.heads and (site.layer, site.lag) == (0, 0)
    same = [a.shape[2:] == b.shape[1:] and bool((a == b[:, None]).all())
            for a, b in ((site.queries, states), (site.keys, memory))]  # fmt: skip
    assert site.plain == all(same)
    mixture = attention.merge(site.weights @ memory[:, None])
    assert site.projected == (not torch.equal(context, mixture))
    if not attention.needs_equal_sizes:
        other = type(attention)(8, attention.heads, memory=6).double()
        attended(other, states, memory[:, :, :6], MASK)


def test_an_old_query_is_not_the_state() -> None:
    early = ATTENTIONS["dot"](8, layer=2, lag=1).double()
    _, site = attended(early, *inputs(), MASK)
    assert (site.layer, site.lag, site.plain) == (2, 1, False)


def test_score_functions_are_the_same_for_arrays_and_tensors() -> None:
    """Models score with torch, recordings with numpy."""
    values = np.linspace(-3, 3, 13)
    assert set(ACTIVATIONS) == {kind.score for kind in ATTENTIONS.values()} - {"dot"}
    for activation in ACTIVATIONS.values():
        with_torch = activation(torch.from_numpy(values)).numpy()
        np.testing.assert_allclose(activation(values), with_torch)


def test_gradient_by_finite_differences(attention: Attention) -> None:
    def run(states: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        context: torch.Tensor = attended(attention, states, memory, MASK)[0]
        return context

    assert torch.autograd.gradcheck(run, inputs())
    states, memory = (x.detach() for x in inputs())
    for name, parameter in attention.named_parameters():
        value = parameter.detach().clone().requires_grad_()
        assert torch.autograd.gradcheck(Varied(attention, name, states, memory), value)


class Varied:
    """The attention from states to context as a function of one of its parameters."""

    def __init__(self, attention: Attention, name: str, *inputs: torch.Tensor):
        self.attention, self.name, self.inputs = attention, name, inputs

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        whole = Whole(self.attention)
        context: torch.Tensor = torch.func.functional_call(
            whole, {f"a.{self.name}": value}, self.inputs
        )
        return context


class Whole(torch.nn.Module):
    """The attention from states to context, with its parameters in the way of a gradient check."""

    def __init__(self, attention: Attention):
        super().__init__()
        self.a = attention

    def forward(self, states: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        return attended(self.a, states, memory, MASK)[0]


def test_equal_scores_mean_equal_weights() -> None:
    _, site = attended(ATTENTIONS["uniform"](8).double(), *inputs(), MASK)
    torch.testing.assert_close(site.weights[0], torch.full_like(site.weights[0], 1 / 5))
    torch.testing.assert_close(
        site.weights[1, :, :, :2], torch.full_like(site.weights[1, :, :, :2], 0.5)
    )
