"""Numbers of half the size where products are taken."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from regard.errors import RegardError
from regard.plugins import RegardWarning
from regard.training.config import TrainingConfig


class SlowPrecision(RegardWarning):
    """What was asked for works here, and costs time instead of saving it."""


def compute_in(config: TrainingConfig) -> AbstractContextManager[Any]:
    """The way in which a forward pass is computed in training."""
    if config.precision == "float32":
        return nullcontext()
    return torch.autocast(config.device, dtype=torch.bfloat16)


def check_precision(config: TrainingConfig) -> None:
    """Refuse bfloat16 where there is none; say so where it is only imitated."""
    if config.precision == "float32":
        return
    if config.device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise RegardError(
            "training.precision=bf16 needs a GPU with bfloat16, which this one has not."
            " Leave precision out."
        )
    if config.device == "cpu" and not has_bfloat16():
        text = (
            "This processor has no instructions for bfloat16: torch imitates them, which gives"
            " the numbers of bf16, more slowly than float32."
        )
        warnings.warn(text, SlowPrecision, stacklevel=2)


def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 by itself."""
    known = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # none on Arm, or in old torch
    return any(getattr(torch.cpu, name, lambda: False)() for name in known)
