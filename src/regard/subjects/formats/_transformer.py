"""A Transformer as other programs have it: normalised before or after, with their positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.models import parts
from regard.models.layers.attention import Site
from regard.models.layers.cells import Gates, State
from regard.models.layers.hook_point import HookPoint, Side
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.models.transformer import Heads
from regard.tasks.batch import mask

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "swish": functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


@dataclass(frozen=True)
class Shape:
    """What one side of a Transformer is."""

    words: int
    hidden: int
    feedforward: int
    layers: int
    heads: int
    pre_norm: bool = True
    activation: str = "relu"
    scale_embeddings: bool = True
    epsilon: float = 1e-5
    final_norm: bool = True
    embedding_norm: bool = False
    zero_start: bool = False  # the first word fed has no vector


class Layer(nn.Module):
    """Self-attention, attention to the source on the decoder's side, and a feed-forward layer."""

    def __init__(self, shape: Shape, layer: int, side: Side):
        super().__init__()
        hidden, sizes = shape.hidden, (shape.hidden, shape.heads, layer)
        self.pre, self.activation = shape.pre_norm, ACTIVATIONS[shape.activation]
        self.self_attention = Heads(*sizes, side, side)
        self.cross_attention = Heads(*sizes, side, "encoder") if side == "decoder" else None
        self.norms = nn.ModuleList(
            nn.LayerNorm(hidden, eps=shape.epsilon) for _ in range(2 + (side == "decoder"))
        )
        self.inner = nn.Linear(hidden, shape.feedforward)
        self.outer = nn.Linear(shape.feedforward, hidden)

    def forward(
        self, x: Tensor, allowed: Tensor, source: State = (), words: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Site]]:
        """x (batch, time, hidden) -> the same, and the sites."""
        sites: dict[str, Site] = {}

        def look(y: Tensor, heads: Heads, seen: State, where: Tensor) -> Tensor:
            moved, site = heads(y, *(seen or heads.remember(y)), where)
            sites[heads.name] = site
            out: Tensor = moved
            return out

        x = self._around(x, 0, lambda y: look(y, self.self_attention, (), allowed))
        crossing = self.cross_attention
        if crossing is not None:
            assert words is not None
            where = words[:, None, None]
            x = self._around(x, 1, lambda y: look(y, crossing, source, where))
        x = self._around(
            x, len(self.norms) - 1, lambda y: self.outer(self.activation(self.inner(y)))
        )
        return x, sites

    def _around(self, x: Tensor, number: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """A part with its residual connection, normalised before or after it."""
        norm = self.norms[number]
        out: Tensor = x + part(norm(x)) if self.pre else norm(x + part(x))
        return out


class Stack(nn.Module):
    """One side: vectors of words, positions, layers."""

    positions: Tensor

    def __init__(self, shape: Shape, side: Side, positions: Tensor):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.words, shape.hidden)
        self.point = HookPoint(f"{side}.embedding", side)
        self.register_buffer("positions", positions, persistent=False)
        self.layers = nn.ModuleList(Layer(shape, n, side) for n in range(shape.layers))
        norm = nn.LayerNorm(shape.hidden, eps=shape.epsilon)
        self.final = norm if shape.final_norm else nn.Identity()
        self.first = (
            nn.LayerNorm(shape.hidden, eps=shape.epsilon) if shape.embedding_norm else nn.Identity()
        )

    def begin(self, words: Tensor) -> Tensor:
        """The vectors that enter the first layer. (batch, time) -> (batch, time, hidden)"""
        if words.shape[1] > len(self.positions):
            raise RegardError(f"A sentence has {words.shape[1]} words; this model has positions for"
                              f" {len(self.positions)}.")  # fmt: skip
        vectors = self.embedding(words)
        if self.shape.scale_embeddings:
            vectors = vectors * math.sqrt(self.shape.hidden)
        if self.shape.zero_start:
            vectors = torch.cat([torch.zeros_like(vectors[:, :1]), vectors[:, 1:]], dim=1)
        x: Tensor = self.first(self.point(vectors) + self.positions[: words.shape[1]])
        return x


class PlainTransformer(Seq2Seq):
    """An encoder-decoder of two stacks; a step runs the whole prefix."""

    def __init__(self, encoder: Stack, decoder: Stack, readout: nn.Linear):
        super().__init__()
        self.encoder, self.decoder, self.readout = encoder, decoder, readout
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.eval()

    def layers(self) -> dict[str, parts.Layer]:
        """Those of both stacks."""
        return parts.number_layers(self.encoder.layers, self.decoder.layers)

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Every source position looks at every other."""
        words = mask(lengths, source.shape[1])
        x = self.encoder.begin(source)
        sites: dict[str, Site] = {}
        for layer in self.encoder.layers:
            x, seen = layer(x, words[:, None, None])
            sites |= seen
        states = self.source_states(self.encoder.final(x))
        prepared: list[Tensor] = []
        for layer in self.decoder.layers:
            assert isinstance(layer, Layer) and layer.cross_attention is not None
            prepared += layer.cross_attention.remember(states)
        return Memory(states, words, (), tuple(prepared), sites=sites)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All target positions at once; each looks only at itself and those before it."""
        steps = inputs.shape[1]
        causal = torch.ones(steps, steps, dtype=torch.bool, device=inputs.device).tril()
        x, sites = self.decoder.begin(inputs), dict(memory.sites)
        for number, layer in enumerate(self.decoder.layers):
            x, seen = layer(x, causal, memory.prepared[2 * number : 2 * number + 2], memory.mask)
            sites |= seen
        states = self.target_states(self.decoder.final(x))
        return Output(self.readout(states), memory.states, states, sites)

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One more word; the state is the words so far."""
        so_far = torch.cat([*state, words[:, None]], dim=1)
        return self.decode(memory, so_far).logits[:, -1], (so_far,)

    def output_layer(self) -> OutputLayer:
        """The readout of the decoder's last states."""
        return OutputLayer(
            self.readout.weight, self.readout.bias, {"state": (0, self.readout.in_features)}
        )


def sinusoids(count: int, size: int, first: int = 0, interleaved: bool = False) -> Tensor:
    """Positions of Vaswani et al. 2017: sines then cosines, or in turns. (count, size)"""
    half = size // 2
    if interleaved:
        rates = torch.exp(torch.arange(0, size, 2) * -(math.log(10000.0) / size))
    else:
        rates = torch.exp(torch.arange(half) * -(math.log(10000.0) / max(half - 1, 1)))
    angles = (torch.arange(count)[:, None] + first) * rates
    if interleaved:
        return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
    return torch.cat([angles.sin(), angles.cos()], dim=1)
