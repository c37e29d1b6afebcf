"""Instruments that change a model and see what follows; they take runs."""

from regard.instruments.interventions.ablate import ablate, ablate_model
from regard.instruments.interventions.prune import prune
from regard.instruments.interventions.swap import swap, swaps

__all__ = ["ablate", "ablate_model", "prune", "swap", "swaps"]
