"""Named places inside a model where its numbers can be looked at or replaced."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

Side = Literal["encoder", "decoder"]


class HookPoint(nn.Identity):
    """A named place in a model; a forward hook sees the numbers there, and may replace them.

    `side` says whose words the numbers belong to, `site` to which attention, if to one.
    """

    def __init__(self, name: str, side: Side, site: str | None = None):
        super().__init__()
        self.name, self.side, self.site = name, side, site

    @property
    def watched(self) -> bool:
        """Whether a hook is there."""
        return bool(self._forward_hooks or self._forward_pre_hooks)


class ScorePoint(HookPoint):
    """Where an attention's scores pass; a hook is also told what they were made of."""

    def forward(self, scores: Tensor, *made_of: Tensor) -> Tensor:
        """The scores (batch, head, target, source), made of queries and keys as in a `Site`."""
        return scores


class AttentionPoints(nn.Module):
    """The hook points of one attention: what asks, what answers, what follows, what is mixed."""

    def __init__(self, site: str, query_side: Side, key_side: Side):
        super().__init__()
        self.queries = HookPoint(f"{site}.queries", query_side, site)
        self.keys = HookPoint(f"{site}.keys", key_side, site)
        self.values = HookPoint(f"{site}.values", key_side, site)
        self.scores = ScorePoint(f"{site}.scores", query_side, site)
        self.weights = HookPoint(f"{site}.weights", query_side, site)

    @property
    def watched(self) -> bool:
        """Whether a hook is at any of them."""
        return any(point.watched for point in self.children() if isinstance(point, HookPoint))
