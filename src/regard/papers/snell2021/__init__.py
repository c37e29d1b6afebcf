"""snell2021: how attention is learned, from what words occur together."""

from regard.papers.snell2021._identity import identity as identity
from regard.papers.snell2021._identity import initial_gradient as initial_gradient

# In the order of the paper.
# isort: off
from regard.papers.snell2021 import agreement as agreement
from regard.papers.snell2021 import bleu as bleu
from regard.papers.snell2021 import copying as copying
from regard.papers.snell2021 import ibm as ibm
from regard.papers.snell2021 import heads as heads
from regard.papers.snell2021 import keyword as keyword
from regard.papers.snell2021 import keyword_early as keyword_early
from regard.papers.snell2021 import optimal as optimal
from regard.papers.snell2021 import aer as aer
