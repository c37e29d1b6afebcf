"""snell2021: translation, copying and classification, as in its program."""

from __future__ import annotations

from regard.runs.presets import PRESETS, Preset

# snell2021, translation: as in its program; the clipping of other presets is not there.
SNELL: Preset = {
    "model.kind": "encoder-decoder",
    "model.cell": "lstm",
    "model.hidden": 256,
    "model.embedding": 256,
    "model.shared_embedding": True,
    "model.attention": "bilinear",
    "model.context_layer": True,
    "model.readout_layer": "relu",
    "training.learning_rate": 1e-3,
    "training.clip": None,
    "training.forcing": "always",
}

PRESETS.register("snell-translation")(
    {
        **SNELL,
        "model.layers": 2,
        "model.bidirectional": True,
        "model.bridge": "mean",
        "model.project_memory": False,
        "model.dropout": 0.5,
        "training.batch": 16,
        "training.updates": 36_250,  # 20 epochs of Multi30k
        "training.milestones": (0, 50, 100, 500, 1000, 1500),
        "training.evaluate_every": 2000,
        "training.checkpoint_every": 2000,
        "training.report": "best",
        "training.best_by": "loss",
    }
)

# snell2021, copying: one layer in one direction, tanh in the network before the output.
SNELL_COPYING: Preset = {
    **SNELL,
    "model.readout_layer": "tanh",
    "training.batch": 128,
    "training.updates": 200,
    "training.evaluate_every": 10,
    "training.checkpoint_every": 50,
}

PRESETS.register("snell-copying")(SNELL_COPYING)

# The same with GRUs and eight heads whose contexts are averaged (the paper's text: summed).
PRESETS.register("snell-heads")(
    {**SNELL_COPYING, "model.cell": "gru-torch", "model.heads": 8, "model.merge": "mean"}
)

# snell2021, classification. Word vectors are drawn, as in its program; `vectors=FILE` begins with
# GloVe's, as in its text.
SNELL_CLASSIFIER: Preset = {
    "model.kind": "reader",
    "training.learning_rate": 1e-3,
    "training.clip": None,
    "training.batch": 32,
    "training.updates": 4000,
    "training.milestones": (0, 10, 50, 100, 150, 200),
    "training.evaluate_every": 250,
    "training.checkpoint_every": 250,
    "training.report": "best",
}

PRESETS.register("snell-classifier")(SNELL_CLASSIFIER)

# snell2021's bag of words: 30 epochs of Multi30k; for other data set updates.
PRESETS.register("snell-proxy")(
    {
        "model.kind": "reader",
        "model.cell": "none",
        "model.bidirectional": False,
        "model.embedding": 256,
        "model.attention": "uniform",
        "model.outputs": "words",
        "classification/model.outputs": "labels",
        "keyword/model.outputs": "labels",
        "training.learning_rate": 1e-3,
        "training.clip": None,
        "training.batch": 64,
        "training.updates": 13_600,
        "training.evaluate_every": 500,
        "training.checkpoint_every": 500,
    }
)
