"""Weights in files: put into a model, and asked what their shapes tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.runs.files import read_tensors

SHOWN = 10  # faults that are told
Sizes = tuple[int, int]  # words of the source's vocabulary, and of the target's


def require_file(path: Path) -> None:
    """Refuse to begin with a file of weights that is not there."""
    if not path.is_file():
        raise RegardError(
            f"There is no file of weights {path} (training.start). Put it back, or ask again for"
            " what made it."
        )


def load_weights(model: Seq2Seq, path: Path) -> None:
    """Fill a model with the weights of a file; what does not fit is named with its shapes."""
    require_file(path)
    try:
        tensors = read_tensors(path)
    except RegardError as error:
        if "damaged" in str(error):
            raise
        raise RegardError(
            f"{path} is not a safetensors file of weights (training.start)."
            " Give a checkpoint of a run."
        ) from None
    fill_model(model, tensors, path)


def fill_model(model: Seq2Seq, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Fill a model with tensors of a file; what does not fit is named with its shapes."""
    own = model.state_dict()
    faults = [
        f"{path}: '{name}' is {_shape(tensors.get(name))} there and {_shape(own.get(name))} in"
        " the model. Give weights of the same model."
        for name in dict.fromkeys([*own, *tensors])
        if _shape(tensors.get(name)) != _shape(own.get(name))
    ]
    faults += [
        f"{path}: '{name}' holds values that are not numbers. Take another checkpoint."
        for name, tensor in tensors.items()
        if not tensor.isfinite().all()
    ]
    if faults:
        raise RegardError(*faults[:SHOWN])
    model.load_state_dict(tensors)


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else " x ".join(map(str, tensor.shape)) or "one number"


def infer_sizes(tensors: Mapping[str, Tensor], build: Callable[[Sizes], Seq2Seq]) -> Sizes | None:
    """The vocabulary sizes of the model whose weights these are, or None if no shape tells.

    Models of a few words each are built; where one with a word more has a longer axis, that axis
    has the size.
    """

    def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
        try:
            built = build(sizes).state_dict()
        except RegardError:  # no such model: it has one vocabulary for both sides, or more labels
            return {}
        return {name: tuple(tensor.shape) for name, tensor in built.items()}

    few = 5
    small, wanted = shapes((few, few)), {name: tuple(t.shape) for name, t in tensors.items()}
    if set(small) != set(wanted):
        return None
    found = []
    for sizes in ((few + 1, few), (few, few + 1)):
        grown = shapes(sizes) or shapes((few + 1, few + 1))
        found += [
            few + (w - s) // (g - s)
            for name in small
            for s, g, w in zip(small[name], grown[name], wanted[name], strict=True)
            if g > s
        ][:1]
    if len(found) < 2:
        return None
    guesses = ((found[0], found[1] + more) for more in (0, 1))  # two labels have one output
    return next((sizes for sizes in guesses if shapes(sizes) == wanted), None)
