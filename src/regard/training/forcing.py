"""What the decoder is fed while it learns, and what follows for the loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.models.decoding import mixed_inputs
from regard.models.outputs import Output, Seq2Seq
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


def forward(model: Seq2Seq, batch: Batch, forced: Tensor) -> Output:
    """One pass that can be differentiated, with some steps forced and the others own."""
    memory = model.encode(batch.source, batch.source_lengths)
    inputs = batch.inputs
    if not bool(forced[1:].all()):
        inputs = mixed_inputs(model, memory, inputs, forced)
    return model.decode(memory, inputs, batch.target_lengths)
