"""Instruments of scores of source words: attention, lexical probes, saliency (snell2021)."""

from regard.instruments.scores._agreement import Agreement as Agreement
from regard.instruments.scores._agreement import contextualised as contextualised
from regard.instruments.scores._scores import Scores as Scores
from regard.instruments.scores.agreement import agreements as agreements
from regard.instruments.scores.attention_entropy import attention_entropy as attention_entropy
from regard.instruments.scores.lexical_probe import lexical_probe as lexical_probe
from regard.instruments.scores.optimal_attention import optimal_attention as optimal_attention
from regard.instruments.scores.proxy_probe import proxy_probe as proxy_probe
from regard.instruments.scores.saliency import saliency as saliency

# Last, because the file of this name would hide it: the agreement of two scores.
from regard.instruments.scores._agreement import agreement as agreement  # isort: skip
