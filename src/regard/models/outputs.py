"""What every sequence-to-sequence model yields, and the interface that decoding needs of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.attention import Place, Site
from regard.models.cells import State


class Memory(NamedTuple):
    """What the decoder may know of the source."""

    states: Tensor  # (batch, source, features)
    mask: Tensor  # (batch, source), True where there is a word
    initial: State  # the decoder's state before its first step, batch first
    prepared: State = ()  # what attention makes of the states once for all steps, batch first
    told: Tensor | None = None  # (batch, target): where attention must look, -1 where it is free

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows, in a given order and with repetition (beam search)."""
        initial, prepared = (tuple(x[rows] for x in part) for part in (self.initial, self.prepared))
        told = None if self.told is None else self.told[rows]
        return Memory(self.states[rows], self.mask[rows], initial, prepared, told)


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

    @torch.no_grad()
    def feed(self, memory: Memory, inputs: Tensor, forced: Tensor) -> Tensor:
        """What the decoder is fed when only some steps are forced.

        `forced` (target,) says for each step whether its input is the teacher's or the model's
        own last choice. No gradient passes an arg-max, so the inputs can be found first, without
        any record, and the pass that is differentiated takes them as given: the gradient is
        exactly that of a loop over steps, and the pass runs on the fast path.
        """
        fed = inputs.clone()
        state = memory.initial
        for t, teacher in enumerate(forced.tolist()[1:], start=1):
            logits, state = self.step(memory, fed[:, t - 1], state)
            if not teacher:
                fed[:, t] = logits.argmax(dim=1)
        return fed

    def decode_mixed(
        self, memory: Memory, inputs: Tensor, forced: Tensor, lengths: Tensor | None = None
    ) -> Output:
        """All decoder steps, some fed the teacher's word and the others the last one's choice."""
        if not bool(forced[1:].all()):
            inputs = self.feed(memory, inputs, forced)
        return self.decode(memory, inputs, lengths)

    def told(self, memory: Memory, alignment: Tensor) -> Memory:
        """The memory with attention forced to an alignment (batch, target), -1 where it is free."""
        raise RegardError(
            "This model's attention cannot be forced. Take a recurrent encoder-decoder with"
            " attention, or guide it by the loss (training.guidance)."
        )

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """Encode, then all decoder steps on the fastest path."""
        return self.decode(self.encode(source, lengths), inputs)

    def lexical(
        self, memory: Memory, states: Tensor, targets: Tensor, there: Tensor, bias: bool = True
    ) -> Tensor:
        """log β: how likely each target word is, were all attention at one source position.

        states (batch, target, hidden) are the decoder's, targets (batch, target); there
        (batch, target, source) says which pairs are wanted. snell2021, eq. 4. Without `bias`,
        that of the output layer is left out. -> (batch, target, source), 0 where not wanted
        """
        raise RegardError(
            "This model has no lexical probe: its output layer must read the context of one"
            " attention that follows the step. Take a recurrent encoder-decoder with attention."
        )

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
            if isinstance(module, Place) and ".at." in f".{name}"
        }

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)
