"""Instruments of sentence pairs and of links between words; no network."""

from regard.instruments.words._subwords import pool_pieces
from regard.instruments.words.aer import aer, link_best
from regard.instruments.words.cooccurrence import Cooccurrence, Counts, cooccurrence, count_pairs
from regard.instruments.words.ibm1 import IBM1, ibm1
from regard.instruments.words.links import (
    Alignment,
    alignment_error_rate,
    links,
    match_links,
    read_alignments,
    symmetrise,
)

__all__ = [
    "IBM1",
    "Alignment",
    "Cooccurrence",
    "Counts",
    "aer",
    "alignment_error_rate",
    "cooccurrence",
    "count_pairs",
    "ibm1",
    "link_best",
    "links",
    "match_links",
    "pool_pieces",
    "read_alignments",
    "symmetrise",
]
