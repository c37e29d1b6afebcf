"""Named settings of models, with the training that their source gives them.

A preset is a set of dotted keys, the same as on the command line; what the user says wins.
A key that starts with `TASK/` counts for that task only: a paper's recipe may differ by task.
One that starts with `RECIPE:` counts where the user says `recipe=RECIPE`.
"""

from __future__ import annotations

from typing import Any

from regard.registry import Registry

Preset = dict[str, Any]

presets: Registry[Preset] = Registry("model")


def preset_for(name: str, task: str, recipe: str | None = None) -> Preset:
    """The settings of a preset for one task: its own, then the task's, then the recipe's."""
    preset = presets[name]
    common = {key: value for key, value in preset.items() if "/" not in key and ":" not in key}
    return common | _behind(preset, f"{task}/") | _behind(preset, f"{recipe}:")


def recipes_of(name: str) -> list[str]:
    """The recipes that a preset has beside its own settings."""
    return list(dict.fromkeys(key.split(":", 1)[0] for key in presets[name] if ":" in key))


def _behind(preset: Preset, mark: str) -> Preset:
    return {key.removeprefix(mark): value for key, value in preset.items() if key.startswith(mark)}


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


# aitken2021: AED is the model, VED lacks the attention, AO the recurrence. Wiring as in the
# paper's program; of its training the l2 term, the batch and the loss. Its optimiser (rate 0.1,
# epsilon 0.1) and its own predictions as inputs waver with the l2 term: presets `…-paper`.
# A high rate that falls to zero brings the states to where the l2 term wants them, within half
# the updates. Two departures: AED keeps l2 1e-3 on eSCAN (the program has 1e-4), which makes time
# the larger part of the alignment; AO has 100 input dimensions on one-to-one, too (the program has
# 50), because in 50 the positions lean on the words (μ·μ .87 instead of .90).
AED: Preset = {
    "model.kind": "encoder-decoder",
    "model.cell": "gru-renn",
    "model.hidden": 128,
    "model.inputs": "one-hot",
    "model.first_input": "uniform",
    "model.initial_state": "trainable",
    "model.attention": "dot",
    "model.readout": "both",
    "model.readout_bias": False,
    "training.batch": 128,
    "training.updates": 3000,
    "training.learning_rate": 1e-2,
    "training.decay": "linear",
    "training.clip": 1.0,
    "training.forcing": "always",
    "training.l2": 1e-3,
    "sorting/training.l2": 1e-4,
    "sorting/training.updates": 2000,
    # Words of a language are too many for one-hot inputs.
    "parallel/model.inputs": "embedding",
    "parallel/model.embedding": 128,
    "parallel/model.first_input": "sos",
    "parallel/training.learning_rate": 2e-3,
    "parallel/training.l2": 1e-5,
    "parallel/training.batch": 64,
}

presets.register("aed")(AED)

VED: Preset = {
    **AED,
    "model.attention": "none",
    "model.readout": "state",
    "training.l2": 1e-4,
    "training.learning_rate": 5e-3,
    "training.updates": 3000,
}

presets.register("ved")(VED)

AO: Preset = {
    **AED,
    "model.recurrent": False,
    "model.initial_state": "zeros",
    "model.readout": "context",
    "model.positions": "sinusoidal",
    "model.time_scale": 20.0,
    "model.rotation": True,
    "model.one_hot_size": 100,
    "one-to-one/training.updates": 2000,
    "escan/model.time_scale": 100.0,
    # On eSCAN, AO is only accurate on its own predictions when it was trained on them.
    "escan/training.l2": 1e-4,
    "escan/training.forcing": "never",
    "parallel/model.one_hot_size": None,
    "parallel/model.time_scale": 100.0,
    "parallel/training.learning_rate": 1e-2,
}

presets.register("ao")(AO)

# The optimiser of aitken2021's program, and own predictions from the start.
PAPER: Preset = {
    "training.updates": 6000,
    "training.learning_rate": 0.1,
    "training.decay": "exponential",
    "training.decay_rate": 0.9997,
    "training.beta2": 0.99,
    "training.epsilon": 0.1,
    "training.clip": 10.0,
    "training.forcing": "never",
}

presets.register("aed-paper")({**AED, **PAPER})
presets.register("ved-paper")({**VED, **PAPER})
presets.register("ao-paper")({**AO, **PAPER, "one-to-one/model.one_hot_size": 50})

# baan2019, as its program has it: attention before the step with an MLP, full focus, own
# predictions only, everything from U(±0.08), one example at a time for 100 epochs of 232 rows,
# losses summed over steps, the best checkpoint by validation loss. `guidance=1` is the guided
# model, `guidance=0` the baseline. `recipe=fast` gets to the same table in a fifth of the time:
# what seems to matter is how far the weights wander once the training loss is zero, for which a
# higher rate at a small batch needs fewer updates; Adam's shorter memory keeps it from leaping when
# gradients vanish (docs/recipes.md).
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

presets.register("baan")(BAAN)

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

presets.register("snell-translation")(
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

presets.register("snell-copying")(SNELL_COPYING)

# The same with GRUs and eight heads whose contexts are averaged (the paper's text: summed).
presets.register("snell-heads")(
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

presets.register("snell-classifier")(SNELL_CLASSIFIER)

# snell2021's bag of words: 30 epochs of Multi30k; for other data set updates.
presets.register("snell-proxy")(
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
