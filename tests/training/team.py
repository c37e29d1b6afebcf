"""Models that are trained in pieces by tests, and one process of two that train them together.

`python team.py RANK STORE FOLDER`
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as processes
from safetensors.torch import save_file

from regard.runs import assemble
from regard.training import Trainer
from regard.training.ranks import ALONE, Ranks

UPDATES = 4
# Adam divides by √v + epsilon: with a small one, gradients that are zero but for rounding count.
COMMON = {"updates": 20, "epsilon": 1e-2, "hidden": 8}
# Batches that do not split evenly; every loss, every forcing, dropout, clipping, l2, frozen parts.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "words": ("reversal", "chapter36", {"batch": 7, "held_out": 5}),
    "sequences": ("reversal", "chapter36", {"batch": 7, "held_out": 5, "average": "sequences"}),
    "professor": ("reversal", "chapter36", {"batch": 8, "held_out": 5, "forcing": "professor"}),
    "dropout": (
        "reversal",
        "snell-translation",
        {"batch": 7, "held_out": 5, "forcing": "ratio", "clip": 0.1},
    ),
    "l2": ("one-to-one", "aed", {"batch": 9, "held_out": 5, "clip": 0.05, "l2": 0.01}),
    "guided": ("lookup", "baan", {"batch": 5, "guidance": 1}),
    "guided words": ("scan", "baan", {"batch": 5, "guidance": 2, "average": "words"}),
    "by hand": ("lookup", "baan", {"batch": 3, "hidden": 64}),
    "read padding": ("reversal", "ao", {"batch": 6, "held_out": 5, "padding": "read"}),
    "transformer": ("reversal", "transformer", {"batch": 9, "held_out": 5, "heads": 2}),
    "labels": ("keyword", "snell-classifier", {"batch": 5, "held_out": 5}),
    "heads": (
        "copying",
        "snell-heads",
        {"batch": 5, "held_out": 5, "freeze": "encoder.embedding", "keep_zeros": True},
    ),
}


def train(
    name: str, ranks: Ranks = ALONE, **settings: Any
) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The losses of a few updates, and the state after them."""
    task, preset, own = CASES[name]
    config = assemble(task, preset, 0, {**COMMON, **own, **settings})
    made = config.make_task()
    trainer = Trainer(config.make_model(made), made, config.training, 0, ranks)
    losses = [trainer.step() for _ in range(UPDATES)]
    return losses, {key: value.detach().contiguous() for key, value in trainer.state().items()}


def main(rank: int, store: str, folder: Path) -> None:
    """Train every case as one of two, and keep what came of it."""
    torch.set_num_threads(1)
    processes.init_process_group("gloo", init_method=Path(store).as_uri(), rank=rank, world_size=2)
    for name in CASES:
        losses, state = train(name, Ranks(rank, 2))
        state["losses"] = torch.tensor(losses, dtype=torch.float64)
        save_file({key: value.clone() for key, value in state.items()}, folder / f"{name}.{rank}")
    processes.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
