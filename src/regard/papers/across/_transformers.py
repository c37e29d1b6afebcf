"""Small Transformers on the other papers' tasks, as several experiments want them."""

from __future__ import annotations

from typing import Any

from regard.papers.across.order import MILESTONES
from regard.papers.framework import Scale
from regard.papers.framework.measures import count_seeds, plan_seeds
from regard.runs import RunConfig

# eSCAN as AO has it; the model is half as wide as the preset's, with its depth and heads.
ESCAN: dict[str, Any] = {"shortest": 10, "longest": 15, "period": True}
UPDATES = {"quick": 600, "full": 2000}
HIDDEN = 64
CROSSING = ("decoder.0.cross", "decoder.1.cross")  # its attentions from target to source


def plan_transformer_escan(scale: Scale) -> list[RunConfig]:
    """Transformers on eSCAN, with checkpoints close together where learning happens."""
    return plan_seeds(
        count_seeds(scale), "escan", "transformer", **ESCAN, hidden=HIDDEN,
        updates=UPDATES[scale], milestones=MILESTONES,
    )  # fmt: skip
