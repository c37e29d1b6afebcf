"""chapter36: encoder-decoders without attention, and what a fixed vector cannot hold."""

from regard.papers.chapter36 import addition as addition
from regard.papers.chapter36 import bottleneck as bottleneck
from regard.papers.chapter36 import forcing as forcing
from regard.papers.chapter36 import reversal as reversal
