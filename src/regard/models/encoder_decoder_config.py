"""The settings of the recurrent encoder-decoder, and which of them go together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config import Config, Listed, member_of
from regard.models.layers.attention import ATTENTIONS, Bilinear, Merge
from regard.models.layers.cells import CELLS
from regard.models.layers.readout import Activation

CellName = Annotated[str, member_of("cell", CELLS, gru="gru-torch")]
AttentionName = Annotated[str, member_of("attention", ATTENTIONS, ["none"])]


class EncoderDecoderConfig(Config):
    """Settings of the recurrent encoder-decoder."""

    cell: CellName = Field("lstm", description="recurrent cell; gru alone means gru-torch")
    hidden: int = Field(128, ge=1, description="size of a hidden state")
    layers: int = Field(1, ge=1, description="recurrent layers on each side")
    bidirectional: bool = Field(False, description="the encoder reads both ways")
    bridge: Literal["learned", "mean"] = Field(
        "learned",
        description="how the last states of both directions start the decoder: projected, or"
        " their mean",
    )
    project_memory: bool = Field(
        True, description="attention reads both directions' states projected to one state's size"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout between layers, in training")
    recurrent: bool = Field(
        True, description="false: every state is made from zeros and the input alone (AO)"
    )
    initial_state: Literal["zeros", "trainable"] = Field(
        "zeros", description="the encoder's state before the first word"
    )
    inputs: Literal["embedding", "one-hot"] = Field("embedding", description="how words enter")
    embedding: int = Field(32, ge=1, description="size of an embedding")
    decoder_embedding: int | None = Field(
        None, ge=1, description="size of the decoder's embedding; default: that of embedding"
    )
    shared_embedding: bool = Field(
        False, description="one table for the words of both sides, which have one vocabulary"
    )
    one_hot_size: int | None = Field(
        None, ge=1, description="dimensions of one-hot inputs, zero past the words; default: none"
    )
    first_input: Literal["sos", "uniform"] = Field(
        "sos", description="the decoder's first input: <SOS>, or the mean of all words"
    )
    positions: Literal["none", "sinusoidal"] = Field(
        "none", description="what is added to the inputs of both sides"
    )
    time_scale: float = Field(10_000.0, gt=1, description="base of the positions' frequencies")
    amplitude: float = Field(1.0, gt=0, description="factor of the positions")
    rotation: bool = Field(False, description="turn the positions by a random rotation")
    attention: AttentionName = Field("none", description="none, or an attention kind")
    heads: int = Field(1, ge=1, description="attention heads")
    attention_size: int | None = Field(
        None, ge=1, description="size of a query and a key, per head; default: hidden"
    )
    merge: Merge = Field("sum", description="how the heads' contexts become one")
    head_seeds: Listed[int] = Field(
        (), description="draw each head's first weights with a seed of its own (attention=bilinear)"
    )
    attend: Literal["after", "before"] = Field(
        "after",
        description="attend with the new state, or with the old one before the recurrent step",
    )
    focus: Literal["none", "concatenate", "full"] = Field(
        "none",
        description="how the context enters the step (attend=before): beside the word, or"
        " weighted by it unit by unit (full focus)",
    )
    context_layer: bool = Field(False, description="project the context to a state's size")
    readout: Literal["auto", "state", "context", "both", "sum"] = Field(
        "auto",
        description="what the output layer sees; auto: both where attention follows the step",
    )
    readout_layer: Activation = Field("none", description="a hidden layer before the output layer")
    readout_bias: bool = Field(True, description="a bias in the output layer")
    initial_seed: int | None = Field(
        None, ge=0, description="draw the first weights with this seed instead of the run's"
    )
    uniform: float | None = Field(
        None, gt=0, description="draw every parameter from U(±this) instead of its own default"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> EncoderDecoderConfig:
        attending = self.attention != "none"
        if not attending and (self.readout in ("context", "both", "sum") or not self.recurrent):
            what = f"readout={self.readout}" if self.recurrent else "recurrent=false"
            raise ValueError(f"{what} needs an attention, for example attention=dot")
        if self.heads > 1 and not (attending and ATTENTIONS[self.attention].many_heads):
            able = ", ".join(name for name, kind in ATTENTIONS.items() if kind.many_heads)
            raise ValueError(f"heads={self.heads} needs an attention that has heads: {able}")
        if self.attention_size and not (attending and ATTENTIONS[self.attention].sized):
            able = ", ".join(name for name, kind in ATTENTIONS.items() if kind.sized)
            raise ValueError(f"attention_size needs an attention that has one: {able}")
        if not self.recurrent and (self.bidirectional or self.initial_state == "trainable"):
            raise ValueError("recurrent=false has no direction and no initial state to learn")
        self._parts_fit()
        first = self.attend == "before"
        if first and not (attending and self.recurrent):
            raise ValueError("attend=before needs an attention and a recurrent decoder")
        if first != (self.focus != "none"):
            raise ValueError("attend=before goes with focus=concatenate or full, and only it does")
        return self

    def _parts_fit(self) -> None:
        """What snell2021's parts need of each other."""
        if self.context_layer and self.attention == "none":
            raise ValueError("context_layer needs an attention, for example attention=bilinear")
        unseen = self.readout == "state" or (self.readout, self.attend) == ("auto", "before")
        if self.context_layer and unseen:
            raise ValueError("context_layer needs an output layer that sees it: readout=both")
        if self.bridge == "mean" and not self.bidirectional:
            raise ValueError("bridge=mean is of two directions: it needs bidirectional=true")
        if self.head_seeds and self.uniform is not None:
            raise ValueError("head_seeds and uniform both draw the heads' weights: give one")
        if self.dropout and (self.layers == 1 or not self.recurrent):
            raise ValueError("dropout lies between recurrent layers: it needs layers=2 or more")
        kind = None if self.attention == "none" else ATTENTIONS[self.attention]
        wide = self.bidirectional and not self.project_memory
        if kind is not None and kind.needs_equal_sizes and wide:
            raise ValueError(
                f"attention={self.attention} needs project_memory=true: both sides' states must"
                " have one size"
            )
        seedable = kind is not None and issubclass(kind, Bilinear)
        if self.head_seeds and (not seedable or len(self.head_seeds) != self.heads):
            raise ValueError("head_seeds are one seed for each head of attention=bilinear")
        wide = wide or (self.merge == "concatenate" and self.heads > 1)
        if self.readout == "sum" and wide and not self.context_layer:
            raise ValueError("readout=sum needs context_layer=true: the context is too wide")
        alone = self.inputs == "one-hot" or self.first_input == "uniform"
        sizes = self.decoder_embedding in (None, self.embedding)
        if self.shared_embedding and (alone or not sizes):
            raise ValueError("shared_embedding needs embeddings of one size and first_input=sos")
