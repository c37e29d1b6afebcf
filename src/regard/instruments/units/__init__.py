"""Instruments of single units and gates (baan2019)."""

from regard.instruments.units.activations import activations as activations
from regard.instruments.units.gates import gates as gates
from regard.instruments.units.groups import groups as groups
from regard.instruments.units.probe import probe as probe
