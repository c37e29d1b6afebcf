"""Instruments of weight matrices: of a run, of any module, or given by name (baan2019)."""

from regard.instruments.weights.connectivity import connectivity
from regard.instruments.weights.heatmaps import heatmaps
from regard.instruments.weights.polarity import polarity
from regard.instruments.weights.strength import strength

__all__ = ["connectivity", "heatmaps", "polarity", "strength"]
