"""Attentions and cells of `torch.nn`, found by their type and seen from inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.models.layers.attention import Site
from regard.models.layers.hook_point import AttentionPoints, Side

FORBIDDEN = 1e4  # what is added to a score in order to keep attention away, at least


@dataclass
class Packed:
    """One `nn.MultiheadAttention`: what it was asked, and what follows."""

    name: str
    module: nn.MultiheadAttention
    points: AttentionPoints
    layer: int
    query_side: Side
    key_side: Side

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries with the scale in them, keys and values. -> (batch, head, time, size) each"""
        m = self.module
        if m._qkv_same_embed_dim:
            weights = m.in_proj_weight.chunk(3)
        else:
            weights = (m.q_proj_weight, m.k_proj_weight, m.v_proj_weight)
        biases = (None,) * 3 if m.in_proj_bias is None else m.in_proj_bias.chunk(3)
        given = (query, key, value)
        if not m.batch_first:
            query, key, value = (x.transpose(0, 1) for x in given)
        q, k, v = (
            linear(x, w, b).view(*x.shape[:2], m.num_heads, -1).transpose(1, 2)
            for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        return q * q.shape[-1] ** -0.5, k, v

    def attend(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Site, Tensor]:
        """The site of one call, and the output that follows from it."""
        names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        at = self.points
        q, k, v = self.project(given["query"], given["key"], given["value"])
        q, k, v = at.queries(q), at.keys(k), at.values(v)
        scores = at.scores(q @ k.transpose(-1, -2), q, k)
        bias, total = None, scores
        for name in ("key_padding_mask", "attn_mask"):
            mask = given.get(name)
            if mask is None:
                continue
            mask = mask[:, None, None] if name == "key_padding_mask" else _by_heads(mask, q)
            if mask.dtype == torch.bool:
                total = total.masked_fill(mask, -torch.inf)
                continue
            total = total + mask
            added = torch.where(torch.isfinite(mask) & (mask > -FORBIDDEN), mask, 0.0)
            if bool(added.any()):  # what is added where attention may look
                bias = added.expand_as(scores) if bias is None else bias + added
        weights = at.weights(torch.softmax(total, dim=-1).to(v.dtype))
        out = self.module.out_proj((weights @ v).transpose(1, 2).flatten(2))
        site = Site(
            queries=q, keys=k, values=v, scores=scores, weights=weights, bias=bias,
            query_side=self.query_side, key_side=self.key_side, layer=self.layer,
            heads=q.shape[1], projected=True, scale=q.shape[-1] ** -0.5,
        )  # fmt: skip
        return site, out if self.module.batch_first else out.transpose(0, 1)


def _by_heads(mask: Tensor, queries: Tensor) -> Tensor:
    """(target, source) or (batch·head, target, source) as (batch or 1, head or 1, …)."""
    return mask[None, None] if mask.ndim == 2 else mask.view(*queries.shape[:2], *mask.shape[1:])


def gates_of(module: nn.Module, inputs: Tensor, before: Any) -> dict[str, Tensor]:
    """The gates of a layer or cell of `torch.nn` at every step, worked out from its weights.

    inputs (batch, time, size), `before` its first state. -> `0.update` (batch, time, hidden), with
    `ahead` and `back` where it reads both ways.
    """
    layers = getattr(module, "num_layers", 1)
    both = bool(getattr(module, "bidirectional", False))
    found: dict[str, Tensor] = {}
    states = before if isinstance(before, tuple) else (before,)
    for layer in range(layers):
        outs = []
        for way in range(1 + both):
            place = layer * (1 + both) + way
            first = [None if s is None else s[place] if s.ndim == 3 else s for s in states]
            cell = _cell(module, f"_l{layer}{'_reverse' if way else ''}")
            x = inputs.flip(1) if way else inputs
            hidden, gates = _run(cell, type(module), x, first)
            if way:
                hidden, gates = hidden.flip(1), {n: g.flip(1) for n, g in gates.items()}
            outs.append(hidden)
            ways = (".ahead", ".back") if both else ("",)
            found |= {f"{layer}{ways[way]}.{name}": gate for name, gate in gates.items()}
        inputs = torch.cat(outs, dim=2)
    return found


Weights = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


def _cell(module: nn.Module, end: str) -> Weights:
    end = end if isinstance(module, nn.RNNBase) else ""
    names = (f"{part}_{way}{end}" for part in ("weight", "bias") for way in ("ih", "hh"))
    found = [getattr(module, name, None) for name in names]
    return found[0], found[1], found[2], found[3]  # type: ignore[return-value]


def _run(
    cell: Weights, kind: type[nn.Module], x: Tensor, first: list[Tensor | None]
) -> tuple[Tensor, dict[str, Tensor]]:
    """One layer in one direction, step by step. -> (batch, time, hidden), and its gates"""
    w_ih, w_hh, b_ih, b_hh = cell
    zeros = x.new_zeros(len(x), w_hh.shape[1])
    h = zeros if first[0] is None else first[0]
    c = zeros if len(first) < 2 or first[1] is None else first[1]
    step: Callable[..., tuple[Tensor, Tensor, dict[str, Tensor]]] = _lstm
    if issubclass(kind, (nn.GRU, nn.GRUCell)):
        step = _gru
    outs, seen = [], []
    for t in range(x.shape[1]):
        h, c, gates = step(linear(x[:, t], w_ih, b_ih), linear(h, w_hh, b_hh), h, c)
        outs.append(h)
        seen.append(gates)
    return torch.stack(outs, 1), {n: torch.stack([g[n] for g in seen], 1) for n in seen[0]}


def _lstm(a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    i, f, g, o = (a + b).chunk(4, dim=1)
    i, f, o = i.sigmoid(), f.sigmoid(), o.sigmoid()
    c = f * c + i * g.tanh()
    return o * c.tanh(), c, {"input": i, "forget": f, "output": o}


def _gru(a: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    (ar, az, an), (br, bz, bn) = a.chunk(3, dim=1), b.chunk(3, dim=1)
    r, z = (ar + br).sigmoid(), (az + bz).sigmoid()
    n = (an + r * bn).tanh()
    return (1 - z) * n + z * h, c, {"reset": r, "update": z}
