"""The settings of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator, model_validator

from regard.config import Config, Listed

DEVICES: dict[str, Callable[[], bool]] = {
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
    "cpu": lambda: True,
}


def missing_device(name: str) -> str | None:
    """The fault of asking for a device that this machine does not have, or None."""
    if name in DEVICES and not DEVICES[name]():
        return f"training.device={name!r} does not fit: this machine has none; use auto or cpu."
    return None


class TrainingConfig(Config):
    """How a model learns. Every key can be given on the command line as `key=value`."""

    later: ClassVar[frozenset[str]] = frozenset({"processes", "accumulate", "precision"})

    updates: int = Field(2000, ge=0, description="how many updates")
    batch: int = Field(64, ge=1, description="examples in an update")
    learning_rate: float = Field(1e-3, gt=0, description="Adam's rate at its highest")
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam's first decay")
    beta2: float = Field(0.999, ge=0, lt=1, description="Adam's second decay")
    epsilon: float = Field(1e-8, gt=0, description="Adam's epsilon")
    warmup: int = Field(0, ge=0, description="updates over which the rate rises from zero")
    decay: Literal["constant", "linear", "cosine", "exponential"] = Field(
        "constant", description="how the rate falls; linear and cosine reach zero at the end"
    )
    decay_rate: float = Field(
        1.0, gt=0, le=1, description="factor per update of the exponential decay"
    )
    clip: float | None = Field(
        1.0, gt=0, allow_inf_nan=False, description="largest norm of a gradient; none: any"
    )
    l2: float = Field(0.0, ge=0, description="weight of the sum of all squared parameters")
    average: Literal["words", "sequences"] = Field(
        "words",
        description="words: the loss is the mean over words; sequences: the sum over a"
        " sequence's words, and the mean over sequences",
    )
    guidance: float = Field(
        0.0, ge=0, description="weight of attentive guidance, for tasks with attention targets"
    )
    guidance_by: Literal["loss", "force"] = Field(
        "loss",
        description="guide attention by a loss, or force it onto its targets (hard guidance),"
        " in training and when tested",
    )
    forcing: Literal["always", "never", "ratio", "scheduled", "professor"] = Field(
        "always", description="what the decoder is fed during training"
    )
    ratio: float = Field(0.5, ge=0, le=1, description="chance of a forced step (forcing=ratio)")
    schedule: Literal["linear", "exponential", "inverse-sigmoid"] = Field(
        "linear", description="how the chance of a forced step falls (forcing=scheduled)"
    )
    schedule_floor: float = Field(0.0, ge=0, le=1, description="where the schedule stops falling")
    professor_weight: float = Field(
        1.0, ge=0, description="weight of the discriminator's loss (forcing=professor)"
    )
    evaluate_every: int = Field(100, ge=1, description="updates between evaluations")
    checkpoint_every: int = Field(500, ge=1, description="updates between kept checkpoints")
    milestones: Listed[int] = Field(
        (), description="further updates at which to evaluate and keep a checkpoint; 0 counts"
    )
    stop_accuracy: float | None = Field(
        None, gt=0, le=1, description="stop once validation accuracy reaches this"
    )
    report: Literal["last", "best"] = Field(
        "last", description="whose metrics count: the last weights or the best on validation"
    )
    best_by: Literal["accuracy", "loss"] = Field(
        "accuracy",
        description="what makes the best checkpoint, on validation: sequences right, or the"
        " training loss, guidance included",
    )
    start: str | None = Field(
        None, description="a file of weights to begin with, of the same model (safetensors)"
    )
    freeze: Listed[str] = Field(
        (), description="components that are not trained, for example encoder.embedding"
    )
    keep_zeros: bool = Field(
        False, description="weights that are zero at the start stay zero (a held pruning mask)"
    )
    device: str = Field("auto", description="auto, cpu, cuda or mps")
    processes: int = Field(
        1, ge=1, description="processes that share every batch, each with a model of its own"
    )
    accumulate: int = Field(
        1, ge=1, description="pieces of a process's part of a batch, one after the other"
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32",
        description="bf16: products in bfloat16 during training, where torch has them; weights,"
        " recurrences and losses stay float32",
    )

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        """`auto` becomes the device that is meant: it is part of what determines a run."""
        if name == "auto":
            return next(device for device in DEVICES if DEVICES[device]())
        if name not in DEVICES:
            raise ValueError("a device is auto, cpu, cuda or mps")
        return name

    @model_validator(mode="after")
    def _meaningful(self) -> TrainingConfig:
        if self.decay != "exponential" and self.decay_rate != 1.0:
            raise ValueError("decay_rate only means something with decay=exponential")
        if self.best_by == "loss" and self.stop_accuracy is not None:
            raise ValueError("stop_accuracy goes with best_by=accuracy")
        if self.guidance_by == "force" and not self.guidance:
            raise ValueError("guidance_by=force needs guidance=1")
        if self.batch < self.processes * self.accumulate:
            parts = f"processes={self.processes} times accumulate={self.accumulate}"
            raise ValueError(f"batch={self.batch} is too small for {parts}")
        if self.accumulate > 1 and self.forcing == "professor":
            raise ValueError(
                "accumulate does not go with forcing=professor, whose discriminator has to see"
                " the whole batch before it teaches; use processes"
            )
        if self.device == "mps" and (self.processes > 1 or self.precision != "float32"):
            raise ValueError("processes and precision=bf16 are for the devices cpu and cuda")
        return self
