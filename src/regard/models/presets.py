"""Named settings of models, with the training that their source gives them.

A preset is a set of dotted keys, the same as on the command line; what the user says wins.
"""

from __future__ import annotations

from typing import Any

from regard.registry import Registry

Preset = dict[str, Any]

presets: Registry[Preset] = Registry("model")

# chapter36: one-layer LSTM, a coin flip per step between teacher and own prediction.
CHAPTER36: Preset = {
    "model.kind": "encoder-decoder",
    "model.cell": "lstm",
    "model.hidden": 128,
    "model.embedding": 32,
    "training.forcing": "ratio",
    "training.ratio": 0.5,
    "training.learning_rate": 5e-3,
    "training.clip": 1.0,
    "training.batch": 64,
    "training.updates": 2000,
}

presets.register("chapter36")(CHAPTER36)

presets.register("chapter36-bidirectional")({**CHAPTER36, "model.bidirectional": True})

# The same model with a switchboard instead of a pipe.
presets.register("chapter36-attention")({**CHAPTER36, "model.attention": "dot"})

presets.register("transformer")(
    {
        "model.kind": "transformer",
        "model.hidden": 128,
        "model.layers": 2,
        "model.heads": 4,
        "training.forcing": "always",
        "training.learning_rate": 2e-3,
        "training.warmup": 100,
        "training.decay": "cosine",
        "training.clip": 1.0,
        "training.batch": 64,
        "training.updates": 2000,
    }
)

# What `regard demo` trains: the same model, always forced, with a higher rate that falls to zero.
QUICKSTART: Preset = {
    **CHAPTER36,
    "training.forcing": "always",
    "training.learning_rate": 1e-2,
    "training.warmup": 50,
    "training.decay": "cosine",
    "training.updates": 1500,
}

presets.register("quickstart")(QUICKSTART)

presets.register("quickstart-attention")({**QUICKSTART, "model.attention": "dot"})
