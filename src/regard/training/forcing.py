"""What the decoder is fed while it learns, and what follows for the loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.models.outputs import Memory, Output, Seq2Seq
from regard.tasks.batch import Batch
from regard.training.config import TrainingConfig
from regard.training.schedules import forcing_chance


def forced_steps(config: TrainingConfig, update: int, seed: int, steps: int) -> Tensor:
    """One coin flip per decoder step, the same for the whole batch (as chapter36 does it).

    The flips are a function of seed and update alone. -> (steps,) bool
    """
    chance = forcing_chance(config, update)
    if chance == 1:
        return torch.ones(steps, dtype=torch.bool)
    rng = np.random.default_rng([seed, update, 1])
    return torch.from_numpy(rng.random(steps) < chance)


def forward(model: Seq2Seq, batch: Batch, forced: Tensor, told: bool = False) -> Output:
    """One pass that can be differentiated, with some steps forced and the others own.

    With `told`, attention is forced to the batch's alignment as well.
    """
    memory = remembered(model, batch, told)
    return model.decode_mixed(memory, batch.inputs, forced, batch.target_lengths)


def remembered(model: Seq2Seq, batch: Batch, told: bool) -> Memory:
    """The source as the decoder knows it, attention forced to the alignment where asked."""
    memory = model.encode(batch.source, batch.source_lengths)
    if not told or batch.alignment is None:
        return memory
    return model.told(memory, batch.alignment)
