"""aitken2021: hidden states as temporal, input and delta components, and how attention forms."""

# In the order of the paper.
# isort: off
from regard.papers.aitken2021 import one_to_one as one_to_one
from regard.papers.aitken2021 import own_predictions as own_predictions
from regard.papers.aitken2021 import orders as orders
from regard.papers.aitken2021 import escan as escan
from regard.papers.aitken2021 import twice as twice
from regard.papers.aitken2021 import translation as translation
from regard.papers.aitken2021 import features as features
from regard.papers.aitken2021 import escan_recipes as escan_recipes
from regard.papers.aitken2021 import variants as variants
