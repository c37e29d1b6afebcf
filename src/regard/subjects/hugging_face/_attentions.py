"""Where the attentions of a model of `transformers` are, whatever family it belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import Tensor, nn

from regard.models.layers.hook_point import AttentionPoints, Side

# What the maps of a state to queries, keys and values are called.
PROJECTIONS = (
    ("q_proj", "k_proj", "v_proj"),
    ("q", "k", "v"),
    ("query_proj", "key_proj", "value_proj"),
)
CROSS = ("encoder_attn", "cross_attn", "cross_attention", "EncDecAttention", "encoder_attention")


@dataclass(frozen=True)
class Attention:
    """One attention of a foreign model."""

    site: str
    query_side: Side
    key_side: Side
    layer: int
    module: nn.Module
    maps: tuple[nn.Module, nn.Module, nn.Module]  # to queries, keys and values
    points: AttentionPoints

    @property
    def heads(self) -> int:
        """How many heads there are."""
        for name in ("num_heads", "n_heads", "num_attn_heads"):
            found = getattr(self.module, name, None)
            if isinstance(found, int):
                return found
        return 1

    @property
    def scale(self) -> float:
        """What products are multiplied with; T5 has none."""
        if hasattr(self.module, "key_value_proj_dim"):
            return 1.0
        found = getattr(self.module, "scaling", None)
        if isinstance(found, float):
            return found
        weight = self.maps[0].weight
        assert isinstance(weight, Tensor)
        return float((weight.shape[0] // self.heads) ** -0.5)

    @property
    def causal(self) -> bool:
        """Whether it looks back only."""
        return self.query_side == self.key_side == "decoder"


def find_attentions(model: nn.Module) -> tuple[list[Attention], list[str]]:
    """All attentions in order, and the names of modules that attend in a way of their own."""
    found, strange = [], []
    for name, module in model.named_modules():
        maps = _projections(module)
        parts = name.split(".")
        side = next((part for part in reversed(parts) if part in ("encoder", "decoder")), None)
        numbers = re.findall(r"(?:layers|block)\.(\d+)\.", f"{name}.")
        if maps is None or side is None or not numbers:
            if re.search(r"(longformer|global|local|ngram)\w*(attn|attention)?$", parts[-1], re.I):
                strange.append(name)
            continue
        if re.search("ngram", type(module).__name__, re.I):
            strange.append(name)
            continue
        crosses = any(part in CROSS for part in parts[-2:])
        kind, key_side = ("cross", "encoder") if crosses else ("self", side)
        site = f"{side}.{numbers[0]}.{kind}"
        points = AttentionPoints(site, side, key_side)  # type: ignore[arg-type]
        found.append(
            Attention(site, side, key_side, int(numbers[0]), module, maps, points)  # type: ignore[arg-type]
        )
    order = {"encoder": 0, "decoder": 1}
    found.sort(key=lambda a: (order[a.query_side], a.layer, a.key_side != a.query_side))
    return found, strange


def _projections(module: nn.Module) -> tuple[nn.Module, nn.Module, nn.Module] | None:
    for names in PROJECTIONS:
        q, k, v = (getattr(module, name, None) for name in names)
        if isinstance(q, nn.Linear) and isinstance(k, nn.Linear) and isinstance(v, nn.Linear):
            return q, k, v
    return None
