"""Addition digit by digit, where memorising ends (chapter36, section 36.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, field_validator

from regard.tasks.batch import Batch, collate
from regard.tasks.task import TASKS, Task, TaskConfig
from regard.tasks.vocabulary import EOS, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


@TASKS.register("addition")
class Addition(Task):
    """`47+89=` to `136`; with a scratchpad to `7+9+0=16;4+8+1=13;136`."""

    class Config(TaskConfig):
        """The sizes of the operands, and whether the working is shown."""

        digits: str = Field("2+2", description="digits of both operands, or a mixture: 2+2,3+3,4+4")
        sampling: Literal["value", "digits"] = Field(
            "value",
            description="value: uniform over 0..10^k-1, so shorter numbers occur;"
            " digits: exactly k digits",
        )
        scratchpad: bool = Field(False, description="spell out each carry, then the answer")

        @field_validator("digits")
        @classmethod
        def _check_sizes(cls, text: str) -> str:
            if not re.fullmatch(r"[1-9]\+[1-9](,[1-9]\+[1-9])*", text):
                raise ValueError("sizes look like 2+2, or 2+2,3+3 for a mixture, digits 1 to 9")
            return text

        @property
        def sizes(self) -> tuple[tuple[int, int], ...]:
            """The pairs of operand sizes that are mixed, each equally often."""
            pairs = (pair.split("+") for pair in self.digits.split(","))
            return tuple((int(first), int(second)) for first, second in pairs)

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        vocabulary = Vocabulary.of("0123456789+=" + (";" if config.scratchpad else ""))
        self.source_vocabulary = self.target_vocabulary = vocabulary

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Pick a pair of sizes, then both operands."""
        sizes = np.array(self.config.sizes)[rng.integers(len(self.config.sizes), size=size)]
        lowest = np.zeros_like(sizes)
        if self.config.sampling == "digits":
            lowest = np.where(sizes > 1, 10 ** (sizes - 1), 0)
        pairs = rng.integers(lowest, 10**sizes)  # (batch, 2)
        return self.batch([(int(a), int(b)) for a, b in pairs])

    def batch(self, pairs: list[tuple[int, int]]) -> Batch:
        """Given problems as a batch."""
        encode = self.source_vocabulary.encode
        write = show_working if self.config.scratchpad else answer
        return collate(
            [[*encode(f"{a}+{b}="), EOS] for a, b in pairs],
            [[*encode(write(a, b)), EOS] for a, b in pairs],
        )

    def correct(self, predictions: Tensor, batch: Batch) -> Tensor:
        """With a scratchpad it is the answer that counts, not the way to it."""
        if not self.config.scratchpad:
            return super().correct(predictions, batch)
        import torch

        given, wanted = self.answers(predictions), self.answers(batch.target)
        return torch.tensor([a == b for a, b in zip(given, wanted, strict=True)])

    def answers(self, words: Tensor) -> list[str]:
        """What each row gives as its answer: the text after the last `;`. (batch, width)"""
        texts = ("".join(self.target_vocabulary.decode(row)) for row in words.tolist())
        return [text.rsplit(";", 1)[-1] for text in texts]


def answer(a: int, b: int) -> str:
    """The sum, as text."""
    return str(a + b)


def show_working(a: int, b: int) -> str:
    """Each column from the right as `digit+digit+carry=sum`, then the answer."""
    steps, carry = [], 0
    columns = max(len(str(a)), len(str(b)))
    for column in range(columns):
        first, second = a // 10**column % 10, b // 10**column % 10
        total = first + second + carry
        steps.append(f"{first}+{second}+{carry}={total};")
        carry = total // 10
    return "".join(steps) + answer(a, b)
