"""What a recording knows of one attention: who asks, who answers, and how scores follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.models.layers.attention import SiteKind
from regard.recordings.storage import Array
from regard.tasks.vocabulary import PAD

# The axis along which each side's steps run.
AXIS_OF: dict[str, str] = {"encoder": "source", "decoder": "target"}
# The arrays of a site: `SITE.queries` and so on.
PARTS = ("queries", "keys", "values", "scores", "bias", "weights", "vector")


@dataclass(frozen=True, kw_only=True)
class Site(SiteKind):
    """One attention: its sides, its layer, its heads and its score function.

    The arrays `SITE.queries`, `SITE.keys`, `SITE.values`, `SITE.scores` and `SITE.weights` have a
    head axis after the sample axis, also where there is one head.
    """

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
        layer = next((int(part) for part in name.split(".") if part.isdecimal()), 0)
        names = {"asks": "query_side", "answers": "key_side", "scorer": "score"}
        return cls(layer=layer, **{names.get(key, key): value for key, value in data.items()})
