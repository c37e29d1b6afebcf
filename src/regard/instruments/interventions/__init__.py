"""Instruments that change a model and see what follows; they take runs."""

from regard.instruments.interventions.ablate import ablate as ablate
from regard.instruments.interventions.ablate import ablate_model as ablate_model
from regard.instruments.interventions.prune import prune as prune
from regard.instruments.interventions.swap import swap as swap
from regard.instruments.interventions.swap import swaps as swaps
