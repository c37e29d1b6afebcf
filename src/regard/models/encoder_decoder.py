"""The recurrent encoder-decoder: one class with parts, of which the papers' models are settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from regard.config import Config
from regard.errors import unknown
from regard.models.attention import Attention, Site, attentions
from regard.models.cells import Cell, Inputs, State, Words, cells, vectors
from regard.models.outputs import Memory, Output, Seq2Seq
from regard.registry import Registry
from regard.tasks.batch import mask, reverse
from regard.tasks.vocabulary import PAD

models: Registry[tuple[type[Config], type[Seq2Seq]]] = Registry("kind of model")


class EncoderDecoderConfig(Config):
    """Settings of the recurrent encoder-decoder."""

    cell: str = Field("lstm", description="recurrent cell; gru alone means gru-torch")
    hidden: int = Field(128, ge=1, description="size of a hidden state")
    layers: int = Field(1, ge=1, description="recurrent layers on each side")
    bidirectional: bool = Field(False, description="the encoder reads both ways")
    inputs: Literal["embedding", "one-hot"] = Field("embedding", description="how words enter")
    embedding: int = Field(32, ge=1, description="size of an embedding")
    attention: str = Field("none", description="none, or an attention kind")
    readout_bias: bool = Field(True, description="a bias in the output layer")

    @field_validator("cell")
    @classmethod
    def _cell(cls, name: str) -> str:
        name = "gru-torch" if name == "gru" else name
        if name not in cells:
            raise ValueError(unknown("cell", name, cells).rstrip("."))
        return name

    @field_validator("attention")
    @classmethod
    def _attention(cls, name: str) -> str:
        if name != "none" and name not in attentions:
            raise ValueError(unknown("attention", name, ["none", *attentions]).rstrip("."))
        return name


class Embedding(nn.Module):
    """Words as learned vectors; `<PAD>` is the zero vector and stays so."""

    def __init__(self, words: int, size: int):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.randn(words, size))
        with torch.no_grad():
            self.weight[PAD] = 0

    @property
    def table(self) -> Tensor:
        """The vectors of all words, of which `<PAD>`'s is not learned. (vocab, size)"""
        return torch.cat([self.weight[:1].detach(), self.weight[1:]])

    def forward(self, numbers: Tensor) -> Words:
        """(batch, time)"""
        return Words(numbers, self.table)

    def look_up(self, numbers: Tensor) -> Tensor:
        """The vectors of some words. (batch,) -> (batch, size)"""
        return nn.functional.embedding(numbers, self.weight, padding_idx=PAD)


class OneHot(Embedding):
    """Words as unit vectors; `<PAD>` as the zero vector, too."""

    def __init__(self, words: int):
        nn.Module.__init__(self)
        self.size = words
        self.register_buffer(
            "units", torch.eye(words).index_fill_(0, torch.tensor(PAD), 0.0), persistent=False
        )

    @property
    def table(self) -> Tensor:
        """(vocab, vocab)"""
        assert isinstance(self.units, Tensor)
        return self.units

    def look_up(self, numbers: Tensor) -> Tensor:
        """(batch,) -> (batch, vocab)"""
        return nn.functional.embedding(numbers, self.table)


class Encoder(nn.Module):
    """Cells in layers, in one direction or both."""

    def __init__(self, cell: type[Cell], inputs: int, hidden: int, layers: int, both: bool):
        super().__init__()
        width = 2 * hidden if both else hidden
        sizes = [inputs] + [width] * (layers - 1)
        self.ahead = nn.ModuleList(cell(size, hidden) for size in sizes)
        self.back = nn.ModuleList(cell(size, hidden) for size in sizes if both)

    def forward(
        self, x: Inputs, lengths: Tensor | None, gates: dict[str, Tensor] | None = None
    ) -> tuple[Tensor, State]:
        """States of the last layer (batch, source, features), and the last state of each cell.

        The last states come layer by layer; both directions' are joined in one vector.
        With `gates` given, the step path is taken and the gates are put there.
        """
        finals: list[Tensor] = []
        for layer, ahead in enumerate(self.ahead):
            states, final = _pass(ahead, x, lengths, None, gates, f"encoder.gates.{layer}.ahead")
            if self.back:
                turned, other = _pass(
                    self.back[layer],
                    _reverse(x, lengths),
                    lengths,
                    None,
                    gates,
                    f"encoder.gates.{layer}.back",
                )
                states = torch.cat([states, _turn(turned, lengths)], dim=2)
                final = tuple(torch.cat(pair, dim=1) for pair in zip(final, other, strict=True))
            finals += final
            x = states
        return vectors(x), tuple(finals)


class EncoderDecoder(Seq2Seq):
    """Encoder, bridge, decoder, attention, readout (chapter36, section 36.1).

    The decoder starts from the encoder's last state, layer by layer. A bidirectional encoder's
    states are projected to the decoder's size: tanh(Linear) for the last state as in
    section 36.4, Linear for the states that attention reads. The readout sees [h; context]
    where there is attention, and h where there is none.
    """

    def __init__(self, config: EncoderDecoderConfig, source_words: int, target_words: int):
        super().__init__()
        self.config = config
        cell, hidden = cells[config.cell], config.hidden
        self.per_layer = len(cell.state_names)
        both = config.bidirectional
        self.source_embedding = self._embedding(source_words)
        self.target_embedding = self._embedding(target_words)
        size = self.source_embedding.size
        self.encoder = Encoder(cell, size, hidden, config.layers, both)
        sizes = [self.target_embedding.size] + [hidden] * (config.layers - 1)
        self.decoder = nn.ModuleList(cell(size, hidden) for size in sizes)
        finals = config.layers * self.per_layer if both else 0
        self.bridge = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(finals))
        attending = config.attention != "none"
        self.memory = nn.Linear(2 * hidden, hidden) if both and attending else nn.Identity()
        self.attention: Attention | None = None
        if attending:
            self.attention = attentions[config.attention](hidden)
        features = 2 * hidden if attending else hidden
        self.readout = nn.Linear(features, target_words, bias=config.readout_bias)

    def _embedding(self, words: int) -> Embedding:
        if self.config.inputs == "one-hot":
            return OneHot(words)
        return Embedding(words, self.config.embedding)

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source on the fastest path."""
        return self._encode(source, lengths, None)

    def _encode(self, source: Tensor, lengths: Tensor, gates: dict[str, Tensor] | None) -> Memory:
        full = bool((lengths == source.shape[1]).all())
        states, finals = self.encoder(
            self.source_embedding(source), None if full else lengths, gates
        )
        if self.bridge:
            finals = tuple(
                torch.tanh(bridge(final)) for bridge, final in zip(self.bridge, finals, strict=True)
            )
        return Memory(self.memory(states), mask(lengths, source.shape[1]), finals)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps: recurrence, attention and readout each in one piece."""
        return self._decode(memory, inputs, lengths, None)

    def _decode(
        self,
        memory: Memory,
        inputs: Tensor,
        lengths: Tensor | None,
        gates: dict[str, Tensor] | None,
    ) -> Output:
        x = self.target_embedding(inputs)
        if lengths is not None and bool((lengths == inputs.shape[1]).all()):
            lengths = None
        for layer, cell in enumerate(self.decoder):
            x, _ = _pass(
                cell,
                x,
                lengths,
                self._layer(memory.initial, layer),
                gates,
                f"decoder.gates.{layer}",
            )
        logits, sites = self._read(x, memory)
        return Output(logits, memory.states, x, sites, gates or {})

    def _read(self, states: Tensor, memory: Memory) -> tuple[Tensor, dict[str, Site]]:
        if self.attention is None:
            return self.readout(states), {}
        context, site = self.attention(states, memory.states, memory.mask)
        return self.readout(torch.cat([states, context], dim=2)), {"attention": site}

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step: the recurrence, then attention with the new state, then readout."""
        x = self.target_embedding.look_up(words)  # (batch, embedding)
        new: list[Tensor] = []
        for layer, cell in enumerate(self.decoder):
            layer_state, _ = cell.step(cell.project(x), self._layer(state, layer))  # type: ignore[operator]
            new += layer_state
            x = layer_state[0]
        logits, _ = self._read(x[:, None], memory)
        return logits[:, 0], tuple(new)

    def trace(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """The same as `forward`, step by step, with the gates of every cell."""
        gates: dict[str, Tensor] = {}
        return self._decode(self._encode(source, lengths, gates), inputs, None, gates)

    def _layer(self, state: State, layer: int) -> State:
        return state[layer * self.per_layer : (layer + 1) * self.per_layer]


def _pass(
    cell: nn.Module,
    x: Inputs,
    lengths: Tensor | None,
    state: State | None,
    gates: dict[str, Tensor] | None,
    name: str,
) -> tuple[Tensor, State]:
    """One cell over one sequence: fast, or step by step where the gates are wanted."""
    assert isinstance(cell, Cell)
    if gates is None:
        states, final = cell(x, lengths, state)
        return states, final
    states, final, seen = cell.unroll(x, lengths, state)
    gates.update({f"{name}.{gate}": values for gate, values in seen.items()})
    return states, final


def _reverse(x: Inputs, lengths: Tensor | None) -> Inputs:
    if isinstance(x, Words):
        return replace(x, numbers=_turn(x.numbers, lengths))
    return _turn(x, lengths)


def _turn(x: Tensor, lengths: Tensor | None) -> Tensor:
    return x.flip(1) if lengths is None else reverse(x, lengths)


models.register("encoder-decoder")((EncoderDecoderConfig, EncoderDecoder))
