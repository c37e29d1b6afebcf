"""The classifier: an encoder, an attention without queries, and one answer about the source.

snell2021's classifier (section 2.4) and its bag-of-words proxy (section 2.3) are settings of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config, member_of
from regard.errors import RegardError
from regard.models.encoder_decoder import MODELS
from regard.models.layers.attention import ATTENTIONS, Attention
from regard.models.layers.cells import CELLS, RecurrentCell, State, vectors
from regard.models.layers.embedding import Embedding, pass_point
from regard.models.layers.encoder import Encoder, Gates
from regard.models.layers.hook_point import HookPoint
from regard.models.layers.readout import Readout
from regard.models.parts import Parts, matrices_of
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.tasks.batch import mask
from regard.tasks.vocabulary import EOS

NEVER = -1e4  # the logit of a word that is never said
BAG = "none"  # instead of a cell: words stand for themselves
CellName = Annotated[str, member_of("cell", CELLS, [BAG], gru="gru-torch")]
AttentionName = Annotated[str, member_of("attention of a classifier", ("unasked", "uniform"))]


class ClassifierConfig(Config):
    """Settings of the classifier."""

    cell: CellName = Field("lstm", description="recurrent cell, or none: a bag of words")
    hidden: int = Field(256, ge=1, description="size of a hidden state, in each direction")
    layers: int = Field(1, ge=1, description="recurrent layers")
    bidirectional: bool = Field(True, description="the encoder reads both ways")
    embedding: int = Field(300, ge=1, description="size of an embedding")
    vectors: str | None = Field(
        None, description="file of word vectors to begin with, such as GloVe's; none: N(0, 1)"
    )
    attention: AttentionName = Field("unasked", description="unasked (learned) or uniform")
    attention_size: int = Field(256, ge=1, description="size of the attention's hidden layer")
    outputs: Literal["labels", "words"] = Field(
        "labels",
        description="labels: special words are never said, and two labels have one logit between"
        " them; words: every word of the target has its own",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> ClassifierConfig:
        if self.cell == BAG and (self.layers > 1 or self.bidirectional):
            raise ValueError("cell=none has no layers and no direction: bidirectional=false")
        return self


class Classifier(Seq2Seq):
    """Encoder states h_l, weights α_l that depend on them alone, logits W Σ α_l h_l + b.

    Every target step gets the same logits; the decoder's state is the context. With `cell=none`
    the states are the words' vectors, so that with uniform attention it is a bag of words
    (snell2021, eq. 5).
    """

    has_lexical_probe = True

    def __init__(self, config: ClassifierConfig, source_words: int, target_words: int):
        super().__init__()
        self.config = config
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.source_embedding = Embedding(source_words, config.embedding)
        self.encoder: Encoder | None = None
        self.is_bag_of_words = config.cell == BAG
        width = config.embedding
        if not self.is_bag_of_words:
            self.encoder = Encoder(
                CELLS[config.cell],
                config.embedding,
                config.hidden,
                config.layers,
                config.bidirectional,
            )
            width = config.hidden * (2 if config.bidirectional else 1)
        size = config.attention_size if ATTENTIONS[config.attention].sized else None
        self.attention: Attention = ATTENTIONS[config.attention](width, 1, size, "sum", width)
        labels = target_words - EOS  # a vocabulary of labels has no end token
        if config.outputs == "labels" and labels < 2:
            raise RegardError(
                "A classifier of labels needs a task with two of them or more, for example"
                " classification or keyword. For other tasks set model.outputs=words."
            )
        said = target_words if config.outputs == "words" else 1 if labels == 2 else labels
        self.readout = Readout(0, width, said, width)

    def parts(self) -> Parts:
        """See `NamedParts`."""
        return {
            "encoder": [self.source_embedding, self.encoder],
            "encoder.embedding": [self.source_embedding],
            **matrices_of("encoder", self.encoder),
            "attention": [self.attention],
            "output": [self.readout],
        }

    def cells(self) -> dict[str, RecurrentCell]:
        """See `NamedParts`."""
        return {} if self.encoder is None else self.encoder.cells()

    def output_layer(self) -> OutputLayer:
        """W and b with a row for every word of the target."""
        weight: Tensor = self.readout.weight
        bias: Tensor = self.readout.bias
        if self.config.outputs == "labels":
            if len(weight) == 1:  # σ(γ) is the softmax of ∓γ/2
                weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
            special = weight.new_zeros(EOS, weight.shape[1])
            weight = torch.cat([special, weight])
            bias = torch.cat([bias.new_full((EOS,), NEVER), bias])
        return OutputLayer(weight, bias, {"context": (0, weight.shape[1])})

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the source; see `Seq2Seq`."""
        x = pass_point(self.source_vectors, self.source_embedding(source))
        words = mask(lengths, source.shape[1])
        if self.encoder is None:
            states = vectors(x) * words[:, :, None]
        else:
            states, _ = self.encoder(x, lengths, gates)
        states = self.source_states(states)
        return Memory(states, words, (), self.attention.remember(states), gates=gates)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """The same logits at every step, whatever is fed in."""
        return self._decode(memory, inputs.shape[1])

    def _decode(self, memory: Memory, steps: int) -> Output:
        nothing = memory.states.new_zeros(len(memory.states), 1, memory.states.shape[2])
        context, site = self.attention(nothing, *memory.prepared, memory.mask)
        context = self.target_states(context)
        layer = self.output_layer()
        logits = nn.functional.linear(context, layer.weight, layer.bias)
        every = {
            name: getattr(site, name).expand(-1, -1, steps, -1)
            for name in ("queries", "scores", "weights")
        }
        return Output(
            logits.expand(-1, steps, -1),
            memory.states,
            context.expand(-1, steps, -1),
            {"attention": replace(site, **every)},
            memory.gates or {},
        )

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One target word."""
        return self._decode(memory, 1).logits[:, 0], state

    def lexical(
        self, memory: Memory, states: Tensor, targets: Tensor, mask: Tensor, bias: bool = True
    ) -> Tensor:
        """log β of snell2021, eq. 9, and of its proxy, eq. 6; see `Seq2Seq`."""
        layer = self.output_layer()
        assert layer.bias is not None
        shift = layer.bias if bias else layer.bias.where(layer.bias == NEVER, 0.0)
        logits = nn.functional.linear(memory.states, layer.weight, shift)  # (batch, source, vocab)
        if self.config.outputs == "labels":
            found = torch.stack(
                [find_log_probability(logits, word) for word in targets.unbind(1)], dim=1
            )
            return found.where(mask, 0.0)
        said = logits.log_softmax(dim=2).gather(2, targets[:, None].expand(-1, logits.shape[1], -1))
        return said.transpose(1, 2).where(mask, 0.0)


def find_log_probability(logits: Tensor, words: Tensor) -> Tensor:
    """log p of one word per row, exact however sure it is: −log(1 + Σ e^(others − its own)).

    A plain log-softmax is 0 from p = 1 − 6e-8 on, so that positions that differ would tie.
    logits (batch, source, vocab), words (batch,) -> (batch, source), float64
    """
    logits = logits.double()
    own = words[:, None, None].expand(-1, logits.shape[1], 1)
    others = logits.scatter(2, own, float("-inf")).logsumexp(dim=2)
    return -nn.functional.softplus(others - logits.gather(2, own)[:, :, 0])


MODELS.register("reader")((ClassifierConfig, Classifier))
