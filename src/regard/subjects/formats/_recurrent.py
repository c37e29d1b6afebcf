"""A recurrent encoder-decoder as other programs have it, with sizes and a start of its own.

s_t = cells([word; a_{t-1}], s_{t-1})       a is fed beside the word where the program does so
α_t = softmax over the source of score(s_t, m_s),  c_t = Σ_s α_ts m_s
a_t = f(V [s_t; c_t] + v),  logits = W a_t + b
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.attention import ATTENTIONS, Attention
from regard.models.layers.cells import CELLS, RecurrentCell, State
from regard.models.layers.embedding import Embedding
from regard.models.layers.encoder import Encoder
from regard.models.layers.hook_point import HookPoint
from regard.models.layers.positions import Sinusoidal
from regard.models.layers.readout import Readout
from regard.models.parts import Parts
from regard.models.seq2seq import Seq2Seq
from regard.subjects.formats._starts import Start


@dataclass(frozen=True)
class Plan:
    """What a recurrent model of a file is; its attention and its start come beside it."""

    cell: str
    source: tuple[int, int]  # words, size of a vector
    target: tuple[int, int]
    encoder: tuple[int, int, bool]  # size of a state in one direction, layers, both directions
    decoder: tuple[int, int]  # size of a state, layers
    width: int = 0  # of a_t; 0: there is none, and the output layer reads the state
    activation: str = "tanh"
    vector_bias: bool = True  # v above
    bias: bool = True  # b above
    feeds: bool = False

    @property
    def memory(self) -> int:
        """The size of an encoder state as attention reads it."""
        return self.encoder[0] * (1 + self.encoder[2])

    @property
    def members(self) -> int:
        """The vectors in a cell's state: h, or h and c."""
        return len(CELLS[self.cell].state_names)


class Given(Sinusoidal):
    """Positions as a file has them."""

    table: Tensor

    def __init__(self, table: Tensor):
        nn.Module.__init__(self)
        self.register_buffer("table", table, persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """(stop - start, size)"""
        if stop > len(self.table):
            raise RegardError(f"A sentence has {stop} words, the model knows {len(self.table)}.")
        return self.table[start:stop]


class Recurrent(EncoderDecoder):
    """Regard's own encoder-decoder, whose parts have the sizes that a file says."""

    positions: Given | None
    encoder: Encoder
    decoder: nn.ModuleList

    def __init__(self, plan: Plan, attention: Attention | None, start: Start):
        Seq2Seq.__init__(self)  # the parts are not built by settings
        hidden, layers = plan.decoder
        kind = CELLS[plan.cell]
        self.config = EncoderDecoderConfig(cell=plan.cell, hidden=hidden, layers=layers)
        self.per_layer, self.feeds, self.positions, self.focus = (
            plan.members,
            plan.feeds,
            None,
            None,
        )
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_states = HookPoint("encoder.states", "encoder")
        self.target_states = HookPoint("decoder.states", "decoder")
        self.source_embedding = Embedding(*plan.source)
        self.target_embedding = Embedding(*plan.target)
        self.encoder = Encoder(kind, plan.source[1], *plan.encoder)
        fed = (plan.width or hidden) if plan.feeds else 0
        inputs = [plan.target[1] + fed] + [hidden] * (layers - 1)
        self.decoder = nn.ModuleList(kind(size, hidden) for size in inputs)
        self.bridge, self.memory, self.start = nn.ModuleList(), nn.Identity(), start
        self.attention, self.has_lexical_probe = attention, attention is not None
        self.readout = Readout(
            hidden, 0 if attention is None else plan.memory, plan.target[0], plan.width, plan.bias,
            plan.activation if plan.width else "none",
        )  # fmt: skip
        if self.readout.hidden is not None and not plan.vector_bias:
            self.readout.hidden.register_parameter("bias", None)
        self.eval()

    def begin(self, finals: State) -> State:
        """As the program does it."""
        first: State = self.start(finals)
        return first

    @torch.no_grad()
    def add_positions(self, table: Embedding, positions: Tensor) -> None:
        """Positions (count, size) that both sides add, and the words' vectors with their factor."""
        if self.positions is not None and self.positions.table.shape != positions.shape:
            raise RegardError(
                "Words of the two sides have vectors of two sizes, to which positions are added."
                " That is not known here."
            )
        table.weight.mul_(math.sqrt(table.size))
        self.positions = Given(positions)

    def parts(self) -> Parts:
        """See `NamedParts`; what the decoder starts from is made on the encoder's side."""
        found = dict(super().parts())
        return {**found, "encoder": [*found["encoder"], self.start]}

    def cells(self) -> dict[str, RecurrentCell]:
        """See `NamedParts`; units of two sizes do not share numbers."""
        return {name: replace(cell, shares=()) for name, cell in super().cells().items()}


def attend(kind: str, plan: Plan, bias: bool = False, size: int | None = None) -> Attention:
    """An attention of the decoder's last layer: `dot`, `bilinear`, `additive`, or `key`.

    `key` is bilinear with the matrix on the other side, s_t · (W m_s).
    """
    hidden, layers = plan.decoder
    made = Attention if kind == "key" else ATTENTIONS[kind]
    found = made(hidden, 1, size, "sum", plan.memory, layers - 1)
    if kind == "key":
        found.key = nn.Linear(plan.memory, hidden, bias=False)
    if found.query is not None and not bias:
        found.query.register_parameter("bias", None)
    return found
