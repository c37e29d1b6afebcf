"""Small Transformers on the other papers' tasks, as several experiments want them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.papers.across.order import MILESTONES
from regard.papers.framework import Scale
from regard.papers.framework.measures import count_seeds, plan_seeds
from regard.papers.snell2021._data_sets import SETS
from regard.runs import RunConfig

# eSCAN as AO has it; the model is half as wide as the preset's, with its depth and heads.
ESCAN: dict[str, Any] = {"shortest": 10, "longest": 15, "period": True}
UPDATES = {"quick": 600, "full": 2000}
HIDDEN = 64
LOOKUP_UPDATES = {"quick": 400, "full": 2000}
# Wide enough for 64 atomic rows and no wider; the loss is that of baan2019.
LOOKUP: dict[str, Any] = {
    "hidden": HIDDEN, "average": "sequences", "report": "best", "best_by": "loss"
}  # fmt: skip
REVERSAL_UPDATES = {"quick": 300, "full": 600}
# Multi30k in few pieces of words and short sentences, so that a small model learns some of it.
MULTI30K: dict[str, Any] = {
    "pieces": 2000, "longest": 20, "evaluate_every": 500,
    # Fewer than elsewhere: at each of them a thousand sentences are translated.
    "milestones": (0, 40, 80, 130, 200, 300, 400, 500, 700, 1000),
}  # fmt: skip
MULTI30K_UPDATES = {"quick": 200, "full": 1500}
CROSSING = ("decoder.0.cross", "decoder.1.cross")  # its attentions from target to source


def plan_transformer_escan(scale: Scale) -> list[RunConfig]:
    """Transformers on eSCAN, with checkpoints close together where learning happens."""
    return plan_seeds(
        count_seeds(scale), "escan", "transformer", **ESCAN, hidden=HIDDEN,
        updates=UPDATES[scale], milestones=MILESTONES,
    )  # fmt: skip


def plan_transformer_lookup(scale: Scale, guidance: int) -> list[RunConfig]:
    """Transformers on lookup tables of the generator, guided by so much."""
    return plan_seeds(
        scale, "lookup", "transformer", guidance=guidance, updates=LOOKUP_UPDATES[scale], **LOOKUP
    )


def plan_transformer_reversal(scale: Scale) -> list[RunConfig]:
    """Transformers on the chapter's strings, with checkpoints where learning happens."""
    return plan_seeds(
        scale, "reversal", "transformer", hidden=HIDDEN, updates=REVERSAL_UPDATES[scale],
        milestones=MILESTONES,
    )  # fmt: skip


def plan_transformer_multi30k(folder: Path, scale: Scale) -> list[RunConfig]:
    """Transformers that translate German into English."""
    return plan_seeds(
        scale, "translation", "transformer", **SETS["multi30k"].fill_settings(folder), **MULTI30K,
        hidden=HIDDEN, updates=MULTI30K_UPDATES[scale],
    )  # fmt: skip
