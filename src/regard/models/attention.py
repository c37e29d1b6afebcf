"""Attention: how a decoder state asks, how encoder states answer.

A site is one place where attention happens. It keeps everything an instrument may want:
queries, keys, scores before the softmax, and weights after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.registry import Registry


@dataclass(frozen=True)
class Site:
    """What one attention did. Where `bilinear`, scores = queries · keys."""

    queries: Tensor  # (batch, head, target, features)
    keys: Tensor  # (batch, head, source, features)
    scores: Tensor  # (batch, head, target, source)
    weights: Tensor  # (batch, head, target, source), zero at masked positions
    bilinear: bool = True


attentions: Registry[type[Attention]] = Registry("attention")


class Attention(nn.Module, ABC):
    """Scores between decoder states and encoder states, and the mixture that follows.

    A newcomer writes `site`; the mask, the softmax and the mixture are here.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.hidden = hidden

    @abstractmethod
    def site(self, states: Tensor, memory: Tensor, allowed: Tensor) -> tuple[Site, Tensor]:
        """The site and the values (batch, head, source, features) that its weights mix."""

    def forward(self, states: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Site]:
        """states (batch, target, hidden), memory (batch, source, hidden), mask (batch, source).

        Returns the context (batch, target, hidden) and the site.
        """
        site, values = self.site(states, memory, mask[:, None, None, :])
        return self.merge(site.weights @ values), site

    def merge(self, heads: Tensor) -> Tensor:
        """The heads' contexts as one. (batch, head, target, features) -> (batch, target, …)"""
        return heads.sum(dim=1)


def attend(queries: Tensor, keys: Tensor, allowed: Tensor) -> Site:
    """A bilinear site: scores q·k, and their softmax over the source positions allowed."""
    scores = queries @ keys.transpose(-1, -2)
    return Site(queries, keys, scores, masked_softmax(scores, allowed))


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the last axis; positions not allowed get exactly zero."""
    return torch.softmax(scores.masked_fill(~allowed, float("-inf")), dim=-1)


@attentions.register("dot")
class Dot(Attention):
    """Luong et al. 2015: a_ts = h_t · h_s, unscaled, with the current decoder state."""

    def site(self, states: Tensor, memory: Tensor, allowed: Tensor) -> tuple[Site, Tensor]:
        """Queries are the decoder states, keys and values the encoder states."""
        keys = memory[:, None]
        return attend(states[:, None], keys, allowed), keys
