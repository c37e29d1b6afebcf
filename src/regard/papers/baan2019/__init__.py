"""baan2019: attentive guidance on lookup tables, and what it does to a network."""

# In the order of the paper.
# isort: off
from regard.papers.baan2019 import accuracy as accuracy
from regard.papers.baan2019 import tables as tables
from regard.papers.baan2019 import structure as structure
from regard.papers.baan2019 import units as units
from regard.papers.baan2019 import changes as changes
