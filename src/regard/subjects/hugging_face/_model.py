"""A model of `transformers` with Regard's interface."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.cells import Gates, State
from regard.models.layers.hook_point import HookPoint
from regard.models.parts import Layer, Parts, number_layers
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.subjects.hugging_face._attentions import find_attentions
from regard.subjects.hugging_face._listening import Listener, register
from regard.tasks.batch import mask

LATE = ("scores", "weights")  # what is made of queries and keys


class HuggingFaceModel(Seq2Seq):
    """Passes go through the model itself; nothing of it is written anew.

    A decoder step runs the whole prefix, without a cache, because a cache hides cross-attention's
    keys from the second step on.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.net = model
        attentions, self.strange = find_attentions(model)
        self.listener = Listener({a.site: a for a in attentions})
        self.points = nn.ModuleList(a.points for a in attentions)
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.speech = model.main_input_name == "input_features"
        self._factor: float | None = None
        if not register():
            self.listener.hooked |= {*self.listener.attentions}
        self.training = model.training

    @contextmanager
    def keep_sites(self, names: Collection[str] | None) -> Iterator[None]:
        """Only these attentions are kept in memory."""
        before = self.listener.wanted
        self.listener.wanted = None if names is None else frozenset(names)
        try:
            yield
        finally:
            self.listener.wanted = before

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the source: words (batch, source), or features (batch, source, 2·size)."""
        words = mask(lengths, source.shape[1])
        given: dict[str, Any] = {"attention_mask": words.long()}
        given[self.net.main_input_name] = source
        if self.speech:
            given = {"input_features": self.unfold(source)}
            words = torch.ones_like(words)
        with self.listener.listening(self.net), self._embedding("encoder", words.shape[1]):
            out = self.net.get_encoder()(**given, return_dict=True)
            sites = self.listener.finish(words)
        return Memory(self.source_states(out.last_hidden_state), words, (), sites=sites)

    def unfold(self, source: Tensor) -> Tensor:
        """Two frames a position become frames again. -> (batch, size, frames)"""
        batch, positions, _ = source.shape
        return source.reshape(batch, 2 * positions, -1).transpose(1, 2)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """A forced pass without a cache."""
        from transformers.modeling_outputs import BaseModelOutput

        seen: list[Tensor] = []
        head = self.net.get_output_embeddings()
        hook = head.register_forward_pre_hook(self._read_states(seen))
        decoder = self.net.get_decoder()
        after = decoder.register_forward_hook(lambda _module, _args, out: seen.append(out[0]))
        given: dict[str, Any] = {} if self.speech else {"attention_mask": memory.mask.long()}
        self.listener.width = inputs.shape[1]
        try:
            with self.listener.listening(self.net), self._embedding("decoder", inputs.shape[1]):
                out = self.net(
                    encoder_outputs=BaseModelOutput(last_hidden_state=memory.states), **given,
                    decoder_input_ids=inputs, use_cache=False, return_dict=True,
                )  # fmt: skip
                sites = self.listener.finish(memory.mask)
        finally:
            self.listener.width = 0
            hook.remove()
            after.remove()
        states = self._states(seen)
        return Output(out.logits, memory.states, states, {**memory.sites, **sites})

    def _read_states(self, seen: list[Tensor]) -> Any:
        """A hook that sees what the output layer reads, and lets the hook point change it."""

        def hook(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            seen.append(args[0])
            if not self.target_states.watched:
                return None
            return (self.target_states(args[0]), *args[1:])

        return hook

    def _states(self, seen: list[Tensor]) -> Tensor:
        """The decoder's last states; what the output layer reads is a multiple of them, or else
        is taken instead."""
        last, read = seen[0], seen[-1]
        if read.ndim == 4:  # of several streams, that of the next word
            read = read[:, 0]
        if last.shape != read.shape:
            self._factor = 1.0
            return read
        ours, theirs = last.detach(), read.detach()
        factor = float((theirs * ours).sum() / (ours * ours).sum().clamp(min=1e-30))
        if not torch.allclose(ours * factor, theirs, rtol=1e-3, atol=1e-5):
            factor, last = 1.0, read
        self._factor = round(factor, 6) if abs(factor - 1) > 1e-4 else 1.0
        return last

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One more word; the state is the words so far."""
        so_far = torch.cat([*state, words[:, None]], dim=1)
        return self.decode(memory, so_far).logits[:, -1], (so_far,)

    @torch.no_grad()
    def feed(self, memory: Memory, inputs: Tensor, forced: Tensor) -> Tensor:
        """See `Seq2Seq`; nothing is kept of the steps."""
        with self.keep_sites(()):
            return super().feed(memory, inputs, forced)

    def output_layer(self) -> OutputLayer | None:
        """The output embedding with the bias of the logits, for the decoder's last states."""
        head = self.net.get_output_embeddings()
        bias = getattr(head, "bias", None)
        extra = getattr(self.net, "final_logits_bias", None)
        if isinstance(extra, Tensor):
            bias = extra.flatten() if bias is None else bias + extra.flatten()
        if self._factor is None:
            raise RegardError("The output layer is known after the first pass.")
        weight = head.weight if self._factor == 1.0 else head.weight * self._factor
        return OutputLayer(weight, bias, {"state": (0, weight.shape[1])})

    def layers(self) -> dict[str, Layer]:
        """Those of both sides, whatever the family calls them."""
        sides = self.net.get_encoder(), self.net.get_decoder()
        own: list[Any] = [getattr(s, "layers", None) or getattr(s, "block", ()) for s in sides]
        return number_layers(*own)

    def hook_points(self) -> dict[str, HookPoint]:
        """See `NamedParts`; no scores and weights of attentions heard at their projections, and
        no vectors of words where the source is speech."""
        hidden = {f"{site}.{what}" for site in self.listener.hooked for what in LATE}
        hidden |= {"encoder.embedding"} if self.speech else set()
        return {name: point for name, point in super().hook_points().items() if name not in hidden}

    def parts(self) -> Parts:
        """See `NamedParts`."""
        return {"encoder": [self.net.get_encoder()]}

    @contextmanager
    def _embedding(self, side: str, width: int) -> Iterator[None]:
        """While it lasts, the vectors of one side's words pass their hook point."""
        stack = self.net.get_encoder() if side == "encoder" else self.net.get_decoder()
        table = getattr(stack, "embed_tokens", None) or getattr(stack, "word_embeddings", None)
        point = self.source_vectors if side == "encoder" else self.target_vectors
        if table is None or not point.watched:
            yield
            return

        def change(_module: nn.Module, _args: Any, out: Tensor) -> Tensor | None:
            if out.shape[1] < width:  # some families look up their padding alone
                return None
            return torch.cat([point(out[:, :width]), out[:, width:]], dim=1)

        hook = table.register_forward_hook(change)
        try:
            yield
        finally:
            hook.remove()
