"""Small models as other programs write them: their names, their equations, one sentence at a time.

Written out in plain torch, without anything of Regard's, so that doors can be held against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SOURCE, TARGET = 30, 32  # words of the two sides
Said = tuple[Tensor, Tensor | None]  # logits (target, words), weights (target, source)


def named(**parts: Any) -> nn.Module:
    """A module with nothing but parts."""
    module = nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    return module


class Program(nn.Module):
    """A model with a way to run it on one sentence."""

    def draw(self, seed: int = 0) -> Program:
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            parameter.data.uniform_(-0.4, 0.4, generator=generator)
        return self.eval()

    def say(self, source: Tensor, fed: Tensor) -> Said:
        raise NotImplementedError


def run_cells(cells: nn.ModuleList, x: Tensor, state: list[Any]) -> Tensor:
    """One step through cells in layers; the state is changed in place."""
    for layer, cell in enumerate(cells):
        state[layer] = cell(x, state[layer])
        x = state[layer][0] if isinstance(state[layer], tuple) else state[layer]
    return x


def step_of(rnn: nn.RNNBase) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
    """One step of a recurrent module of torch."""

    def step(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        out, state = rnn(x[None], state)
        return out[0], state

    return step


class OpenNMT(Program):
    """RNNEncoder, global attention, and either of the two recurrent decoders."""

    def __init__(self, kind: str = "LSTM", both: bool = True, attention: str = "general",
                 feed: bool = True, bridge: bool = False,
                 positions: Tensor | None = None):  # fmt: skip
        super().__init__()
        size, hidden, layers = 10, 12, 2
        self.kind, self.feed, self.how, self.both = kind, feed, attention, both
        one = hidden // (1 + both)
        tables = [nn.Embedding(n, size, padding_idx=0) for n in (SOURCE, TARGET)]
        self.encoder, self.decoder = (
            named(embeddings=named(make_embedding=named(emb_luts=nn.ModuleList([table]))))
            for table in tables
        )
        self.tables, self.positions = tables, positions
        self.encoder.rnn = getattr(nn, kind)(size, one, layers, bidirectional=both)
        if bridge:
            total = one * layers
            self.encoder.bridge = nn.ModuleList(
                nn.Linear(total, total) for _ in range(1 + (kind == "LSTM"))
            )
        if feed:
            sizes = [size + hidden, *[hidden] * (layers - 1)]
            cells = nn.ModuleList(getattr(nn, f"{kind}Cell")(n, hidden) for n in sizes)
            self.decoder.rnn = named(layers=cells)
        else:
            self.decoder.rnn = getattr(nn, kind)(size, hidden, layers)
        if attention != "none":
            mlp = attention == "mlp"
            self.decoder.attn = named(linear_out=nn.Linear(2 * hidden, hidden, bias=mlp))
            if attention == "general":
                self.decoder.attn.linear_in = nn.Linear(hidden, hidden, bias=False)
            if mlp:
                self.decoder.attn.linear_query = nn.Linear(hidden, hidden)
                self.decoder.attn.linear_context = nn.Linear(hidden, hidden, bias=False)
                self.decoder.attn.v = nn.Linear(hidden, 1, bias=False)
        self.generator = nn.Linear(hidden, TARGET)

    def embed(self, words: Tensor, side: int) -> Tensor:
        x: Tensor = self.tables[side](words)
        if self.positions is not None:
            x = x * math.sqrt(x.shape[1]) + self.positions[: len(words)]
        return x

    def say(self, source: Tensor, fed: Tensor) -> Said:
        memory, last = self.encoder.rnn(self.embed(source, 0))
        members = last if isinstance(last, tuple) else (last,)
        if hasattr(self.encoder, "bridge"):
            members = tuple(
                torch.relu(bridge(x.reshape(-1, bridge.in_features))).view(x.shape)
                for bridge, x in zip(self.encoder.bridge, members, strict=True)
            )
        if self.both:
            members = tuple(torch.cat([x[0::2], x[1::2]], dim=1) for x in members)
        lstm, vector, logits, weights = self.kind == "LSTM", torch.zeros(12), [], []
        if self.feed:
            state: Any = [tuple(x[n] for x in members) if lstm else members[0][n] for n in (0, 1)]
        else:
            state, step = members if lstm else members[0], step_of(self.decoder.rnn)
        for x in self.embed(fed, 1):
            if self.feed:
                h = run_cells(self.decoder.rnn.layers, torch.cat([x, vector]), state)
            else:
                h, state = step(x, state)
            vector, looked = self.look(h, memory)
            weights.append(looked)
            logits.append(self.generator(vector))
        return torch.stack(logits), None if weights[0] is None else torch.stack(weights)

    def look(self, h: Tensor, memory: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.how == "none":
            return h, None
        attn = self.decoder.attn
        if self.how == "mlp":
            scores = attn.v(torch.tanh(attn.linear_query(h) + attn.linear_context(memory)))[:, 0]
        else:
            scores = memory @ (attn.linear_in(h) if self.how == "general" else h)
        weights = torch.softmax(scores, dim=0)
        vector = attn.linear_out(torch.cat([weights @ memory, h]))
        return (vector if self.how == "mlp" else torch.tanh(vector)), weights


class JoeyNMT(Program):
    """RecurrentEncoder, RecurrentDecoder; how it starts: bridge, last, zero."""

    def __init__(self, kind: str = "GRU", attention: str = "bahdanau", feed: bool = True,
                 start: str = "bridge", hidden: int = 14, layers: int = 2):  # fmt: skip
        super().__init__()
        size, one = 10, 12
        self.kind, self.feed, self.start, self.hidden, self.layers = (
            kind,
            feed,
            start,
            hidden,
            layers,
        )
        self.src_embed = named(lut=nn.Embedding(SOURCE, size, padding_idx=1))
        self.trg_embed = named(lut=nn.Embedding(TARGET, size, padding_idx=1))
        self.encoder = named(rnn=getattr(nn, kind)(size, one, 2, bidirectional=True))
        look = named(key_layer=nn.Linear(2 * one, hidden, bias=False))
        if attention == "bahdanau":
            look.query_layer = nn.Linear(hidden, hidden, bias=False)
            look.energy_layer = nn.Linear(hidden, 1, bias=False)
        self.decoder = named(
            rnn=getattr(nn, kind)(size + hidden * feed, hidden, layers),
            att_vector_layer=nn.Linear(hidden + 2 * one, hidden),
            output_layer=nn.Linear(hidden, TARGET, bias=False),
            attention=look,
        )
        if start == "bridge":
            self.decoder.bridge_layer = nn.Linear(2 * one, hidden)

    def say(self, source: Tensor, fed: Tensor) -> Said:
        memory, last = self.encoder.rnn(self.src_embed.lut(source))
        final = last[0] if isinstance(last, tuple) else last
        top = torch.cat([final[-2], final[-1]])
        ways = {"bridge": lambda: torch.tanh(self.decoder.bridge_layer(top)),
                "last": lambda: top[: self.hidden],
                "zero": lambda: torch.zeros(self.hidden)}  # fmt: skip
        h = ways[self.start]().expand(self.layers, -1).contiguous()
        state, step = (h, h) if self.kind == "LSTM" else h, step_of(self.decoder.rnn)
        vector, logits, weights, look = torch.zeros(self.hidden), [], [], self.decoder.attention
        keys = look.key_layer(memory)
        for x in self.trg_embed.lut(fed):
            s, state = step(torch.cat([x, vector]) if self.feed else x, state)
            if hasattr(look, "energy_layer"):
                scores = look.energy_layer(torch.tanh(look.query_layer(s) + keys))[:, 0]
            else:
                scores = keys @ s
            weights.append(torch.softmax(scores, dim=0))
            both = torch.cat([s, weights[-1] @ memory])
            vector = torch.tanh(self.decoder.att_vector_layer(both))
            logits.append(self.decoder.output_layer(vector))
        return torch.stack(logits), torch.stack(weights)


class Fairseq(Program):
    """LSTMEncoder, LSTMDecoder."""

    def __init__(self, one: int = 6, hidden: int = 14, both: bool = True, attention: bool = True,
                 output: int = 10, shared: bool = False, layers: int = 2):  # fmt: skip
        super().__init__()
        size, memory = 10, one * (1 + both)
        self.hidden, self.layers = hidden, layers
        table = nn.Embedding(TARGET, size, padding_idx=1)
        self.encoder = named(embed_tokens=nn.Embedding(SOURCE, size, padding_idx=1),
                             lstm=nn.LSTM(size, one, layers, bidirectional=both))  # fmt: skip
        sizes = [size + hidden, *[hidden] * (layers - 1)]
        self.decoder = named(
            embed_tokens=table, layers=nn.ModuleList(nn.LSTMCell(n, hidden) for n in sizes)
        )
        if memory != hidden:
            self.decoder.encoder_hidden_proj = nn.Linear(memory, hidden)
            self.decoder.encoder_cell_proj = nn.Linear(memory, hidden)
        if attention:
            self.decoder.attention = named(
                input_proj=nn.Linear(hidden, memory, bias=False),
                output_proj=nn.Linear(hidden + memory, hidden, bias=False),
            )
        if output != hidden:
            self.decoder.additional_fc = nn.Linear(hidden, output)
        if not shared:
            self.decoder.fc_out = nn.Linear(output, TARGET)

    def say(self, source: Tensor, fed: Tensor) -> Said:
        decoder, encoder = self.decoder, self.encoder
        memory, last = encoder.lstm(encoder.embed_tokens(source))
        if encoder.lstm.bidirectional:
            last = tuple(torch.cat([x[0::2], x[1::2]], dim=1) for x in last)
        h, c = last
        if hasattr(decoder, "encoder_hidden_proj"):
            h, c = decoder.encoder_hidden_proj(h), decoder.encoder_cell_proj(c)
        state: list[Any] = [(h[n], c[n]) for n in range(self.layers)]
        vector, logits, weights = torch.zeros(self.hidden), [], []
        for x in decoder.embed_tokens(fed):
            vector = run_cells(decoder.layers, torch.cat([x, vector]), state)
            if hasattr(decoder, "attention"):
                look = torch.softmax(memory @ decoder.attention.input_proj(vector), dim=0)
                both = torch.cat([look @ memory, vector])
                vector = torch.tanh(decoder.attention.output_proj(both))
                weights.append(look)
            out = decoder.additional_fc(vector) if hasattr(decoder, "additional_fc") else vector
            shared = not hasattr(decoder, "fc_out")
            logits.append(decoder.embed_tokens.weight @ out if shared else decoder.fc_out(out))
        return torch.stack(logits), torch.stack(weights) if weights else None


def sines(count: int, size: int, first: int = 0, in_turns: bool = True) -> Tensor:
    """Positions, number by number."""
    table = torch.zeros(count, size)
    half = size // 2
    for place in range(count):
        for unit in range(half):
            rate = 10000 ** (-2 * unit / size) if in_turns else 10000 ** (-unit / (half - 1))
            angle = (place + first) * rate
            at = (2 * unit, 2 * unit + 1) if in_turns else (unit, half + unit)
            table[place, at[0]], table[place, at[1]] = math.sin(angle), math.cos(angle)
    return table


class Transformer:
    """Any program's Transformer: its tensors by name, and how they are put together.

    `names` says what a side's layers, attentions, maps, norms and feed-forward maps are called.
    """

    def __init__(self, names: dict[str, Any], heads: int = 3, pre: bool = True,
                 activation: Callable[[Tensor], Tensor] = torch.relu, scale: bool = True,
                 epsilon: float = 1e-6, positions: Tensor | None = None, biases: bool = True,
                 final: bool = True, readout_bias: bool = False):  # fmt: skip
        self.names, self.heads, self.pre, self.act = names, heads, pre, activation
        self.scale, self.epsilon, self.final = scale, epsilon, final
        self.positions = torch.zeros(200, 12) if positions is None else positions
        self.tensors: dict[str, Tensor] = {}
        generator = torch.Generator().manual_seed(0)

        def draw(name: str, *shape: int, bias: bool = True) -> None:
            self.tensors[f"{name}.weight"] = torch.rand(shape, generator=generator) * 0.8 - 0.4
            if bias:
                self.tensors[f"{name}.bias"] = torch.rand(shape[0], generator=generator) - 0.5

        for side, words in (("encoder", SOURCE), ("decoder", TARGET)):
            own = names[side]
            draw(own["table"], words, 12, bias=False)
            if final:
                draw(own["final"], 12)
            for layer in range(2):
                where = own["layer"].format(layer)
                for part in own["attentions"]:
                    for one in names["maps"]:
                        draw(f"{where}.{part}.{one}", 12, 12, bias=biases)
                for norm in own["norms"]:
                    draw(f"{where}.{norm}", 12)
                draw(f"{where}.{names['feed'][0]}", 20, 12)
                draw(f"{where}.{names['feed'][1]}", 12, 20)
        draw(names["output"], TARGET, 12, bias=readout_bias)

    def linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(
            x, self.tensors[f"{name}.weight"], self.tensors.get(f"{name}.bias")
        )

    def norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return functional.layer_norm(x, (12,), weight, bias, self.epsilon)

    def look(self, x: Tensor, y: Tensor, name: str, causal: bool) -> tuple[Tensor, Tensor]:
        q, k, v = (self.linear(z, f"{name}.{m}").view(len(z), self.heads, -1).transpose(0, 1)
                   for z, m in zip((x, y, y), self.names["maps"], strict=False))  # fmt: skip
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
        if causal:
            scores += torch.full(scores.shape[1:], -math.inf).triu(1)
        weights = torch.softmax(scores, dim=2)
        mixed = (weights @ v).transpose(0, 1).flatten(1)
        return self.linear(mixed, f"{name}.{self.names['maps'][3]}"), weights

    def side(self, words: Tensor, side: str, memory: Tensor | None) -> tuple[Tensor, Any]:
        own, weights = self.names[side], None
        x = self.tensors[f"{own['table']}.weight"][words]
        x = x * math.sqrt(12) if self.scale else x
        x = x + self.positions[: len(words)]
        for layer in range(2):
            where = own["layer"].format(layer)
            for number, norm in enumerate(own["norms"]):
                y = self.norm(x, f"{where}.{norm}") if self.pre else x
                if number < len(own["attentions"]):
                    name, seen = (
                        f"{where}.{own['attentions'][number]}",
                        y if number == 0 else memory,
                    )
                    y, weights = self.look(y, seen, name, side == "decoder" and number == 0)
                else:
                    inner = self.act(self.linear(y, f"{where}.{self.names['feed'][0]}"))
                    y = self.linear(inner, f"{where}.{self.names['feed'][1]}")
                x = x + y if self.pre else self.norm(x + y, f"{where}.{norm}")
        return (self.norm(x, own["final"]) if self.final else x), weights

    def say(self, source: Tensor, fed: Tensor) -> Said:
        memory, _ = self.side(source, "encoder", None)
        states, weights = self.side(fed, "decoder", memory)  # of its last layer, all heads
        return self.linear(states, self.names["output"]), weights
