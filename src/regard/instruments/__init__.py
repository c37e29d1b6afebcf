"""What we measure: one file per instrument, each from recordings to a result."""

from regard.instruments.ablate import ablate, ablate_model
from regard.instruments.breakdown import Breakdown, breakdown
from regard.instruments.clusters import clusters
from regard.instruments.decompose import decompose
from regard.instruments.decomposition import Components, Decomposition, Sums
from regard.instruments.groups import groups
from regard.instruments.inputs import inputs
from regard.instruments.instrument import Result, instruments
from regard.instruments.lean import lean
from regard.instruments.offset import offset
from regard.instruments.orthogonality import orthogonality
from regard.instruments.paths import paths
from regard.instruments.probe import probe
from regard.instruments.readouts import readouts
from regard.instruments.simplex import simplex
from regard.instruments.strength import strength
from regard.instruments.variance import variance

__all__ = [
    "Breakdown",
    "Components",
    "Decomposition",
    "Result",
    "Sums",
    "ablate",
    "ablate_model",
    "breakdown",
    "clusters",
    "decompose",
    "groups",
    "inputs",
    "instruments",
    "lean",
    "offset",
    "orthogonality",
    "paths",
    "probe",
    "readouts",
    "simplex",
    "strength",
    "variance",
]
