"""What every sequence-to-sequence model yields, and the interface that decoding needs of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.attention import Site
from regard.models.layers.cells import Gates, State
from regard.models.parts import NamedParts

NO_LEXICAL_PROBE = (
    "This model has no lexical probe: its output layer must read the context of one attention that"
    " follows the step, or the weights of its attention must be such as can be changed. Take a"
    " recurrent encoder-decoder with attention."
)
NO_LOGITS = (
    "This model does not show its logits, so what it gets right is not known. Let `call` return"
    " them, or name their place: places={'logits': 'SUBMODULE'}."
)


class Memory(NamedTuple):
    """What the decoder may know of the source."""

    states: Tensor  # (batch, source, features)
    mask: Tensor  # (batch, source), True where there is a word
    initial: State  # the decoder's state before its first step, batch first
    prepared: State = ()  # what attention makes of the states once for all steps, batch first
    forced_alignment: Tensor | None = None  # (batch, target): where all attention is, -1: free
    sites: Mapping[str, Site] = {}  # attentions of the encoder
    gates: Gates | None = None  # where the gates of every step go, if anywhere

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows, in a given order and with repetition (beam search)."""
        initial, prepared = (tuple(x[rows] for x in part) for part in (self.initial, self.prepared))
        forced = None if self.forced_alignment is None else self.forced_alignment[rows]
        return Memory(self.states[rows], self.mask[rows], initial, prepared, forced)


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


class Seq2Seq(NamedParts, ABC):
    """An encoder-decoder: `encode` once, then `forward` all steps at once or `step` one by one.

    It names its parts, too, see `NamedParts`.
    """

    has_lexical_probe: bool = False  # whether `lexical` can be asked, at once for all pairs
    # Whether what the output layer read is fed beside the next word (Luong et al. 2015, 3.3).
    feeds: bool = False
    is_bag_of_words: bool = False  # a state is the vector of its word alone, whatever is around it

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the source on the fastest path. (batch, source), (batch,)

        With `gates`, the path goes step by step, here and in `decode`, and those of every cell are
        put there.
        """

    @abstractmethod
    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps, given what is fed in at each. inputs (batch, target)

        With `lengths` (batch,), what lies past a row's length need not be computed and means
        nothing. Gates that were wanted of `encode` are in the output.
        """

    @abstractmethod
    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step. words (batch,) -> logits (batch, vocab), and the next state."""

    def trace(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """The same as `forward` on the step-by-step path, with the gates where there are any."""
        return self.decode(self.encode(source, lengths, gates={}), inputs)

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

    def force_alignment(self, memory: Memory, alignment: Tensor) -> Memory:
        """The memory with attention forced to an alignment (batch, target), -1 where it is free."""
        raise RegardError(
            "This model's attention cannot be forced. Take a recurrent encoder-decoder with"
            " attention, or guide it by the loss (training.guidance)."
        )

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """Encode, then all decoder steps on the fastest path."""
        return self.decode(self.encode(source, lengths), inputs)

    def lexical(
        self, memory: Memory, states: Tensor, targets: Tensor, mask: Tensor, bias: bool = True
    ) -> Tensor:
        """log β: how likely each target word is, were all attention at one source position.

        states (batch, target, hidden) are the decoder's, targets (batch, target); mask
        (batch, target, source) says which pairs are wanted. snell2021, eq. 4. Without `bias`,
        that of the output layer is left out. -> (batch, target, source), 0 where not wanted
        """
        raise RegardError(NO_LEXICAL_PROBE)

    def read_values(self, site: str, values: Tensor) -> Tensor:
        """Logits of what an attention gives where all its heads look at one position, by itself.

        values (batch, head, source, size), as a recording has them. -> (batch, source, vocab)
        """
        raise RegardError(f"This model cannot read the values of '{site}' by themselves.")

    @contextmanager
    def keep_sites(self, _names: Collection[str] | None) -> Iterator[None]:
        """While it lasts, outputs need to hold these attentions only; a model may hold all."""
        yield

    def output_layer(self) -> OutputLayer | None:
        """What stands between the features and the logits, where that is one linear map.

        The default: an `nn.Linear` called `readout` that reads the decoder's state.
        """
        layer = getattr(self, "readout", None)
        if not isinstance(layer, nn.Linear):
            return None
        return OutputLayer(layer.weight, layer.bias, {"state": (0, layer.in_features)})

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)
