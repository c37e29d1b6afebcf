"""The components of a model: names for groups of its parameters, to freeze, swap or prune."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from regard.errors import RegardError, unknown

# What belongs to the encoder's side; all the rest is the decoder's.
ENCODER = ("encoder.", "source_embedding.", "bridge.", "memory.")
# Components inside a side: how the names of their parameters begin, or end.
INSIDE = {
    "encoder.embedding": ("source_embedding.", ""),
    "encoder.W_ih": ("encoder.", ".weight_ih"),
    "encoder.W_hh": ("encoder.", ".weight_hh"),
    "decoder.embedding": ("target_embedding.", ""),
    "decoder.W_ih": ("decoder.", ".weight_ih"),
    "decoder.W_hh": ("decoder.", ".weight_hh"),
    "attention": ("attention.", ""),
    "focus": ("focus.", ""),
    "output": ("readout.", ""),
}


def components(model: nn.Module) -> dict[str, list[str]]:
    """The components that a model has, and the names of the parameters in each.

    `encoder` and `decoder` are whole sides: the decoder has the attention and the output layer.
    """
    names = [name for name, _ in model.named_parameters()]
    sides = {
        "encoder": [name for name in names if name.startswith(ENCODER)],
        "decoder": [name for name in names if not name.startswith(ENCODER)],
    }
    inside = {
        component: [n for n in names if n.startswith(begin) and n.endswith(end)]
        for component, (begin, end) in INSIDE.items()
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
