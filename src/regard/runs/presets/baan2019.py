"""baan2019, as its program has it.

Attention before the step with an MLP, full focus, own predictions only, everything from U(±0.08),
one example at a time for 100 epochs of 232 rows, losses summed over steps, the best checkpoint by
validation loss. `guidance=1` is the guided model, `guidance=0` the baseline. `recipe=fast` gets to
the same table in a fifth of the time: what seems to matter is how far the weights wander once the
training loss is zero, for which a higher rate at a small batch needs fewer updates; Adam's shorter
memory keeps it from leaping when gradients vanish (docs/recipes.md).
"""

from __future__ import annotations

from regard.runs.presets import PRESETS, Preset

BAAN: Preset = {
    "model.kind": "encoder-decoder",
    "model.cell": "gru-torch",
    "model.hidden": 512,
    "model.embedding": 16,
    "model.decoder_embedding": 512,
    "model.attention": "additive-relu",
    "model.attend": "before",
    "model.focus": "full",
    "model.uniform": 0.08,
    "training.forcing": "never",
    "training.average": "sequences",
    "training.learning_rate": 1e-3,
    "training.clip": 5.0,
    "training.batch": 1,
    "training.updates": 23_200,
    "training.evaluate_every": 200,
    "training.checkpoint_every": 2320,
    "training.report": "best",
    "training.best_by": "loss",
    "paper:training.batch": 1,
    "paper:training.updates": 23_200,
    "fast:training.batch": 4,
    "fast:training.learning_rate": 4e-3,
    "fast:training.beta2": 0.99,
    "fast:training.updates": 4000,
    "fast:training.checkpoint_every": 400,
}

PRESETS.register("baan")(BAAN)
