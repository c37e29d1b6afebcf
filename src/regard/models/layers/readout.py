"""From a decoder state and a context to logits: one linear map, or one with a layer before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, pad

from regard.models.seq2seq import OutputLayer

Activation = Literal["none", "relu", "tanh"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "linear": lambda x: x,  # of other programs, whose two matrices stand apart
}
AT_ONCE = 2_000_000  # logits at a time: no more than stay in the processor's cache


class Readout(nn.Linear):
    """logits = W f + b, where the features f are made of the state s and the context c.

    Plainly f = [s; c], or only one of them; with `added`, f = s + c (snell2021, eq. 32). With
    `context_layer`, c is projected first. With `activation`, a hidden layer comes between:
    f = activation(V [s; c] + v), snell2021's network N of eq. 2 (Luong et al. 2015: the attentional
    vector).
    """

    def __init__(
        self,
        state: int,
        context: int,
        words: int,
        hidden: int,
        bias: bool = True,
        activation: str = "none",
        context_layer: bool = False,
        added: bool = False,
    ):
        seen = hidden if context_layer and context else context
        width = hidden if added else state + seen
        super().__init__(width if activation == "none" else hidden, words, bias=bias)
        self.sizes, self.activation, self.added = (state, seen), activation, added
        self.context = nn.Linear(context, hidden) if seen != context or context_layer else None
        self.hidden = None if activation == "none" else nn.Linear(width, hidden)

    def forward(self, states: Tensor, context: Tensor | None = None) -> Tensor:
        """(batch, target, hidden), (batch, target, features) -> (batch, target, vocab)"""
        return linear(self.features(states, context), self.weight, self.bias)

    def features(self, states: Tensor, context: Tensor | None) -> Tensor:
        """What the output layer reads: f above. -> (batch, target, width)"""
        if context is not None and self.context is not None:
            context = self.context(context)
        if self.added:
            assert context is not None
            features = states + context
        else:
            wanted = zip((states, context), self.sizes, strict=True)
            seen = [x for x, size in wanted if x is not None and size]
            features = torch.cat(seen, dim=-1) if len(seen) > 1 else seen[0]
        return (
            features if self.hidden is None else ACTIVATIONS[self.activation](self.hidden(features))
        )

    @property
    def state_columns(self) -> Tensor:
        """The weights that read the state, a column for each of its units."""
        first = self.weight if self.hidden is None else self.hidden.weight
        return first[:, : self.sizes[0]]

    def layer(self) -> OutputLayer | None:
        """The whole as one linear map of state and context, where it is one."""
        if self.hidden is not None and self.activation != "linear":
            return None
        state, seen = self.sizes
        if self.hidden is not None:
            return self._product(self.hidden)
        if self.added:
            weights = [self.weight, self.weight]
        else:
            weights = [self.weight[:, :state], self.weight[:, state:]]
        bias: Tensor | None = self.bias
        if self.context is not None:
            shift = weights[1] @ self.context.bias
            bias = shift if bias is None else bias + shift
            weights[1] = weights[1] @ self.context.weight
        parts = {"state": (0, state)} if state else {}
        if seen:
            parts["context"] = (state, state + weights[1].shape[1])
        plain = self.context is None and not self.added
        return OutputLayer(self.weight if plain else torch.cat(weights, dim=1), bias, parts)

    def _product(self, hidden: nn.Linear) -> OutputLayer:
        """Two matrices with nothing between them as one."""
        (state, seen), weight = self.sizes, self.weight @ hidden.weight
        shift = None if hidden.bias is None else self.weight @ hidden.bias
        both = [x for x in (self.bias, shift) if x is not None]
        parts = {"state": (0, state), "context": (state, state + seen)}
        return OutputLayer(weight, sum(both[1:], both[0]) if both else None, parts)

    def lexical(
        self,
        states: Tensor,
        contexts: Tensor,
        targets: Tensor,
        mask: Tensor,
        bias: bool = True,
    ) -> Tensor:
        """log β, see `Seq2Seq`; contexts (batch, source, features) are where one has all weight.

        What the state and the context each add to the hidden layer is found once per position;
        only the output layer runs over all pairs, and only over those that are wanted.
        """
        found = states.new_zeros(mask.shape)
        rows, steps, places = mask.nonzero(as_tuple=True)
        from_states, from_contexts = self._halves(states, contexts)
        words = targets[rows, steps]
        piece = max(1, AT_ONCE // len(self.weight))
        for part in torch.split(torch.arange(len(rows), device=rows.device), piece):
            features = from_contexts[rows[part], places[part]]
            if from_states is not None:
                features = features + from_states[rows[part], steps[part]]
            if self.hidden is not None:
                features = ACTIVATIONS[self.activation](features)
            logits = linear(features, self.weight, self.bias if bias else None)
            said = cross_entropy(logits, words[part], reduction="none")  # one pass over them
            found[rows[part], steps[part], places[part]] = -said
        return found

    def _halves(self, states: Tensor, contexts: Tensor) -> tuple[Tensor | None, Tensor]:
        """What states and contexts each add to what the output layer, or the hidden layer, sees."""
        if self.context is not None:
            contexts = self.context(contexts)
        size = self.sizes[0]
        if self.hidden is not None:
            weight, bias = self.hidden.weight, self.hidden.bias
            own, other = (weight, weight) if self.added else (weight[:, :size], weight[:, size:])
            return linear(states, own) if size else None, linear(contexts, other, bias)
        if self.added:
            return states, contexts
        padded = pad(states[..., :size], (0, contexts.shape[-1])) if size else None
        return padded, pad(contexts, (size, 0))
