"""Instruments that change a model and see what follows; they take runs, and some subjects."""

from regard.instruments.interventions.ablate import ablate as ablate
from regard.instruments.interventions.ablate import ablate_model as ablate_model
from regard.instruments.interventions.ablate_heads import ablate_heads as ablate_heads
from regard.instruments.interventions.cumulative_ablation import (
    cumulative_ablation as cumulative_ablation,
)
from regard.instruments.interventions.prune import prune as prune
from regard.instruments.interventions.swap import swap as swap
from regard.instruments.interventions.swap import swaps as swaps
