"""What every attention keeps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.contracts.contract import Check, require, require_close, require_docs
from regard.models.layers.attention import ATTENTIONS, Attention, Site
from regard.models.layers.score_functions import ACTIVATIONS

HIDDEN = 8
MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])
HEADS = {"heads": 3, "size": 4}


def make_attentions(name: str) -> list[tuple[str, Attention]]:
    """The attention as it is by default and, where it has heads, with three, merged each way."""
    kind = ATTENTIONS[name]
    ways: list[dict[str, Any]] = [{}]
    if kind.many_heads:
        ways += [{**HEADS, "merge": merge} for merge in ("sum", "mean", "concatenate")]
    made = ((way, kind(HIDDEN, **way).double()) for way in ways)
    return [(f"3 heads, {way['merge']}" if way else "one head", one) for way, one in made]


def make_inputs() -> tuple[Tensor, Tensor]:
    """Decoder states (2, 3, 8) and encoder states (2, 5, 8)."""
    return (
        torch.randn(2, 3, HIDDEN, dtype=torch.float64, requires_grad=True),
        torch.randn(2, 5, HIDDEN, dtype=torch.float64, requires_grad=True),
    )


def attend(
    attention: Attention, states: Tensor, memory: Tensor, mask: Tensor = MASK
) -> tuple[Tensor, Site]:
    """The context and the site."""
    context, site = attention(states, *attention.remember(memory), mask)
    return context, site


def check_description(attention: Attention) -> None:
    """It says what it is, and by which score function."""
    require_docs(type(attention), "The attention")
    known = {"dot", *ACTIVATIONS}
    require(attention.score in known, f"`score` is one of {sorted(known)}.")


def check_weights(attention: Attention) -> None:
    """Weights are a distribution over the words that are there."""
    context, site = attend(attention, *make_inputs())
    require(context.shape == (2, 3, attention.features), "The context has another shape.")
    require(
        site.weights.shape == (2, attention.heads, 3, 5), "Weights: batch, head, target, source."
    )
    require(site.weights.shape == site.scores.shape, "One score for each weight.")
    require_close(site.weights.sum(-1), torch.ones_like(site.weights[..., 0]), "Weights sum to 1.")
    require((site.weights[1, :, :, 2:] == 0).all(), "Padding is attended to.")


def check_padding(attention: Attention) -> None:
    """Padding changes nothing."""
    states, memory = make_inputs()
    context, _ = attend(attention, states, memory)
    alone, _ = attend(attention, states[1:], memory[1:, :2], MASK[1:, :2])
    require_close(context[1:], alone, "The context depends on the padding.")


def check_scores(attention: Attention) -> None:
    """Scores follow from queries and keys as `score` says, but for a constant."""
    _, site = attend(attention, *make_inputs())
    if site.bilinear:
        wanted = site.queries @ site.keys.transpose(-1, -2)
    else:
        require(site.vector is not None, f"score={site.score} needs `vector`.")
        assert site.vector is not None
        both = ACTIVATIONS[site.score](site.queries[:, :, :, None] + site.keys[:, :, None])
        wanted = (both * site.vector[:, None, None]).sum(-1)
    differing = site.scores - wanted
    constant = differing[:, :, :1, :1].expand_as(differing)
    require_close(differing, constant, f"Scores are not those of score={site.score}.")


def check_site(attention: Attention) -> None:
    """`plain`, `projected` and `needs_equal_sizes` are true."""
    states, memory = make_inputs()
    context, site = attend(attention, states, memory)
    require(site.crosses and site.heads == attention.heads, "The site has other heads or sides.")
    require((site.layer, site.lag) == (0, 0), "The site has another layer or lag than was given.")
    alike = [a.shape[2:] == b.shape[1:] and bool((a == b[:, None]).all())
             for a, b in ((site.queries, states), (site.keys, memory))]  # fmt: skip
    require(
        site.plain == all(alike), "`plain`: whether queries and keys are the states themselves."
    )
    mixture = attention.merge(site.weights @ memory[:, None])
    mixed = torch.equal(context, mixture)
    require(
        site.projected != mixed, "`projected`: whether something else than the states is mixed."
    )
    if not attention.needs_equal_sizes:
        other = type(attention)(HIDDEN, attention.heads, memory=6).double()
        attend(other, states, memory[:, :, :6])


def check_differences(attention: Attention) -> None:
    """The gradient is that of finite differences, by states and by parameters."""
    whole = Whole(attention)
    fault = "The gradient is not right."
    require(torch.autograd.gradcheck(whole, make_inputs()), fault)
    states, memory = (x.detach() for x in make_inputs())
    for name, parameter in attention.named_parameters():

        def vary(value: Tensor, key: str = f"attention.{name}") -> Tensor:
            found: Tensor = torch.func.functional_call(whole, {key: value}, (states, memory))
            return found

        value = parameter.detach().clone().requires_grad_()
        require(torch.autograd.gradcheck(vary, value), fault)


class Whole(nn.Module):
    """The attention from states to context, with its parameters in the way of a gradient check."""

    def __init__(self, attention: Attention):
        super().__init__()
        self.attention = attention

    def forward(self, states: Tensor, memory: Tensor) -> Tensor:
        """(batch, target, hidden) and (batch, source, hidden) to (batch, target, features)"""
        return attend(self.attention, states, memory)[0]


CONTRACT: tuple[Check, ...] = (
    check_description, check_weights, check_padding, check_scores, check_site, check_differences,
)  # fmt: skip
