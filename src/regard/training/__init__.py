"""How it learns: the loop, losses, forcing schedules, evaluation."""

from regard.training.config import TrainingConfig, missing_device
from regard.training.evaluation import evaluate, predict
from regard.training.loop import Keeper, Trainer, fit, one_thread, seed_everything

__all__ = [
    "Keeper",
    "Trainer",
    "TrainingConfig",
    "evaluate",
    "fit",
    "missing_device",
    "one_thread",
    "predict",
    "seed_everything",
]
