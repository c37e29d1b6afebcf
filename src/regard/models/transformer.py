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
from regard.models.attention import Places, Site, attend
from regard.models.cells import State
from regard.models.encoder_decoder import models
from regard.models.outputs import Memory, Output, Seq2Seq
from regard.models.positions import Sinusoidal
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
    """Multi-head attention with scaled queries: scores = (W_q x / √d) · (W_k y)."""

    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.merge = nn.Linear(hidden, hidden)
        self.at = Places()

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
        site = attend(queries, keys, allowed)
        context = self.merge((site.weights @ values).transpose(1, 2).flatten(2))
        return context, site


class Block(nn.Module):
    """Self-attention, attention to the source where there is one, and a feed-forward layer."""

    def __init__(self, config: TransformerConfig, crosses: bool):
        super().__init__()
        hidden = config.hidden
        self.self_norm, self.self_attention = nn.LayerNorm(hidden), Heads(hidden, config.heads)
        self.cross_norm = nn.LayerNorm(hidden) if crosses else None
        self.cross_attention = Heads(hidden, config.heads) if crosses else None
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
        block looks at one, and `mask` (batch, source) says which of them are there.
        """
        y = self.self_norm(x)
        keys, values = self.self_attention.remember(y)
        if past:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        moved, site = self.self_attention(y, keys, values, allowed)
        x, sites = x + moved, {"self": site}
        if self.cross_attention is not None and self.cross_norm is not None:
            assert mask is not None
            moved, site = self.cross_attention(self.cross_norm(x), *source, mask[:, None, None])
            x, sites = x + moved, {**sites, "cross": site}
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
        self.encoder = nn.ModuleList(Block(config, crosses=False) for _ in range(config.layers))
        self.decoder = nn.ModuleList(Block(config, crosses=True) for _ in range(config.layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.readout = nn.Linear(hidden, target_words, bias=config.readout_bias)

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Every source position looks at every other."""
        return self._encode(source, lengths)[0]

    def _encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, dict[str, Site]]:
        words = mask(lengths, source.shape[1])
        x = self.source_embedding(source) + self.positions(0, source.shape[1])
        sites = {}
        for layer, block in enumerate(self.encoder):
            x, _, seen = block(x, words[:, None, None])
            sites[f"encoder.{layer}.self"] = seen["self"]
        empty = x.new_zeros(len(source), self.config.heads, 0, x.shape[2] // self.config.heads)
        initial = (empty,) * (2 * self.config.layers)
        states = self.encoder_norm(x) * words[:, :, None]
        prepared: list[Tensor] = []
        for block in self.decoder:
            assert isinstance(block, Block) and block.cross_attention is not None
            prepared += block.cross_attention.remember(states)
        return Memory(states, words, initial, tuple(prepared)), sites

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All target positions at once; each looks only at itself and those before it."""
        steps = inputs.shape[1]
        causal = torch.ones(steps, steps, dtype=torch.bool, device=inputs.device).tril()
        x, _, sites = self._blocks(memory, inputs, memory.initial, causal)
        return Output(self.readout(x), memory.states, x, sites)

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
        x = self.target_embedding(inputs) + self.positions(start, start + inputs.shape[1])
        sites: dict[str, Site] = {}
        state: list[Tensor] = []
        for layer, block in enumerate(self.decoder):
            own = slice(2 * layer, 2 * layer + 2)
            x, new, seen = block(x, allowed, past[own], memory.prepared[own], memory.mask)
            state += new
            sites |= {f"decoder.{layer}.{name}": site for name, site in seen.items()}
        return self.decoder_norm(x), tuple(state), sites

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """Encode, then decode; the encoder's sites are among the output's."""
        memory, sites = self._encode(source, lengths)
        output = self.decode(memory, inputs)
        return Output(
            output.logits, output.encoder_states, output.decoder_states, sites | output.sites
        )

    def trace(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """A Transformer has no gates, and its fast path shows everything."""
        return self(source, lengths, inputs)  # type: ignore[no-any-return]


models.register("transformer")((TransformerConfig, Transformer))
