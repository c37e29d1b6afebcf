"""What an attention that was found by its type asks from and looks at, by two probes."""

from __future__ import annotations

from torch import Tensor

from regard.models.layers.hook_point import Side
from regard.subjects.modules._layout import Sizes
from regard.subjects.modules._listening import Heard

AHEAD = 1e-6  # weight on words that are still to come


def tell_sides(name: str, heard: Heard, shorter: Heard, sizes: Sizes) -> tuple[Side, Side] | str:
    """Whose steps an attention's queries and keys are, or why it is left out.

    What is the target's is shorter by a word in the second pass, which heard a target that is;
    an encoder that halves its source may come to the target's length all the same.
    """
    if name in heard.again:
        return "called several times in a pass"
    sides: dict[tuple[int, int], Side] = {
        (sizes.source, sizes.source): "encoder",
        (sizes.target, sizes.target - 1): "decoder",
    }
    lengths = heard.asked[name][:2]
    query, key = (sides.get(pair) for pair in zip(lengths, shorter.asked[name][:2], strict=True))
    if query is None or key is None:
        return f"of {lengths[0]} queries and {lengths[1]} keys, not one a word"
    if query == key == "decoder" and _looks_ahead(heard.sites[name].weights):
        return "of the decoder's own words, and looks ahead"
    return query, key


def _looks_ahead(weights: Tensor) -> bool:
    """Whether a row has weight right of the diagonal. (…, target, source)"""
    return bool(weights.detach().triu(1).abs().max() > AHEAD)
