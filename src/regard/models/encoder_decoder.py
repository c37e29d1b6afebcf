"""The recurrent encoder-decoder: one class with parts, of which the papers' models are settings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.config import Config
from regard.errors import RegardError
from regard.models.attention import AdditiveReLU, Attention, Bilinear, Site, attentions, joined
from regard.models.by_hand import Walk
from regard.models.cells import Inputs, State, TorchCell, cells, vectors
from regard.models.encoder import Encoder, FeedForward, Gates, run
from regard.models.focus import Focus, FullFocus, focuses
from regard.models.inputs import Embedding, OneHot, drawn_with
from regard.models.outputs import Memory, Output, OutputLayer, Seq2Seq
from regard.models.positions import Sinusoidal
from regard.models.readout import Readout
from regard.models.recurrences import Layout
from regard.models.wiring import EncoderDecoderConfig
from regard.registry import Registry
from regard.tasks.batch import mask

models: Registry[tuple[type[Config], type[Seq2Seq]]] = Registry("kind of model")


class EncoderDecoder(Seq2Seq):
    """Encoder, bridge, decoder, attention, readout.

    VED (chapter36, section 36.1; aitken2021, section 2) has no attention, AED has, and AO has
    nothing but: `recurrent=False` cuts what one step tells the next. The decoder starts from the
    encoder's last state, layer by layer. A bidirectional encoder's states are projected to the
    decoder's size: tanh(Linear) for the last state as in chapter36, section 36.4, Linear for the
    states that attention reads. Past its end token the encoder's state stays what it was.
    """

    def __init__(self, config: EncoderDecoderConfig, source_words: int, target_words: int):
        super().__init__()
        self.config = config
        with drawn_with(config.initial_seed):
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
        cell, hidden, layers = cells[config.cell], config.hidden, config.layers
        self.per_layer = len(cell.state_names)
        both = config.bidirectional
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
            self.attention = attentions[config.attention](
                hidden, config.heads, config.attention_size, config.merge, self._memory_size
            )
        state, context = self.reads
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
        return focuses[self.config.focus](self._memory_size * heads, words)

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

    def _place(self, x: Inputs, start: int) -> Inputs:
        """The input with positions added, where there are any."""
        if self.positions is None:
            return x if self.config.recurrent else vectors(x)
        x = vectors(x)  # (batch, time, inputs)
        placed: Tensor = x + self.positions(start, start + x.shape[1])[:, : x.shape[2]]
        return placed

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source on the fastest path."""
        return self._encode(source, lengths, None)

    def _encode(self, source: Tensor, lengths: Tensor, gates: Gates | None) -> Memory:
        x = self._place(self.source_embedding(source), 0)
        words = mask(lengths, source.shape[1])
        finals: State = ()
        if isinstance(self.encoder, FeedForward):
            assert isinstance(x, Tensor)
            states = self.encoder(x, gates, "encoder.gates") * words[:, :, None]
        else:
            full = bool((lengths == source.shape[1]).all())
            states, finals = self.encoder(x, None if full else lengths, gates)
        if self.config.bidirectional and not self.bridge:
            finals = tuple(torch.stack(final.chunk(2, dim=1)).mean(dim=0) for final in finals)
        elif self.bridge:
            finals = tuple(
                torch.tanh(bridge(final)) for bridge, final in zip(self.bridge, finals, strict=True)
            )
        if self.positions is not None:  # the decoder has to know which step it is at
            finals = (*finals, torch.zeros_like(lengths))
        states = self.memory(states)
        prepared = () if self.attention is None else self.attention.remember(states)
        return Memory(states, words, finals, prepared)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps: recurrence, attention and readout each in one piece."""
        return self._decode(memory, inputs, lengths, None)

    def _decode(
        self, memory: Memory, inputs: Tensor, lengths: Tensor | None, gates: Gates | None
    ) -> Output:
        if self.focus is not None:
            return self._walk(memory, inputs, torch.ones(inputs.shape[1]).bool(), gates)
        x = self._place(self.target_embedding(inputs), 0)
        if isinstance(self.decoder, FeedForward):
            assert isinstance(x, Tensor)
            x = self.decoder(x, gates, "decoder.gates")
        else:
            if lengths is not None and bool((lengths == inputs.shape[1]).all()):
                lengths = None
            for layer, cell in enumerate(self.decoder):
                x = self._dropped(x, layer)
                start = self._layer(memory.initial, layer)
                x, _ = run(cell, x, lengths, start, gates, f"decoder.gates.{layer}")
        states = vectors(x)
        logits, sites = self._read(states, memory, lengths=lengths)
        return Output(logits, memory.states, states, sites, gates or {})

    def _read(
        self, states: Tensor, memory: Memory, start: int = 0, lengths: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Site]]:
        """Attention with states that are there already, and the output layer."""
        if self.attention is None:
            return self.readout(states), {}
        context, site = self._attend(states, memory, start)
        return self._logits(states, context, lengths), {"attention": site}

    def _attend(self, states: Tensor, memory: Memory, start: int) -> tuple[Tensor, Site]:
        assert self.attention is not None
        told = None
        if memory.told is not None and start < memory.told.shape[1]:
            told = memory.told[:, start : start + states.shape[1]]
        context, site = self.attention(states, *memory.prepared, memory.mask, told)
        return context, site

    def _logits(self, states: Tensor, context: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The output network; with a layer before the output, over words and not over padding.

        A plain output layer takes the padding along: runs from before packing keep their bits.
        """
        if lengths is None or self.readout.hidden is None:
            logits: Tensor = self.readout(states, context)
            return logits
        layout = Layout.of(len(states), states.shape[1], lengths, states.device)
        return layout.unpack(self.readout(layout.pack(states), layout.pack(context)))

    def lexical(
        self, memory: Memory, states: Tensor, targets: Tensor, there: Tensor, bias: bool = True
    ) -> Tensor:
        """log β of snell2021, eq. 4; see `Seq2Seq`."""
        if self.attention is None or self.focus is not None or not self.reads[1]:
            return super().lexical(memory, states, targets, there, bias)
        values = memory.prepared[1]  # (batch, head or 1, source, features)
        contexts = self.attention.merge(values.expand(-1, self.config.heads, -1, -1))
        return self.readout.lexical(states, contexts, targets, there, bias)

    def _advance(
        self, memory: Memory, words: Tensor, state: State, gates: list[Gates] | None = None
    ) -> tuple[State, Tensor, Tensor, dict[str, Site]]:
        """One decoder step. words (batch,) -> state, logits (batch, vocab), h, sites."""
        x = self.target_embedding.look_up(words)  # (batch, embedding)
        at = int(state[-1][0]) if self._counts(memory) else 0
        if self.positions is not None:
            x = x + self.positions(at, at + 1)[:, : x.shape[1]]
        context, sites = None, {}
        if self.focus is not None:
            asking = self._layer(state, self.config.layers - 1)[0]
            context, sites["attention"] = self._attend(asking[:, None], memory, at)
            x = self.focus(context[:, 0], x)
        new: list[Tensor] = []
        if isinstance(self.decoder, FeedForward):
            x = self.decoder(x[:, None])[:, 0]
        else:
            seen: Gates = {}
            for layer, cell in enumerate(self.decoder):
                layer_state, found = cell.step(cell.project(x), self._layer(state, layer))  # type: ignore[operator]
                seen |= {f"decoder.gates.{layer}.{gate}": value for gate, value in found.items()}
                new += layer_state
                x = self._dropped(layer_state[0], layer + 1)
            if gates is not None:
                gates.append(seen)
        if self._counts(memory):
            new.append(state[-1] + 1)
        if context is None:
            logits, sites = self._read(x[:, None], memory, at)
        else:
            logits = self._logits(x[:, None], context)
        return tuple(new), logits[:, 0], x, sites

    def _dropped(self, x: Inputs, layer: int) -> Any:
        """What enters a layer, with dropout between layers, as in `torch.nn.LSTM`."""
        if not (self.training and self.config.dropout and 0 < layer < self.config.layers):
            return x
        return nn.functional.dropout(vectors(x), self.config.dropout)

    def _counts(self, memory: Memory) -> bool:
        """Whether the decoder's state ends in the number of the step."""
        return self.positions is not None or memory.told is not None

    def _walk(self, memory: Memory, inputs: Tensor, forced: Tensor, gates: Gates | None) -> Output:
        """All decoder steps one by one, each fed the teacher's word or the last one's choice.

        The way of attention before the step: what is attended to at one step is in the next
        one's query.
        """
        if gates is None and self._fits(memory):
            return self._walk_by_hand(memory, inputs, forced)
        state, words = memory.initial, inputs[:, 0]
        outputs: list[tuple[Tensor, Tensor, Site]] = []
        every: list[Gates] = []
        for t, teacher in enumerate(forced.tolist()):
            if t:
                words = inputs[:, t] if teacher else outputs[-1][0].argmax(dim=1)
            state, logits, h, sites = self._advance(memory, words, state, every)
            outputs.append((logits, h, sites["attention"]))
        if gates is not None:
            for name in every[0]:
                gates[name] = torch.stack([step[name] for step in every], dim=1)
        logits = torch.stack([logits for logits, _, _ in outputs], dim=1)
        states = torch.stack([h for _, h, _ in outputs], dim=1)
        site = joined([site for _, _, site in outputs])
        return Output(logits, memory.states, states, {"attention": site}, gates or {})

    def _fits(self, memory: Memory) -> bool:
        """Whether the walk can be taken by hand, and is faster so (see `by_hand.py`)."""
        config = self.config
        return (
            isinstance(self.focus, FullFocus)
            and type(self.attention) is AdditiveReLU
            and config.layers == config.heads == 1
            and config.readout_bias
            and config.readout_layer == "none"
            and not (self.reads[1] or self._counts(memory))
            and cells[config.cell].by_hand is not None
            and self.decoder[0].outweighs(len(memory.states))  # type: ignore[index, operator]
        )

    def _walk_by_hand(self, memory: Memory, inputs: Tensor, forced: Tensor) -> Output:
        attention, focus, cell = self.attention, self.focus, self.decoder[0]  # type: ignore[index]
        assert isinstance(attention, AdditiveReLU) and isinstance(focus, FullFocus)
        assert isinstance(cell, TorchCell)
        keys = memory.prepared[0][:, 0]
        weights = (
            self.target_embedding.table,
            attention.query.weight, attention.query.bias, attention.v[0], attention.bias,
            focus.weigh.weight, focus.weigh.bias,
            cell.weight_ih, cell.bias_ih, cell.weight_hh, cell.bias_hh,
            self.readout.weight, self.readout.bias,
        )  # fmt: skip
        found: Any = Walk.apply(  # type: ignore[no-untyped-call]
            cell.by_hand, forced.tolist(), inputs, memory.mask, memory.states, keys,
            *weights, *memory.initial,
        )  # fmt: skip
        logits, states, queries, scores, mixed = found
        queries, keys, scores, mixed = (x[:, None] for x in (queries, keys, scores, mixed))
        site = Site(queries, keys, scores, mixed, attention.scorer, attention.vector, lag=1)
        return Output(logits, memory.states, states, {"attention": site})

    def decode_mixed(
        self, memory: Memory, inputs: Tensor, forced: Tensor, lengths: Tensor | None = None
    ) -> Output:
        """All decoder steps in one walk where attention goes first; see `Seq2Seq`."""
        if self.focus is None:
            return super().decode_mixed(memory, inputs, forced, lengths)
        return self._walk(memory, inputs, forced, None)

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step."""
        new, logits, _, _ = self._advance(memory, words, state)
        return logits, new

    def told(self, memory: Memory, alignment: Tensor) -> Memory:
        """The memory with attention forced to an alignment (batch, target)."""
        if self.attention is None:
            return super().told(memory, alignment)
        initial = memory.initial
        if self.positions is None:  # from now on the decoder has to know which step it is at
            initial = (*initial, torch.zeros_like(alignment[:, 0]))
        return memory._replace(told=alignment, initial=initial)

    def trace(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Output:
        """The same as `forward`, step by step, with the gates of every cell."""
        gates: Gates = {}
        return self._decode(self._encode(source, lengths, gates), inputs, None, gates)

    def _layer(self, state: State, layer: int) -> State:
        return state[layer * self.per_layer : (layer + 1) * self.per_layer]


models.register("encoder-decoder")((EncoderDecoderConfig, EncoderDecoder))
