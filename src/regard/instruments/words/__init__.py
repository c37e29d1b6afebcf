"""Instruments of sentence pairs and of links between words; no network."""

from regard.instruments.words._subwords import pool_pieces as pool_pieces
from regard.instruments.words.aer import aer as aer
from regard.instruments.words.aer import link_best as link_best
from regard.instruments.words.cooccurrence import Cooccurrence as Cooccurrence
from regard.instruments.words.cooccurrence import Counts as Counts
from regard.instruments.words.cooccurrence import cooccurrence as cooccurrence
from regard.instruments.words.cooccurrence import count_pairs as count_pairs
from regard.instruments.words.ibm1 import IBM1 as IBM1
from regard.instruments.words.ibm1 import ibm1 as ibm1
from regard.instruments.words.links import Alignment as Alignment
from regard.instruments.words.links import alignment_error_rate as alignment_error_rate
from regard.instruments.words.links import links as links
from regard.instruments.words.links import match_links as match_links
from regard.instruments.words.links import read_alignments as read_alignments
from regard.instruments.words.links import symmetrise as symmetrise
