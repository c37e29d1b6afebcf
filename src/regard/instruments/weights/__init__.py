"""Instruments of weight matrices: of a run, of any module, or given by name (baan2019)."""

from regard.instruments.weights.connectivity import connectivity as connectivity
from regard.instruments.weights.heatmaps import heatmaps as heatmaps
from regard.instruments.weights.polarity import polarity as polarity
from regard.instruments.weights.strength import strength as strength
