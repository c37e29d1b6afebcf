"""Instruments of single units and gates (baan2019)."""

from regard.instruments.units.activations import activations
from regard.instruments.units.gates import gates
from regard.instruments.units.groups import groups
from regard.instruments.units.probe import probe

__all__ = ["activations", "gates", "groups", "probe"]
