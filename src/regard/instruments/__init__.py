"""What we measure: one file per instrument, each from recordings to a result."""

from regard.instruments.ablate import ablate, ablate_model
from regard.instruments.activations import activations
from regard.instruments.breakdown import Breakdown, breakdown
from regard.instruments.clusters import clusters
from regard.instruments.connectivity import connectivity
from regard.instruments.decompose import decompose
from regard.instruments.decomposition import Components, Decomposition, Sums
from regard.instruments.gates import gates
from regard.instruments.groups import groups
from regard.instruments.inputs import inputs
from regard.instruments.instrument import Result, instruments
from regard.instruments.lean import lean
from regard.instruments.lexical import lexical_probe, proxy_probe
from regard.instruments.offset import offset
from regard.instruments.optimal_attention import additive_terms, optimal_attention
from regard.instruments.optimal_weights import optimal_weights
from regard.instruments.orthogonality import orthogonality
from regard.instruments.paths import paths
from regard.instruments.polarity import polarity
from regard.instruments.probe import probe
from regard.instruments.prune import prune
from regard.instruments.readouts import readouts
from regard.instruments.saliency import saliency
from regard.instruments.simplex import simplex
from regard.instruments.strength import strength
from regard.instruments.swap import swap, swaps
from regard.instruments.timelapse import timelapse
from regard.instruments.variance import variance
from regard.instruments.weights import weights

__all__ = [
    "Breakdown",
    "Components",
    "Decomposition",
    "Result",
    "Sums",
    "ablate",
    "ablate_model",
    "activations",
    "additive_terms",
    "breakdown",
    "clusters",
    "connectivity",
    "decompose",
    "gates",
    "groups",
    "inputs",
    "instruments",
    "lean",
    "lexical_probe",
    "offset",
    "optimal_attention",
    "optimal_weights",
    "orthogonality",
    "paths",
    "polarity",
    "probe",
    "proxy_probe",
    "prune",
    "readouts",
    "saliency",
    "simplex",
    "strength",
    "swap",
    "swaps",
    "timelapse",
    "variance",
    "weights",
]
