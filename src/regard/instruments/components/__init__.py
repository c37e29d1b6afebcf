"""Instruments of a recording's components: h = μ + χ + Δ (aitken2021)."""

from regard.instruments.components.breakdown import breakdown as breakdown
from regard.instruments.components.clusters import clusters as clusters
from regard.instruments.components.dictionary import dictionary as dictionary
from regard.instruments.components.heads import heads as heads
from regard.instruments.components.layers import layers as layers
from regard.instruments.components.offset import offset as offset
from regard.instruments.components.orthogonality import orthogonality as orthogonality
from regard.instruments.components.pull import pull as pull
from regard.instruments.components.simplex import simplex as simplex
from regard.instruments.components.sizes import sizes as sizes
from regard.instruments.components.trajectories import trajectories as trajectories
from regard.instruments.components.variance import variance as variance
from regard.instruments.components.word_clouds import word_clouds as word_clouds
