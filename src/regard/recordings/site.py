"""What a recording knows of one attention: who asks, who answers, and how scores follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.recordings.storage import Array
from regard.tasks.vocabulary import PAD

Side = Literal["encoder", "decoder"]

# The axis along which each side's steps run.
AXIS_OF: dict[str, str] = {"encoder": "source", "decoder": "target"}
# The arrays of a site: `SITE.queries` and so on.
PARTS = ("queries", "keys", "values", "scores", "bias", "weights", "vector")


@dataclass(frozen=True)
class Site:
    """One attention: its sides, its layer, its heads and its score function.

    The arrays `SITE.queries`, `SITE.keys`, `SITE.values`, `SITE.scores` and `SITE.weights` have a
    head axis after the sample axis, also where there is one head.
    """

    query_side: Side = "decoder"
    key_side: Side = "encoder"
    layer: int = 0
    heads: int = 1
    score: str = "dot"  # `dot`: queries · keys; `additive…`: vector · activation(queries + keys)
    lag: int = 0  # 1 where the query of a step is made before the step's word is read
    plain: bool = False  # queries and keys are the states themselves
    projected: bool = False  # weights mix V h, a learned map of the states, instead of the states
    scale: float = 1.0  # that the queries have been multiplied with, so that scores are products
    masked: bool = True  # positions without a word get no weight

    @property
    def bilinear(self) -> bool:
        """Whether scores = queries · keys, so that the decomposition is exact."""
        return self.score == "dot"

    @property
    def crosses(self) -> bool:
        """Whether it looks from the target to the source."""
        return (self.query_side, self.key_side) == ("decoder", "encoder")

    @property
    def causal(self) -> bool:
        """Whether it looks back only: a decoder at itself."""
        return self.query_side == self.key_side == "decoder"

    def shift_words(self, words: Array) -> Array:
        """The last word that each query knows, given the words fed. (sample, target)

        With a lag that is the word of the step before, and at the first step `<PAD>`: none yet.
        """
        if not self.lag:
            return words
        earlier = np.full_like(words, PAD)
        earlier[:, self.lag :] = words[:, : -self.lag]
        return earlier

    def axes(self, part: str) -> tuple[str, ...]:
        """The axes of one of the site's arrays."""
        if part == "vector":
            return ("head", "features")
        queries, keys = AXIS_OF[self.query_side], AXIS_OF[self.key_side]
        ends = {"queries": (queries,), "keys": (keys,), "values": (keys,)}
        if part in ends:
            return ("sample", "head", *ends[part], "features")
        return ("sample", "head", queries, keys)

    @classmethod
    def from_format_1(cls, name: str, data: Mapping[str, Any]) -> Site:
        """A site as files of format 1 have it: the layer was in its name only."""
        numbers = [part for part in name.split(".") if part.isdecimal()]
        return cls(
            data.get("asks", "decoder"),
            data.get("answers", "encoder"),
            int(numbers[0]) if numbers else 0,
            data.get("heads", 1),
            data.get("scorer", "dot"),
            data.get("lag", 0),
            data.get("plain", False),
            data.get("projected", False),
        )
