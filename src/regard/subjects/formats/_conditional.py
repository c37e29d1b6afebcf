"""The recurrent encoder-decoder of Nematus and Marian: attention between two cells of one step.

s'_t = GRU1(y_{t-1}, s_{t-1})                 the word that is fed, and the state before
α_t = softmax over the source of v · tanh(Q s'_t + K h_s + b),  c_t = Σ_s α_ts h_s
s_t = GRU2(c_t, s'_t)                         and cells without an input, if there are any
logits = W tanh(A y_{t-1} + B s_t + C c_t + d) + e

Sennrich et al. 2017; Junczys-Dowmunt et al. 2018. The first word fed has no vector. The decoder
starts from tanh(V h̄ + v), of the mean of the encoder's states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.attention import Additive
from regard.models.layers.cells import Gates, RecurrentCell, State
from regard.models.layers.embedding import Embedding
from regard.models.layers.hook_point import HookPoint
from regard.models.parts import Parts
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.subjects.formats._conditional_parts import Dense, NormedGRU, TwoStacks, name_cells
from regard.tasks.batch import mask


class Conditional(nn.Module):
    """The decoder's first layer: a cell that asks, and one that reads what was attended to."""

    def __init__(self, asks: NormedGRU, reads: NormedGRU):
        super().__init__()
        self.asks, self.reads = asks, reads

    def named_blocks(self) -> Iterator[tuple[str, Tensor]]:
        """The second cell's names begin with `cell2`, further ones' with their numbers."""
        yield from self.asks.named_blocks()
        for number, cell in enumerate([self.reads, *self.reads.after], start=2):
            assert isinstance(cell, NormedGRU)
            own = (pair for pair in cell.named_blocks() if not pair[0].startswith("cell"))
            yield from ((f"cell{number}.{name}", block) for name, block in own)


class DeepOutput(nn.Module):
    """W tanh(A y + B s + C c) + e, where the three maps have biases and may be normalised."""

    activation = "tanh"

    def __init__(self, word: Dense, state: Dense, context: Dense, last: nn.Linear):
        super().__init__()
        self.word, self.state, self.context, self.last = word, state, context, last

    def forward(self, word: Tensor, state: Tensor, context: Tensor) -> Tensor:
        """(batch, target, …) each -> (batch, target, vocab)"""
        hidden = torch.tanh(self.word(word) + self.state(state) + self.context(context))
        logits: Tensor = self.last(hidden)
        return logits


class ConditionalParts(NamedTuple):
    """What a file has to give."""

    tables: tuple[Tensor, Tensor]  # the words' vectors of both sides (vocab, size)
    encoder: TwoStacks
    start: Dense
    first: Conditional
    higher: Sequence[NormedGRU]
    attention: Additive
    readout: DeepOutput
    skip: bool = False  # what enters a higher layer of the decoder is added to what leaves it


class ConditionalDecoder(EncoderDecoder):
    """Regard's encoder-decoder with the step above."""

    feeds = True  # what it attended to is in the state
    encoder: TwoStacks
    decoder: nn.ModuleList
    readout: DeepOutput  # type: ignore[assignment]

    def __init__(self, made: ConditionalParts):
        Seq2Seq.__init__(self)  # the parts are not built by settings
        hidden, layers = made.first.asks.hidden, 1 + len(made.higher)
        self.config = EncoderDecoderConfig(cell="gru-torch", hidden=hidden, layers=layers)
        self.per_layer, self.positions, self.focus, self.skip = 1, None, None, made.skip
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.source_embedding, self.target_embedding = map(_hold, made.tables)
        self.encoder, self.start = made.encoder, made.start
        self.decoder = nn.ModuleList([made.first, *made.higher])
        self.bridge, self.memory = nn.ModuleList(), nn.Identity()
        self.attention, self.readout = made.attention, made.readout
        self.has_lexical_probe = False  # the context is in the state, too
        self.eval()

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the source; see `Seq2Seq`. The decoder's state ends in the number of its step."""
        x = self._enter(self.source_embedding(source), self.source_vectors)
        states, (mean,) = self.encoder(x, lengths, gates)
        states = self.source_states(states)
        first = torch.tanh(self.start(mean))
        initial = (*[first] * len(self.decoder), torch.zeros_like(lengths))
        assert self.attention is not None
        prepared = self.attention.remember(states)
        return Memory(states, mask(lengths, source.shape[1]), initial, prepared, gates=gates)

    def _advance(self, memory: Memory, words: Tensor, state: State) -> tuple[State, Output]:
        *before, count = state
        fed = self.target_embedding.look_up(words[:, None]) * (count > 0)[:, None, None]
        word = self.target_vectors(fed)
        base = self.decoder[0]
        assert isinstance(base, Conditional)
        (asking,), gates = base.asks.step(base.asks.project(word[:, 0]), (before[0],))
        context, site = self._attend(asking[:, None], memory, int(count[0]))
        (x,), seen = base.reads.step(base.reads.project(context[:, 0]), (asking,))
        gates |= {_shift(gate): values for gate, values in seen.items()}
        gates = {f"0.{gate}": values for gate, values in gates.items()}
        new = [x]
        for layer, cell in enumerate(list(self.decoder)[1:], start=1):
            assert isinstance(cell, NormedGRU)
            (h,), seen = cell.step(cell.project(x), (before[layer],))
            gates |= {f"{layer}.{gate}": values for gate, values in seen.items()}
            new.append(h)
            x = h + x if self.skip else h
        h = self.target_states(x[:, None])
        logits = self.readout(word, h, context)
        shown = {f"decoder.gates.{gate}": values[:, None] for gate, values in gates.items()}
        return (*new, count + 1), Output(logits, memory.states, h, {"attention": site}, shown)

    def force_alignment(self, memory: Memory, alignment: Tensor) -> Memory:
        """The memory with attention forced to an alignment (batch, target)."""
        return memory._replace(forced_alignment=alignment)

    def output_layer(self) -> OutputLayer | None:
        """None: a layer that bends stands before it."""
        return None

    def parts(self) -> Parts:
        """See `NamedParts`; what the decoder starts from is made on the encoder's side."""
        found = dict(super().parts())
        return {**found, "encoder": [*found["encoder"], self.start]}

    def cells(self) -> dict[str, RecurrentCell]:
        """See `NamedParts`: `decoder.0` asks, `decoder.0.cell2` reads the context."""
        base, *higher = self.decoder
        assert isinstance(base, Conditional)
        top = higher[-1] if higher else base.reads
        assert isinstance(top, NormedGRU)
        chains = [base.asks.chain("decoder", "0"), base.reads.chain("decoder", "0", first=2)]
        for layer, cell in enumerate(higher, start=1):
            assert isinstance(cell, NormedGRU)
            chains.append(cell.chain("decoder", str(layer)))
        last = [top, *top.after][-1]
        assert isinstance(last, NormedGRU)
        found = name_cells(chain.from_iterable(chains), last, "decoder.states")
        return self.encoder.cells() | found


def _hold(table: Tensor) -> Embedding:
    """Words' vectors (vocab, size) as an embedding."""
    held = Embedding(*table.shape)
    held.weight.data.copy_(table)
    return held


def _shift(gate: str) -> str:
    """The name of a gate of the cell that reads, and of those after it: one number further."""
    place, _, name = gate.rpartition(".")
    return f"cell{int(place.removeprefix('cell') or 1) + 1}.{name}"
