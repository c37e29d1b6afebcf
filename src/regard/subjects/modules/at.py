"""`regard.at`: where one attention of a module is, and what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.layers.hook_point import Side

PLACE = re.compile(r"(?P<name>[^\[\](]*)(?:\[(?P<output>\w+)\]|\((?P<input>\w+)\))?")


class Place(NamedTuple):
    """A tensor that passes a submodule: `attn`, its output; `attn[1]` or `attn[weights]`, one of
    several, by number or name; `attn(0)` or `attn(query)`, an input."""

    text: str
    name: str
    output: str | None
    input: str | None

    @classmethod
    def read(cls, text: str, module: nn.Module) -> Place:
        """The place that a text means in a module."""
        found = PLACE.fullmatch(text)
        known = dict(module.named_modules())
        name = text.partition("[")[0].partition("(")[0]
        if found is None:
            raise RegardError(
                f"'{text}' does not name a place. Write '{name}', '{name}[1]' for its second"
                f" output, '{name}(0)' for its first input."
            )
        if found["name"] not in known:
            raise RegardError(unknown("submodule", found["name"], [n for n in known if n]))
        return cls(text, found["name"], found["output"], found["input"])


@dataclass(frozen=True)
class At:
    """One attention by its places; see `at`."""

    q: str | None = None
    k: str | None = None
    v: str | None = None
    heads: int = 1
    scale: float = 1.0
    lag: int = 0
    vector: str | Tensor | None = None
    weights: str | None = None
    scores: str | None = None
    bias: str | Tensor | None = None
    masked: bool = True
    query_side: Side = "decoder"
    key_side: Side = "encoder"
    layer: int = 0
    score: str = "dot"
    projected: bool = False

    def places(self) -> dict[str, str]:
        """The arrays of the attention and where they are."""
        named: Mapping[str, Any] = {
            "queries": self.q, "keys": self.k, "values": self.v, "weights": self.weights,
            "scores": self.scores, "bias": self.bias,
        }  # fmt: skip
        return {part: where for part, where in named.items() if isinstance(where, str)}


def read_layer(name: str) -> int:
    """The layer that an attention's name says, `decoder.2.cross`; 0 where it says none."""
    return next((int(part) for part in name.split(".") if part.isdecimal()), 0)


def with_layer(name: str, site: At) -> At:
    """The attention in the layer that its name says, where nothing else was said."""
    return site if site.layer else replace(site, layer=read_layer(name))


def at(
    q: str | None = None,
    k: str | None = None,
    v: str | None = None,
    *,
    heads: int = 1,
    scale: float = 1.0,
    lag: int = 0,
    vector: str | Tensor | None = None,
    weights: str | None = None,
    scores: str | None = None,
    bias: str | Tensor | None = None,
    masked: bool = True,
    query_side: Side = "decoder",
    key_side: Side = "encoder",
    layer: int | None = None,
    score: str | None = None,
) -> At:
    """Where an attention's queries, keys and values pass, and what the attention is.

    Places are names of submodules: `"attn.q_proj"` (its output), `"attn[1]"` (the second of
    several), `"attn(0)"` (its first input). `scores = scale · q·k + bias` in `heads` heads; with a
    `vector` (a submodule, parameter or tensor) `vector · tanh(q + k)`, or by `score`
    ("additive-relu"). `weights` that the module gives are compared with softmax(scores), or stand
    alone without `q` and `k`. `lag=1`: the query is made before the step's word is read.
    `masked=False`: padding gets weight, too.

    >>> regard.at(q="attn.q_proj", k="attn.k_proj", v="attn.v_proj", heads=8, scale=64**-0.5)
    At(q='attn.q_proj', k='attn.k_proj', v='attn.v_proj', heads=8, scale=0.125, ...
    """
    faults = []
    if (q is None) != (k is None):
        faults.append("Give both q and k, or weights alone.")
    if heads < 1 or lag not in (0, 1):
        faults.append(f"heads={heads} is 1 or more, and lag={lag} is 0 or 1.")
    if faults:
        raise RegardError(*faults)
    kind = score or ("dot" if vector is None else "additive")
    return At(q, k, v, heads, scale, lag, vector, weights, scores, bias, masked, query_side,
              key_side, layer or 0, kind, True)  # fmt: skip
