"""What the recurrent encoder-decoder is made of, and what its parts are called."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.attention import ATTENTIONS, Attention, Bilinear
from regard.models.layers.cells import CELLS, Cell, RecurrentCell
from regard.models.layers.embedding import Embedding, OneHot, draw_with
from regard.models.layers.encoder import Encoder, FeedForward
from regard.models.layers.focus import FOCUSES, Focus
from regard.models.layers.hook_point import HookPoint
from regard.models.layers.positions import Sinusoidal
from regard.models.layers.readout import Readout
from regard.models.parts import Parts, matrices_of
from regard.models.seq2seq import OutputLayer, Seq2Seq


class EncoderDecoderParts(Seq2Seq):
    """Encoder, bridge, decoder, attention, readout, built as the settings say."""

    def __init__(self, config: EncoderDecoderConfig, source_words: int, target_words: int):
        super().__init__()
        self.config = config
        with draw_with(config.initial_seed):
            self._build(source_words, target_words)
        if config.head_seeds:
            assert isinstance(self.attention, Bilinear)
            self.attention.draw(config.head_seeds)
        if config.uniform is not None:
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -config.uniform, config.uniform)

    target_embedding: Embedding

    def _build(self, source_words: int, target_words: int) -> None:
        config = self.config
        cell, hidden, layers = CELLS[config.cell], config.hidden, config.layers
        self.per_layer = len(cell.state_names)
        both = config.bidirectional
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.source_embedding = self._embedding(source_words, config.embedding, False)
        if config.shared_embedding:
            self._share(source_words, target_words)
        else:
            self.target_embedding = self._embedding(
                target_words,
                config.decoder_embedding or config.embedding,
                config.first_input == "uniform",
            )
        sizes = self.source_embedding.size, self.target_embedding.size
        self.positions = self._positions(max(sizes))
        self.encoder: Encoder | FeedForward
        self.decoder: nn.ModuleList | FeedForward
        if config.recurrent:
            trainable = config.initial_state == "trainable"
            self.encoder = Encoder(cell, sizes[0], hidden, layers, both, trainable, config.dropout)
            self.focus = self._focus(sizes[1])
            first = sizes[1] if self.focus is None else self.focus.size
            inputs = [first] + [hidden] * (layers - 1)
            self.decoder = nn.ModuleList(cell(size, hidden) for size in inputs)
        else:
            self.focus = None
            self.encoder = FeedForward(cell, sizes[0], hidden, layers)
            self.decoder = FeedForward(cell, sizes[1], hidden, layers)
        finals = layers * self.per_layer if both and config.bridge == "learned" else 0
        self.bridge = nn.ModuleList(nn.Linear(2 * hidden, hidden) for _ in range(finals))
        attending = config.attention != "none"
        projected = both and attending and config.project_memory
        self.memory = nn.Linear(2 * hidden, hidden) if projected else nn.Identity()
        self.attention: Attention | None = None
        if attending:
            self.attention = ATTENTIONS[config.attention](
                hidden, config.heads, config.attention_size, config.merge, self._memory_size,
                layers - 1, int(config.attend == "before"),
            )  # fmt: skip
        state, context = self.reads
        self.has_lexical_probe = attending and self.focus is None and context
        self.readout = Readout(
            state * hidden,
            self.attention.features if context and self.attention is not None else 0,
            target_words,
            hidden,
            config.readout_bias,
            config.readout_layer,
            config.context_layer,
            config.readout == "sum",
        )

    @property
    def _memory_size(self) -> int:
        """The size of an encoder state as attention reads it."""
        wide = self.config.bidirectional and not self.config.project_memory
        return self.config.hidden * (2 if wide else 1)

    def _share(self, source_words: int, target_words: int) -> None:
        """One table for both sides, known to torch, and to checkpoints, by one name only."""
        if source_words != target_words:
            raise RegardError(
                f"model.shared_embedding needs one vocabulary: the source has {source_words} words,"
                f" the target {target_words}. Set it to false, or take a task like copying."
            )
        object.__setattr__(self, "target_embedding", self.source_embedding)

    def _embedding(self, words: int, size: int, uniform_start: bool) -> Embedding:
        if self.config.inputs == "one-hot":
            return OneHot(words, self.config.one_hot_size, uniform_start)
        return Embedding(words, size, uniform_start)

    def _focus(self, words: int) -> Focus | None:
        if self.config.attend == "after":
            return None
        heads = self.config.heads if self.config.merge == "concatenate" else 1
        return FOCUSES[self.config.focus](self._memory_size * heads, words)

    def _positions(self, size: int) -> Sinusoidal | None:
        if self.config.positions == "none":
            return None
        return Sinusoidal(size, self.config.time_scale, self.config.amplitude, self.config.rotation)

    @property
    def reads(self) -> tuple[bool, bool]:
        """Whether the readout sees the state, and whether it sees the context."""
        if self.config.readout == "auto":
            return True, self.attention is not None and self.focus is None
        both = self.config.readout in ("both", "sum")
        return both or self.config.readout == "state", both or self.config.readout == "context"

    def output_layer(self) -> OutputLayer | None:
        """The readout, where it is one linear map of state and context."""
        return self.readout.layer()

    def parts(self) -> Parts:
        """See `NamedParts`; a table that both sides share is the encoder's."""
        own = [] if self.config.shared_embedding else [self.target_embedding]
        return {
            "encoder": [self.source_embedding, self.encoder, self.bridge, self.memory],
            "encoder.embedding": [self.source_embedding],
            **matrices_of("encoder", self.encoder),
            "decoder.embedding": own,
            **matrices_of("decoder", self.decoder),
            "attention": [self.attention],
            "focus": [self.focus],
            "output": [self.readout],
        }

    def cells(self) -> dict[str, RecurrentCell]:
        """See `NamedParts`; cells that are told nothing of the step before are not recurrent."""
        if isinstance(self.encoder, FeedForward) or isinstance(self.decoder, FeedForward):
            return {}
        found, last = self.encoder.cells(), self.config.layers - 1
        for layer, cell in enumerate(self.decoder):
            assert isinstance(cell, Cell)
            states = ["decoder.states"] if layer == last else []
            gates = [f"decoder.gates.{layer}.{gate}" for gate in cell.gate_effects]
            recorded = (*states, *gates)
            found[f"decoder.{layer}"] = RecurrentCell(cell, self._columns(layer), recorded=recorded)
        if self.attention is None or not self.attention.plain or self.bridge:
            return found
        # Nothing can be cut between the decoder's units and those that they start from or meet.
        ends = [f"encoder.{last}", f"encoder.{last}.back", f"decoder.{last}"]
        group = tuple(name for name in ends if name in found)
        return found | {name: replace(found[name], shares=group) for name in group}

    def _columns(self, layer: int) -> tuple[Tensor, ...]:
        """What reads the units of a decoder's layer, a column for each."""
        cells = [cell for cell in self.decoder.modules() if isinstance(cell, Cell)]
        if layer + 1 < len(cells):
            return cells[layer].weight_hh, cells[layer + 1].weight_ih
        found: list[Tensor] = [cells[layer].weight_hh]
        if self.reads[0]:
            found.append(self.readout.state_columns)
        if self.attention is not None:
            found += self.attention.query_columns
        if self.attention is not None and self.attention.plain:
            # There is nothing to cut before the attention, so that the unit must start from zero.
            for bridge in list(self.bridge)[-self.per_layer :]:
                assert isinstance(bridge, nn.Linear)
                found += [bridge.weight.T, bridge.bias[None]]
        return tuple(found)
