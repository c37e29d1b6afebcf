"""Curves over training: the learning rate, and the chance that a step is forced."""

from __future__ import annotations

import math

from regard.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, update: int) -> float:
    """The rate of one update, counted from 0."""
    rate = config.learning_rate
    if update < config.warmup:
        return rate * (update + 1) / config.warmup
    if config.decay == "exponential":
        return rate * config.decay_rate**update
    progress = (update - config.warmup) / max(1, config.updates - config.warmup)
    if config.decay == "linear":
        return rate * (1 - progress)
    if config.decay == "cosine":
        return rate * (1 + math.cos(math.pi * progress)) / 2
    return rate


def forcing_chance(config: TrainingConfig, update: int) -> float:
    """The chance that a decoder step is fed the teacher's word.

    The scheduled curves fall from 1 to the floor over the run (Bengio et al. 2015, section 2.4);
    their constants are fixed by the run's length, so that a longer run falls more slowly:
    linear 1 − x; exponential e^(−5x); inverse sigmoid 1 / (1 + e^(12(x − ½))).
    """
    if config.forcing in ("always", "professor"):
        return 1.0
    if config.forcing == "never":
        return 0.0
    if config.forcing == "ratio":
        return config.ratio
    x = update / max(1, config.updates)
    curves = {
        "linear": 1 - x,
        "exponential": math.exp(-5 * x),
        "inverse-sigmoid": 1 / (1 + math.exp(12 * (x - 0.5))),
    }
    return max(config.schedule_floor, curves[config.schedule])
