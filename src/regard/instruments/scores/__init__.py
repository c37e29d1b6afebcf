"""Instruments of scores of source words: attention, lexical probes, saliency (snell2021)."""

from regard.instruments.scores._agreement import Agreement, contextualised
from regard.instruments.scores._scores import Scores
from regard.instruments.scores.agreement import agreements
from regard.instruments.scores.lexical_probe import lexical_probe
from regard.instruments.scores.optimal_attention import optimal_attention
from regard.instruments.scores.proxy_probe import proxy_probe
from regard.instruments.scores.saliency import saliency

# Last, because the file of this name would hide it: the agreement of two scores.
from regard.instruments.scores._agreement import agreement  # isort: skip

__all__ = [
    "Agreement",
    "Scores",
    "agreement",
    "agreements",
    "contextualised",
    "lexical_probe",
    "optimal_attention",
    "proxy_probe",
    "saliency",
]
