"""The recurrent encoder-decoder: one class with parts, of which the papers' models are settings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.config import Config
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.encoder_decoder_parts import EncoderDecoderParts
from regard.models.kernels.attending import Attending, Weights
from regard.models.kernels.layout import Layout
from regard.models.kernels.recurrence import recur
from regard.models.layers.attention import AdditiveReLU, Site, join_steps
from regard.models.layers.cells import CELLS, Inputs, State, TorchCell, vectors
from regard.models.layers.dropping import drop_out
from regard.models.layers.embedding import pass_point
from regard.models.layers.encoder import FeedForward, Gates, run
from regard.models.layers.focus import FullFocus
from regard.models.layers.hook_point import HookPoint
from regard.models.seq2seq import Memory, Output, Seq2Seq
from regard.registry import Registry
from regard.tasks.batch import mask

MODELS: Registry[tuple[type[Config], type[Seq2Seq]]] = Registry(
    "kind of model",
    modules=tuple(
        f"regard.models.{name}" for name in ("encoder_decoder", "transformer", "classifier")
    ),
)


class EncoderDecoder(EncoderDecoderParts):
    """Encoder, bridge, decoder, attention, readout.

    VED (chapter36, section 36.1; aitken2021, section 2) has no attention, AED has, and AO has
    nothing but: `recurrent=False` cuts what one step tells the next. The decoder starts from the
    encoder's last state, layer by layer. A bidirectional encoder's states are projected to the
    decoder's size: tanh(Linear) for the last state as in chapter36, section 36.4, Linear for the
    states that attention reads. Past its end token the encoder's state stays what it was.
    """

    def _enter(self, words: Inputs, point: HookPoint) -> Inputs:
        """How words enter, past their hook point, with positions added where there are any."""
        words = pass_point(point, words)
        if self.positions is None:
            return words if self.config.recurrent else vectors(words)
        x = vectors(words)  # (batch, time, inputs)
        positions: Tensor = self.positions(0, x.shape[1])[:, : x.shape[2]]
        return x + positions

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the source; see `Seq2Seq`."""
        x = self._enter(self.source_embedding(source), self.source_vectors)
        words = mask(lengths, source.shape[1])
        finals: State = ()
        if isinstance(self.encoder, FeedForward):
            assert isinstance(x, Tensor)
            states = self.encoder(x, gates, "encoder.gates") * words[:, :, None]
        else:
            states, finals = self.encoder(x, lengths, gates)
        finals = self.begin(finals)
        if self.feeds:
            finals = (*finals, states.new_zeros(len(source), self.readout.in_features))
        if self.positions is not None:  # the decoder has to know which step it is at
            finals = (*finals, torch.zeros_like(lengths))
        states = self.source_states(self.memory(states))
        prepared = () if self.attention is None else self.attention.remember(states)
        return Memory(states, words, finals, prepared, gates=gates)

    def begin(self, finals: State) -> State:
        """Where the decoder starts, from the encoder's last states, layer by layer."""
        if self.bridge:
            return tuple(
                torch.tanh(bridge(final)) for bridge, final in zip(self.bridge, finals, strict=True)
            )
        if not self.config.bidirectional:
            return finals
        return tuple(torch.stack(final.chunk(2, dim=1)).mean(dim=0) for final in finals)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps: recurrence, attention and readout each in one piece."""
        if self.focus is not None or self.feeds:
            return self._walk(memory, inputs, torch.ones(inputs.shape[1]).bool())
        x = self._enter(self.target_embedding(inputs), self.target_vectors)
        if isinstance(self.decoder, FeedForward):
            assert isinstance(x, Tensor)
            x = self.decoder(x, memory.gates, "decoder.gates")
        else:
            if lengths is not None and bool((lengths == inputs.shape[1]).all()):
                lengths = None
            for layer, cell in enumerate(self.decoder):
                x = self._drop_out(x, layer)
                start = self._layer(memory.initial, layer)
                x, _ = run(cell, x, lengths, start, memory.gates, f"decoder.gates.{layer}")
        states = self.target_states(vectors(x))
        logits, sites = self._read(states, memory, lengths=lengths)
        return Output(logits, memory.states, states, sites, memory.gates or {})

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
        forced = memory.forced_alignment
        if forced is not None:
            forced = forced[:, start : start + states.shape[1]] if start < forced.shape[1] else None
        context, site = self.attention(states, *memory.prepared, memory.mask, forced)
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
        self, memory: Memory, states: Tensor, targets: Tensor, mask: Tensor, bias: bool = True
    ) -> Tensor:
        """log β of snell2021, eq. 4; see `Seq2Seq`."""
        if self.attention is None or not self.has_lexical_probe:
            return super().lexical(memory, states, targets, mask, bias)
        values = memory.prepared[1]  # (batch, head or 1, source, features)
        contexts = self.attention.merge(values.expand(-1, self.config.heads, -1, -1))
        return self.readout.lexical(states, contexts, targets, mask, bias)

    def _advance(self, memory: Memory, words: Tensor, state: State) -> tuple[State, Output]:
        """One decoder step, words (batch,): the next state, and an output of one step."""
        x = self.target_vectors(self.target_embedding.look_up(words[:, None]))[:, 0]
        at = int(state[-1][0]) if self._counts(memory) else 0
        if self.positions is not None:
            x = x + self.positions(at, at + 1)[:, : x.shape[1]]
        context, sites = None, {}
        if self.focus is not None:
            before = self._layer(state, self.config.layers - 1)[0]
            context, sites["attention"] = self._attend(before[:, None], memory, at)
            x = self.focus(context[:, 0], x)
        if self.feeds:
            x = torch.cat([x, state[self._fed]], dim=1)
        new: list[Tensor] = []
        gates: Gates = {}
        if isinstance(self.decoder, FeedForward):
            x = self.decoder(x[:, None])[:, 0]
        else:
            for layer, cell in enumerate(self.decoder):
                layer_state, seen = cell.step(cell.project(x), self._layer(state, layer))  # type: ignore[operator]
                gates |= {f"decoder.gates.{layer}.{gate}": g[:, None] for gate, g in seen.items()}
                new += layer_state
                x = self._drop_out(layer_state[0], layer + 1)
        h = self.target_states(x[:, None])
        if self.attention is not None and context is None:
            context, sites["attention"] = self._attend(h, memory, at)
        if self.feeds:
            new.append(self.readout.features(h, context)[:, 0])
        if self._counts(memory):
            new.append(state[-1] + 1)
        logits = self.readout(h, context)
        return tuple(new), Output(logits, memory.states, h, sites, gates)

    def _drop_out(self, x: Inputs, layer: int) -> Any:
        """What enters a layer, with dropout between layers, as in `torch.nn.LSTM`."""
        if not (self.training and self.config.dropout and 0 < layer < self.config.layers):
            return x
        return drop_out(vectors(x), self.config.dropout)

    def _counts(self, memory: Memory) -> bool:
        """Whether the decoder's state ends in the number of the step."""
        return self.positions is not None or memory.forced_alignment is not None

    def _walk(self, memory: Memory, inputs: Tensor, forced: Tensor) -> Output:
        """All decoder steps one by one, each fed the teacher's word or the last one's choice.

        The way of attention before the step, and of input feeding: what is attended to at one
        step is in the next one's query.
        """
        if memory.gates is None and not self._watched() and self._fits(memory):
            return self._walk_by_hand(memory, inputs, forced)
        state, words = memory.initial, inputs[:, 0]
        steps: list[Output] = []
        for t, teacher in enumerate(forced.tolist()):
            if t:
                words = inputs[:, t] if teacher else steps[-1].logits[:, 0].argmax(dim=1)
            state, step = self._advance(memory, words, state)
            steps.append(step)
        if memory.gates is not None:
            for name in steps[0].gates:
                memory.gates[name] = torch.cat([step.gates[name] for step in steps], dim=1)
        logits = torch.cat([step.logits for step in steps], dim=1)
        states = torch.cat([step.decoder_states for step in steps], dim=1)
        sites = {n: join_steps([step.sites[n] for step in steps]) for n in steps[0].sites}
        return Output(logits, memory.states, states, sites, memory.gates or {})

    def _watched(self) -> bool:
        """Whether somebody looks at what passes a hook point of the decoder."""
        here = self.target_vectors.watched or self.target_states.watched
        return here or bool(self.attention and self.attention.at.watched)

    def _fits(self, memory: Memory) -> bool:
        """Whether the walk can be taken by hand, and is faster so (see `kernels/attending.py`)."""
        config = self.config
        return (
            isinstance(self.focus, FullFocus)
            and type(self.attention) is AdditiveReLU
            and config.layers == config.heads == 1
            and config.readout_bias
            and config.readout_layer == "none"
            and not (self.reads[1] or self._counts(memory))
            and issubclass(CELLS[config.cell], TorchCell)
            and CELLS[config.cell].kernel is not None
            and self.decoder[0].outweighs(len(memory.states))  # type: ignore[index, operator]
            and not torch.is_autocast_enabled("cpu")  # it mixes precisions
        )

    def _walk_by_hand(self, memory: Memory, inputs: Tensor, forced: Tensor) -> Output:
        attention, focus, cell = self.attention, self.focus, self.decoder[0]  # type: ignore[index]
        assert isinstance(attention, AdditiveReLU) and isinstance(focus, FullFocus)
        assert isinstance(cell, TorchCell) and cell.kernel is not None
        keys = memory.prepared[0][:, 0]
        weights = Weights(
            memory.states, keys, self.target_embedding.table,
            attention.query.weight, attention.query.bias, attention.v[0], attention.bias,
            focus.weigh.weight, focus.weigh.bias, cell.weight_ih, cell.input_bias,
            self.readout.weight, self.readout.bias,
        )  # fmt: skip
        source = Attending(inputs, forced.tolist(), memory.mask, weights)
        layout = Layout.of(len(inputs), inputs.shape[1], None, inputs.device)
        states, _, results = recur(cell.kernel, source, layout, cell.recurrent, memory.initial)
        queries, scores, mixed, logits = results
        queries, keys, scores, mixed = (x[:, None] for x in (queries, keys, scores, mixed))
        site = attention.site(queries, keys, memory.prepared[1], scores, mixed)
        return Output(logits, memory.states, states, {"attention": site})

    def decode_mixed(
        self, memory: Memory, inputs: Tensor, forced: Tensor, lengths: Tensor | None = None
    ) -> Output:
        """All decoder steps in one walk where attention goes first; see `Seq2Seq`."""
        if self.focus is None and not self.feeds:
            return super().decode_mixed(memory, inputs, forced, lengths)
        return self._walk(memory, inputs, forced)

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step."""
        new, output = self._advance(memory, words, state)
        return output.logits[:, 0], new

    def force_alignment(self, memory: Memory, alignment: Tensor) -> Memory:
        """The memory with attention forced to an alignment (batch, target)."""
        if self.attention is None:
            return super().force_alignment(memory, alignment)
        initial = memory.initial
        if self.positions is None:  # from now on the decoder has to know which step it is at
            initial = (*initial, torch.zeros_like(alignment[:, 0]))
        return memory._replace(forced_alignment=alignment, initial=initial)

    @property
    def _fed(self) -> int:
        """Where in the decoder's state the last step's features are, if they are fed."""
        return self.config.layers * self.per_layer

    def _layer(self, state: State, layer: int) -> State:
        return state[layer * self.per_layer : (layer + 1) * self.per_layer]


MODELS.register("encoder-decoder")((EncoderDecoderConfig, EncoderDecoder))
