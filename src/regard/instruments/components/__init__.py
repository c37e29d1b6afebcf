"""Instruments of a recording's components: h = μ + χ + Δ (aitken2021)."""

from regard.instruments.components.breakdown import breakdown
from regard.instruments.components.clusters import clusters
from regard.instruments.components.dictionary import dictionary
from regard.instruments.components.offset import offset
from regard.instruments.components.orthogonality import orthogonality
from regard.instruments.components.pull import pull
from regard.instruments.components.simplex import simplex
from regard.instruments.components.sizes import sizes
from regard.instruments.components.trajectories import trajectories
from regard.instruments.components.variance import variance
from regard.instruments.components.word_clouds import word_clouds

__all__ = [
    "breakdown",
    "clusters",
    "dictionary",
    "offset",
    "orthogonality",
    "pull",
    "simplex",
    "sizes",
    "trajectories",
    "variance",
    "word_clouds",
]
