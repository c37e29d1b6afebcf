"""chapter36: encoder-decoders without attention, and the models that they are compared with."""

from __future__ import annotations

from regard.runs.presets import PRESETS, Preset

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

PRESETS.register("chapter36")(CHAPTER36)

PRESETS.register("chapter36-bidirectional")({**CHAPTER36, "model.bidirectional": True})

# The same model with a switchboard instead of a pipe.
PRESETS.register("chapter36-attention")({**CHAPTER36, "model.attention": "dot"})

PRESETS.register("transformer")(
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

PRESETS.register("quickstart")(QUICKSTART)

PRESETS.register("quickstart-attention")({**QUICKSTART, "model.attention": "dot"})
