"""What every sequence-to-sequence model yields, and the interface that decoding needs of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor, nn

from regard.models.attention import Place, Site
from regard.models.cells import State


class Memory(NamedTuple):
    """What the decoder may know of the source."""

    states: Tensor  # (batch, source, features)
    mask: Tensor  # (batch, source), True where there is a word
    initial: State  # the decoder's state before its first step, batch first
    prepared: State = ()  # what attention makes of the states once for all steps, batch first

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows, in a given order and with repetition (beam search)."""
        initial, prepared = (tuple(x[rows] for x in part) for part in (self.initial, self.prepared))
        return Memory(self.states[rows], self.mask[rows], initial, prepared)


@dataclass(frozen=True)
class Output:
    """One pass over a batch."""

    logits: Tensor  # (batch, target, vocab)
    encoder_states: Tensor  # (batch, source, features)
    decoder_states: Tensor  # (batch, target, hidden)
    sites: dict[str, Site] = field(default_factory=dict)
    gates: dict[str, Tensor] = field(default_factory=dict)  # (batch, time, hidden), on request


class OutputLayer(NamedTuple):
    """logits = weight · features + bias, and which of the features are whose."""

    weight: Tensor  # (vocab, features)
    bias: Tensor | None  # (vocab,)
    parts: dict[str, tuple[int, int]]  # `state` and `context` -> their columns


class Seq2Seq(nn.Module, ABC):
    """An encoder-decoder: `encode` once, then `forward` all steps at once or `step` one by one."""

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source. (batch, source), (batch,)"""

    @abstractmethod
    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps, given what is fed in at each. inputs (batch, target)

        With `lengths` (batch,), what lies past a row's length need not be computed and means
        nothing.
        """

    @abstractmethod
    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step. words (batch,) -> logits (batch, vocab), and the next state."""

    @abstractmethod
    def trace(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """The same as `forward` on the step-by-step path, with the gates where there are any."""

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """Encode, then all decoder steps on the fastest path."""
        return self.decode(self.encode(source, lengths), inputs)

    def output_layer(self) -> OutputLayer | None:
        """What stands between the features and the logits, where that is one linear map.

        The default: an `nn.Linear` called `readout` that reads the decoder's state.
        """
        layer = getattr(self, "readout", None)
        if not isinstance(layer, nn.Linear):
            return None
        return OutputLayer(layer.weight, layer.bias, {"state": (0, layer.in_features)})

    def places(self) -> dict[str, Place]:
        """The named places where numbers can be replaced: `attention.queries` and so on."""
        return {
            name.replace("_attention", "").replace(".at.", "."): module
            for name, module in self.named_modules()
            if isinstance(module, Place)
        }

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)
