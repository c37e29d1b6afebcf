"""What the decoder is fed while it learns, and what follows for the loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.models.seq2seq import Memory, Output, Seq2Seq
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


def forward(model: Seq2Seq, batch: Batch, forced: Tensor, forced_alignment: bool = False) -> Output:
    """One pass that can be differentiated, with some steps forced and the others own.

    With `forced_alignment`, attention is forced to the batch's alignment as well.
    """
    memory = encode(model, batch, forced_alignment)
    return model.decode_mixed(memory, batch.inputs, forced, batch.target_lengths)


def encode(model: Seq2Seq, batch: Batch, forced_alignment: bool) -> Memory:
    """The source as the decoder knows it, attention forced to the alignment where asked."""
    memory = model.encode(batch.source, batch.source_lengths)
    if not forced_alignment or batch.alignment is None:
        return memory
    return model.force_alignment(memory, batch.alignment)
