"""One contract over all attention kinds."""

from __future__ import annotations

import pytest
import torch

from regard.models.attention import Attention, attentions

MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])


@pytest.fixture(params=list(attentions))
def attention(request: pytest.FixtureRequest) -> Attention:
    return attentions[request.param](8).double()


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True),
    )


def test_weights_are_a_distribution_over_what_is_there(attention: Attention) -> None:
    context, site = attention(*inputs(), MASK)
    assert context.shape == (2, 3, 8)
    torch.testing.assert_close(site.weights.sum(-1), torch.ones_like(site.weights[..., 0]))
    assert (site.weights[1, :, :, 2:] == 0).all()
    assert site.weights.shape == site.scores.shape


def test_padding_changes_nothing(attention: Attention) -> None:
    states, memory = inputs()
    context, _ = attention(states, memory, MASK)
    alone, _ = attention(states[1:], memory[1:, :2], MASK[1:, :2])
    torch.testing.assert_close(context[1:], alone)


def test_bilinear_sites_are(attention: Attention) -> None:
    _, site = attention(*inputs(), MASK)
    if site.bilinear:
        torch.testing.assert_close(site.scores, site.queries @ site.keys.transpose(-1, -2))


def test_gradient_by_finite_differences(attention: Attention) -> None:
    def run(states: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        context: torch.Tensor = attention(states, memory, MASK)[0]
        return context

    assert torch.autograd.gradcheck(run, inputs())
