"""Small runs to change: their settings, and what is compared of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.runs import Run, RunConfig, assemble, execute, run_all

TASK = {"tables": 4, "bits": 2, "held_out_tables": 1, "held_out_compositions": 2,
        "held_out_inputs": 1, "held_out": 2}  # fmt: skip
TIME = {"updates": 12, "batch": 4, "evaluate_every": 5, "checkpoint_every": 5}
# One of each kind: attention before the step, dot, layers, two ways, none, no recurrence.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "baan": ("lookup", "baan", {**TASK, **TIME, "hidden": 8, "embedding": 5,
                                "decoder_embedding": 8}),
    "aed": ("one-to-one", "aed", {**TIME, "hidden": 8, "held_out": 6}),
    "ved": ("one-to-one", "ved", {**TIME, "hidden": 8, "held_out": 6}),
    "layers": ("reversal", "chapter36", {**TIME, "hidden": 8, "held_out": 6, "layers": 2,
                                         "attention": "scaled"}),
    "two-way": ("reversal", "chapter36-bidirectional", {**TIME, "hidden": 8, "held_out": 6,
                                                        "layers": 2, "attention": "dot",
                                                        "initial_state": "trainable"}),
    "transformer": ("reversal", "transformer", {**TIME, "hidden": 8, "held_out": 6, "heads": 2,
                                                "feedforward": 8}),
    "ao": ("one-to-one", "ao", {**TIME, "hidden": 8, "held_out": 6}),
}  # fmt: skip


def here(configs: Sequence[RunConfig], root: Path) -> list[Run]:
    """In this process: starting another takes seconds."""
    return run_all(configs, root, jobs=1)


def trained(kind: str, root: Path, seed: int = 0, **more: Any) -> Run:
    """A run of a kind."""
    task, model, settings = KINDS[kind]
    return execute(assemble(task, model, seed, {**settings, **more}), root)


def weights(run: Run, checkpoint: str | int = "reported") -> dict[str, Tensor]:
    """The parameters by name."""
    return dict(run.model(checkpoint).state_dict())
