"""chapter36: encoder-decoders without attention, and what a fixed vector cannot hold."""

# In the order of the source.
# isort: off
from regard.papers.chapter36 import reversal as reversal
from regard.papers.chapter36 import reading as reading
from regard.papers.chapter36 import addition as addition
from regard.papers.chapter36 import exercises as exercises
from regard.papers.chapter36 import capacity as capacity
from regard.papers.chapter36 import attention as attention
from regard.papers.chapter36 import forcing as forcing
