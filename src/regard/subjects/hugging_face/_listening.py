"""How a model of `transformers` is listened to: from inside its attention, or at its projections.

Where a family calls the attention that its configuration names, that name is `regard` while a pass
lasts: the function below sees queries, keys, values, mask and position bias, may change them, and
does what the eager one does. Elsewhere hooks on the three linear maps see the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.attention import Site, masked_softmax
from regard.subjects.hugging_face._attentions import Attention

NAME = "regard"
_ACTIVE: dict[nn.Module, tuple[Attention, Listener]] = {}


class Listener:
    """What the attentions of one model did in a pass, by site."""

    def __init__(self, attentions: Mapping[str, Attention]):
        self.attentions = attentions
        self.wanted: frozenset[str] | None = None  # None: all
        self.hooked: set[str] = set()  # those that are listened to at their projections
        self.sites: dict[str, Site] = {}
        self.parts: dict[str, dict[str, Tensor]] = {}
        self.width = 0  # target words, in a decoder's pass

    def keeps(self, site: str) -> bool:
        """Whether a site is to be kept."""
        return self.wanted is None or site in self.wanted

    def describe(self, attention: Attention, **found: Any) -> Site:
        """What an attention did, and what it is."""
        return Site(
            **found, query_side=attention.query_side, key_side=attention.key_side,
            layer=attention.layer, heads=attention.heads, projected=True,
        )  # fmt: skip

    @contextmanager
    def listening(self, model: nn.Module) -> Iterator[None]:
        """While it lasts, passes of the model are heard; then the model is as it was."""
        self.sites, self.parts = {}, {}
        configs = {id(c): c for m in model.modules() if (c := getattr(m, "config", None))}
        before = [(c, getattr(c, "_attn_implementation", None)) for c in configs.values()]
        with ExitStack() as stack:
            for site, attention in self.attentions.items():
                if site in self.hooked:
                    self._hook(stack, attention)
                else:
                    _ACTIVE[attention.module] = (attention, self)
                    stack.callback(_ACTIVE.pop, attention.module, None)
            for config, name in before:
                if name is not None:
                    stack.callback(setattr, config, "_attn_implementation", name)
                    config._attn_implementation = (
                        NAME if len(self.hooked) < len(self.attentions) else "eager"
                    )
            yield

    def _hook(self, stack: ExitStack, attention: Attention) -> None:
        if attention.points.scores.watched or attention.points.weights.watched:
            raise RegardError(
                f"'{attention.site}' is listened to at its projections, so that its scores and"
                " weights can be seen, but not changed. Change its queries, keys or values."
            )
        parts = ("queries", "keys", "values")
        for part, linear in zip(parts, attention.maps, strict=True):
            hook = linear.register_forward_hook(self._pass(attention, part))
            stack.callback(hook.remove)

    def _pass(self, attention: Attention, part: str) -> Any:
        """A hook that shows a projection's output by heads, and puts back what came of it."""
        scale = attention.scale if part == "queries" else 1.0
        point = getattr(attention.points, part)

        def hook(_module: nn.Module, _args: Any, out: Tensor) -> Tensor | None:
            heads = out.view(*out.shape[:2], attention.heads, -1).transpose(1, 2)
            steps = self.stream(heads.shape[2]) if part == "queries" else slice(None)
            shown = point(heads[:, :, steps] * scale)
            if self.keeps(attention.site):
                self.parts.setdefault(attention.site, {})[part] = shown
            if not point.watched:
                return None
            whole = heads.clone()
            whole[:, :, steps] = shown / scale
            changed: Tensor = whole.transpose(1, 2).flatten(2)
            return changed

        return hook

    def stream(self, steps: int) -> slice:
        """Of several streams of a decoder (ProphetNet), that of the next word: the second."""
        several = self.width and steps > self.width and steps % self.width == 0
        return slice(self.width, 2 * self.width) if several else slice(None)

    def finish(self, source_mask: Tensor) -> dict[str, Site]:
        """The sites heard; what follows from projections is worked out. (batch, source)"""
        for site, parts in self.parts.items():
            if len(parts) == 3:
                self.sites[site] = self._derive(self.attentions[site], parts, source_mask)
        order = [site for site in self.attentions if site in self.sites]
        return {site: self.sites[site] for site in order}

    def _derive(self, attention: Attention, parts: dict[str, Tensor], mask: Tensor) -> Site:
        scores = parts["queries"] @ parts["keys"].transpose(-1, -2)
        bias = self._bias(attention, scores.shape[2], scores.shape[3])
        allowed = mask[:, None, None, :]
        if attention.key_side == "decoder":
            allowed = torch.ones_like(scores[0, 0], dtype=torch.bool).tril()
        weights = masked_softmax(scores if bias is None else scores + bias, allowed)
        return self.describe(
            attention, **parts, scores=scores, weights=weights, bias=bias, scale=attention.scale
        )

    def _bias(self, attention: Attention, target: int, source: int) -> Tensor | None:
        """T5's position bias, which the first layer of a side has for all; none across sides."""
        if attention.query_side != attention.key_side:
            return None
        first = self.attentions[f"{attention.query_side}.0.self"].module
        for module in (attention.module, first):
            if getattr(module, "has_relative_attention_bias", False):
                found: Tensor = module.compute_bias(target, source)  # type: ignore[operator]
                return found
        return None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """What the eager attention does, heard; (batch, head, time, size) each."""
    attention, listener = _ACTIVE.get(module, (None, None))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    queries = query * scale
    if attention is not None and attention.points.watched:
        at = attention.points
        queries, key, value = at.queries(queries), at.keys(key), at.values(value)
        scores = at.scores(queries @ key.transpose(2, 3), queries, key)
    else:
        scores = (query @ key.transpose(2, 3)) * scale  # in the order of the eager one, to the bit
    total = scores if position_bias is None else scores + position_bias
    if attention_mask is not None:
        total = total + attention_mask[..., : key.shape[2]]
    weights = torch.softmax(total, dim=-1)
    if attention is not None:
        weights = attention.points.weights(weights)
    if attention is not None and listener is not None and listener.keeps(attention.site):
        bias = None if attention.key_side != attention.query_side else position_bias
        listener.sites[attention.site] = listener.describe(
            attention, queries=queries, keys=key, values=value, scores=scores, weights=weights,
            bias=bias, scale=scale if scaling != 1.0 else attention.scale,
        )  # fmt: skip
    return (weights @ value).transpose(1, 2).contiguous(), weights


def register() -> bool:
    """Make the function known to `transformers`; False where it has no such door."""
    try:
        from transformers import AttentionInterface
    except ImportError:
        return False
    AttentionInterface.register(NAME, attend)
    try:
        from transformers import AttentionMaskInterface
        from transformers.masking_utils import eager_mask

        AttentionMaskInterface.register(NAME, eager_mask)
    except ImportError:
        pass  # masks were made by the models themselves then
    return True
