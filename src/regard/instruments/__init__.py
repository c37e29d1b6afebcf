"""What we measure: one file per instrument, each from recordings to a result."""

from regard.instruments.ablate import ablate, ablate_model
from regard.instruments.activations import activations
from regard.instruments.aer import aer, linked
from regard.instruments.agreement import Agreement, agreement, contextualised
from regard.instruments.agreements import agreements
from regard.instruments.alignments import (
    Alignment,
    alignment_error_rate,
    match,
    read_alignments,
    symmetrised,
)
from regard.instruments.breakdown import Breakdown, breakdown
from regard.instruments.clusters import clusters
from regard.instruments.connectivity import connectivity
from regard.instruments.cooccurrence import Cooccurrence, Counts, cooccurrence, count
from regard.instruments.decompose import decompose
from regard.instruments.decomposition import Components, Decomposition, Sums
from regard.instruments.gates import gates
from regard.instruments.groups import groups
from regard.instruments.ibm1 import IBM1, ibm1
from regard.instruments.identity import identity, initial_gradient
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
from regard.instruments.scores import Scores
from regard.instruments.simplex import simplex
from regard.instruments.strength import strength
from regard.instruments.subwords import over_words
from regard.instruments.swap import swap, swaps
from regard.instruments.timelapse import timelapse
from regard.instruments.variance import variance
from regard.instruments.weights import weights

__all__ = [
    "IBM1",
    "Agreement",
    "Alignment",
    "Breakdown",
    "Components",
    "Cooccurrence",
    "Counts",
    "Decomposition",
    "Result",
    "Scores",
    "Sums",
    "ablate",
    "ablate_model",
    "activations",
    "additive_terms",
    "aer",
    "agreement",
    "agreements",
    "alignment_error_rate",
    "breakdown",
    "clusters",
    "connectivity",
    "contextualised",
    "cooccurrence",
    "count",
    "decompose",
    "gates",
    "groups",
    "ibm1",
    "identity",
    "initial_gradient",
    "inputs",
    "instruments",
    "lean",
    "lexical_probe",
    "linked",
    "match",
    "offset",
    "optimal_attention",
    "optimal_weights",
    "orthogonality",
    "over_words",
    "paths",
    "polarity",
    "probe",
    "proxy_probe",
    "prune",
    "read_alignments",
    "readouts",
    "saliency",
    "simplex",
    "strength",
    "swap",
    "swaps",
    "symmetrised",
    "timelapse",
    "variance",
    "weights",
]
