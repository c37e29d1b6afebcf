"""The components of a model: names for groups of its parameters, to freeze, swap or prune."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch import nn

from regard.errors import RegardError, unknown

# What belongs to the encoder's side; all the rest is the decoder's.
ENCODER = ("encoder.", "encoder_norm.", "source_embedding.", "bridge.", "memory.")
# Components inside a side: what the names of their parameters match, in either kind of model.
# In a Transformer each attention has the normalisation before it, and so has the layer between.
INSIDE = {
    "encoder.embedding": r"source_embedding\.",
    "encoder.W_ih": r"encoder\..*\.weight_ih$",
    "encoder.W_hh": r"encoder\..*\.weight_hh$",
    "encoder.attention": r"encoder\.\d+\.self_",
    "encoder.feedforward": r"encoder\.\d+\.(norm|feedforward)\.",
    "decoder.embedding": r"target_embedding\.",
    "decoder.W_ih": r"decoder\..*\.weight_ih$",
    "decoder.W_hh": r"decoder\..*\.weight_hh$",
    "decoder.attention": r"decoder\.\d+\.self_",
    "decoder.feedforward": r"decoder\.\d+\.(norm|feedforward)\.",
    "attention": r"attention\.|decoder\.\d+\.cross_",
    "focus": r"focus\.",
    "output": r"readout\.",
}


def components(model: nn.Module) -> dict[str, list[str]]:
    """The components that a model has, and the names of the parameters in each.

    `encoder` and `decoder` are whole sides: the decoder has the attention and the output layer.
    `attention` is the one that looks from the target to the source.
    """
    names = [name for name, _ in model.named_parameters()]
    sides = {
        "encoder": [name for name in names if name.startswith(ENCODER)],
        "decoder": [name for name in names if not name.startswith(ENCODER)],
    }
    inside = {
        component: [name for name in names if re.match(pattern, name)]
        for component, pattern in INSIDE.items()
    }
    return {component: found for component, found in {**sides, **inside}.items() if found}


def parameters_of(model: nn.Module, wanted: Iterable[str]) -> list[str]:
    """The names of the parameters in some components; all unknown ones in one message."""
    known = components(model)
    wanted = list(wanted)
    faults = [unknown("component", name, known) for name in wanted if name not in known]
    if faults:
        raise RegardError(*faults)
    return list(dict.fromkeys(name for component in wanted for name in known[component]))
