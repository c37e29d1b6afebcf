"""The chapter's model, in its own size and in a smaller one for a first look."""

from __future__ import annotations

from typing import Any

from regard.papers.framework import Scale
from regard.papers.framework.measures import count_seeds, plan_seeds
from regard.runs import RunConfig

UPDATES = {"quick": 700, "full": 2000}
UNITS = {"quick": 64, "full": 128}
SOURCE: dict[str, Any] = {"updates": 2000, "hidden": 128}  # the source's own, at either scale


def plan_chapter(scale: Scale, task: str = "reversal", **overrides: object) -> list[RunConfig]:
    """One run per seed: the chapter's own settings at full scale."""
    settings = {"updates": UPDATES[scale], "hidden": UNITS[scale], **overrides}
    return plan_seeds(count_seeds(scale), task, "chapter36", **settings)
