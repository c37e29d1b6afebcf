"""A Transformer encoder-decoder that yields the same outputs as its recurrent sibling.

Written out rather than taken from `torch.nn`, because the instruments need queries, keys and
scores of every head, which `torch.nn.Transformer` does not show. Normalisation comes first in
each block (Xiong et al. 2020), which trains without a warm-up.
"""

from __future__ import annotations

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config
from regard.models.encoder_decoder import MODELS
from regard.models.layers.attention import Site, masked_softmax
from regard.models.layers.cells import Gates, State
from regard.models.layers.hook_point import AttentionPoints, HookPoint, Side
from regard.models.layers.positions import Sinusoidal
from regard.models.parts import Layer, Parts, number_layers
from regard.models.seq2seq import Memory, Output, Seq2Seq
from regard.tasks.batch import mask
from regard.tasks.vocabulary import PAD


class TransformerConfig(Config):
    """Settings of the Transformer encoder-decoder."""

    hidden: int = Field(128, ge=2, description="size of a state")
    layers: int = Field(2, ge=1, description="blocks on each side")
    heads: int = Field(4, ge=1, description="attention heads in each block")
    feedforward: int = Field(256, ge=1, description="size of the layer between")
    readout_bias: bool = Field(True, description="a bias in the output layer")

    @model_validator(mode="after")
    def _divides(self) -> TransformerConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} is not a multiple of heads={self.heads}")
        return self


class Heads(nn.Module):
    """Multi-head attention with scaled queries: scores = (W_q x / √d) · (W_k y).

    It stands in a `layer` of the query side, and looks at what the key side is.
    """

    def __init__(self, hidden: int, heads: int, layer: int, query_side: Side, key_side: Side):
        super().__init__()
        self.heads, self.layer = heads, layer
        self.query_side, self.key_side = query_side, key_side
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.merge = nn.Linear(hidden, hidden)
        kind = "self" if query_side == key_side else "cross"
        self.name = f"{query_side}.{layer}.{kind}"
        self.at = AttentionPoints(self.name, query_side, key_side)

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, hidden) -> (batch, head, time, hidden / heads)"""
        batch, time, hidden = x.shape
        return x.view(batch, time, self.heads, hidden // self.heads).transpose(1, 2)

    def remember(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of what is looked at, each (batch, head, time, hidden / heads)."""
        keys, values = self.split(self.key(x)), self.split(self.value(x))
        return self.at.keys(keys), self.at.values(values)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, allowed: Tensor
    ) -> tuple[Tensor, Site]:
        """Look at what was remembered; allowed broadcasts to (batch, head, target, source)."""
        queries = self.split(self.query(x))
        queries = self.at.queries(queries * queries.shape[-1] ** -0.5)
        scores = self.at.scores(queries @ keys.transpose(-1, -2), queries, keys)
        weights = self.at.weights(masked_softmax(scores, allowed))
        context = self.merge((weights @ values).transpose(1, 2).flatten(2))
        return context, Site(
            queries, keys, values, scores, weights, query_side=self.query_side,
            key_side=self.key_side, layer=self.layer, heads=self.heads, projected=True,
        )  # fmt: skip


class Block(nn.Module):
    """Self-attention, attention to the source where there is one, and a feed-forward layer."""

    def __init__(self, config: TransformerConfig, layer: int, side: Side):
        super().__init__()
        hidden, sizes = config.hidden, (config.hidden, config.heads, layer)
        self.self_norm, self.self_attention = nn.LayerNorm(hidden), Heads(*sizes, side, side)
        crosses = side == "decoder"
        self.cross_norm = nn.LayerNorm(hidden) if crosses else None
        self.cross_attention = Heads(*sizes, side, "encoder") if crosses else None
        self.norm = nn.LayerNorm(hidden)
        self.feedforward = nn.Sequential(
            nn.Linear(hidden, config.feedforward), nn.ReLU(), nn.Linear(config.feedforward, hidden)
        )

    def forward(
        self,
        x: Tensor,
        allowed: Tensor,
        past: State = (),
        source: State = (),
        mask: Tensor | None = None,
    ) -> tuple[Tensor, State, dict[str, Site]]:
        """x (batch, time, hidden) -> the same, the keys and values so far, and the sites.

        `source` holds the keys and values of the source (batch, head, source, …), where this
        block looks at one, and `mask` (batch, source) says which of them are words.
        """
        y = self.self_norm(x)
        keys, values = self.self_attention.remember(y)
        if past:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        moved, site = self.self_attention(y, keys, values, allowed)
        x, sites = x + moved, {self.self_attention.name: site}
        if self.cross_attention is not None and self.cross_norm is not None:
            assert mask is not None
            moved, site = self.cross_attention(self.cross_norm(x), *source, mask[:, None, None])
            x, sites = x + moved, {**sites, self.cross_attention.name: site}
        return x + self.feedforward(self.norm(x)), (keys, values), sites


class Transformer(Seq2Seq):
    """Vaswani et al. 2017, small. The decoder's state is the keys and values of its past."""

    def __init__(self, config: TransformerConfig, source_words: int, target_words: int):
        super().__init__()
        self.config = config
        hidden = config.hidden
        self.source_embedding = nn.Embedding(source_words, hidden, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_words, hidden, padding_idx=PAD)
        self.positions = Sinusoidal(hidden)
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        layers = range(config.layers)
        self.encoder = nn.ModuleList(Block(config, layer, "encoder") for layer in layers)
        self.decoder = nn.ModuleList(Block(config, layer, "decoder") for layer in layers)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.readout = nn.Linear(hidden, target_words, bias=config.readout_bias)

    def parts(self) -> Parts:
        """See `NamedParts`; each attention has the normalisation before it, so has each layer."""

        def inside(blocks: nn.ModuleList, *names: str) -> list[nn.Module]:
            return [getattr(block, name) for block in blocks for name in names]

        return {
            "encoder": [self.source_embedding, self.encoder, self.encoder_norm],
            "encoder.embedding": [self.source_embedding],
            "encoder.attention": inside(self.encoder, "self_norm", "self_attention"),
            "encoder.feedforward": inside(self.encoder, "norm", "feedforward"),
            "decoder.embedding": [self.target_embedding],
            "decoder.attention": inside(self.decoder, "self_norm", "self_attention"),
            "decoder.feedforward": inside(self.decoder, "norm", "feedforward"),
            "attention": inside(self.decoder, "cross_norm", "cross_attention"),
            "output": [self.readout],
        }

    def layers(self) -> dict[str, Layer]:
        """The blocks."""
        return number_layers(self.encoder, self.decoder)

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Every source position looks at every other; there are no gates."""
        words = mask(lengths, source.shape[1])
        x = self.source_vectors(self.source_embedding(source)) + self.positions(0, source.shape[1])
        sites: dict[str, Site] = {}
        for block in self.encoder:
            x, _, seen = block(x, words[:, None, None])
            sites |= seen
        empty = x.new_zeros(len(source), self.config.heads, 0, x.shape[2] // self.config.heads)
        initial = (empty,) * (2 * self.config.layers)
        states = self.source_states(self.encoder_norm(x) * words[:, :, None])
        prepared: list[Tensor] = []
        for block in self.decoder:
            assert isinstance(block, Block) and block.cross_attention is not None
            prepared += block.cross_attention.remember(states)
        return Memory(states, words, initial, tuple(prepared), sites=sites)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All target positions at once; each looks only at itself and those before it."""
        steps = inputs.shape[1]
        causal = torch.ones(steps, steps, dtype=torch.bool, device=inputs.device).tril()
        x, _, sites = self._blocks(memory, inputs, memory.initial, causal)
        return Output(self.readout(x), memory.states, x, {**memory.sites, **sites})

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One more target position, with the past's keys and values at hand."""
        seen = state[0].shape[2]
        allowed = torch.ones(1, seen + 1, dtype=torch.bool, device=words.device)
        x, state, _ = self._blocks(memory, words[:, None], state, allowed)
        return self.readout(x[:, 0]), state

    def _blocks(
        self, memory: Memory, inputs: Tensor, past: State, allowed: Tensor
    ) -> tuple[Tensor, State, dict[str, Site]]:
        start = past[0].shape[2]
        x = self.target_vectors(self.target_embedding(inputs))
        x = x + self.positions(start, start + inputs.shape[1])
        sites: dict[str, Site] = {}
        state: list[Tensor] = []
        for layer, block in enumerate(self.decoder):
            own = slice(2 * layer, 2 * layer + 2)
            x, new, seen = block(x, allowed, past[own], memory.prepared[own], memory.mask)
            state += new
            sites |= seen
        return self.target_states(self.decoder_norm(x)), tuple(state), sites


MODELS.register("transformer")((TransformerConfig, Transformer))
