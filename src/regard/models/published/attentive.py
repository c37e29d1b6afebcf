"""g2p_en 1.0.1: spelling to phonemes with additive attention, which feeds back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models import Memory, Output, Site
from regard.models.layers.attention import Additive, join_steps
from regard.models.layers.cells import RecurrentCell, RennGRU, State
from regard.models.layers.embedding import pass_point
from regard.models.layers.encoder import Encoder, Gates
from regard.models.layers.hook_point import HookPoint
from regard.models.parts import Parts, matrices_of
from regard.models.published.numbering import Numbering, Renumbered
from regard.models.published.speller import NEVER, Published, Weights, fill
from regard.models.seq2seq import OutputLayer
from regard.tasks.batch import mask

WRAPPER = "rnn.attention_wrapper."  # where the published file keeps the decoder's arrays


class WideAdditive(Additive):
    """a_ts = v · tanh(Wq s_t + Wm m_s) without a bias; states and memory differ in size."""

    def make(self) -> None:
        """Wq without a bias, Wm, and v."""
        super().make()
        self.query = nn.Linear(self.hidden, self.size, bias=False)


class AttentiveSpeller(Published):
    """g2p_en 1.0.1: a two-way GRU, and a decoder that attention alone tells of the source.

    m = [ahead; back] (batch, source, 2·hidden). At step t, from s_0 = 0 and a_0 = 0:

        s_t = GRU([one-hot(word); a_{t-1}], s_{t-1})     [r, u] = σ(…), c = tanh(W x + U(r∘s) + b)
        score_ts = v · tanh(Wq s_t + Wm m_s),  α = softmax over the source,  c_t = Σ_s α_ts m_s
        a_t = Wa [s_t; c_t],  logits = Wd a_t + b

    Words: their `P`, `E`, `U` are `<PAD>`, `<EOS>`, `<unk>`. Their phoneme 0, called `<PAD>`, is
    the decoder's first input and so is Regard's `<SOS>`; their phoneme 1 is `<EOS>`. Regard's
    `<SOS>` among the letters and `<PAD>` among the phonemes they do not have: zeros as inputs,
    never chosen as outputs.
    """

    def __init__(self, weights: Weights, letters: Numbering, phonemes: Numbering):
        super().__init__()
        self.source_vocabulary, self.target_vocabulary = letters.vocabulary, phonemes.vocabulary
        inputs, outputs = letters.count, phonemes.count
        hidden, size = weights[f"{WRAPPER}bahdanau_attention.query_layer.kernel"].shape
        width = weights["dense.kernel"].shape[0]
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.target_vectors = HookPoint("decoder.embedding", "decoder")
        self.source_embedding = Renumbered(torch.eye(inputs), letters, learned=False)
        self.target_embedding = Renumbered(torch.eye(outputs), phonemes, learned=False)
        self.encoder = Encoder(RennGRU, inputs, hidden, layers=1, both=True)
        self.decoder = RennGRU(outputs + width, hidden)
        self.attention = WideAdditive(hidden, size=size, memory=2 * hidden)
        self.attention_vector = nn.Linear(3 * hidden, width, bias=False)
        self.output = nn.Linear(width, outputs)
        self._fill(weights)

    def _fill(self, weights: Weights) -> None:
        attention = f"{WRAPPER}bahdanau_attention."
        fill_gru(self.encoder.ahead[0], weights, "bidirectional_rnn.fw.gru_cell")
        fill_gru(self.encoder.back[0], weights, "bidirectional_rnn.bw.gru_cell")
        fill_gru(self.decoder, weights, f"{WRAPPER}gru_cell")
        fill(self.attention.query.weight, weights[f"{attention}query_layer.kernel"].T)
        fill(self.attention.key.weight, weights["memory_layer.kernel"].T)
        fill(self.attention.v, weights[f"{attention}attention_v"][None])
        fill(self.attention_vector.weight, weights[f"{WRAPPER}attention_layer.kernel"].T)
        fill(self.output.weight, weights["dense.kernel"].T)
        fill(self.output.bias, weights["dense.bias"])

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """Read the letters both ways; nothing but the states goes on to the decoder."""
        x = pass_point(self.source_vectors, self.source_embedding(source))
        states, _ = self.encoder(x, lengths, gates)
        nothing = states.new_zeros(len(source), self.attention_vector.out_features)
        initial = (*self.decoder.initial(len(source)), nothing)
        words = mask(lengths, source.shape[1])
        return Memory(states, words, initial, self.attention.remember(states), gates=gates)

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One decoder step; the state is s (batch, hidden) and a (batch, width)."""
        state, _, _ = self._step(memory, words, state)
        return self._logits(state[1]), state

    def _step(self, memory: Memory, words: Tensor, state: State) -> tuple[State, Site, Gates]:
        x = self.target_vectors(self.target_embedding.look_up(words[:, None]))[:, 0]
        x = torch.cat([x, state[1]], dim=1)
        (s,), gates = self.decoder.step(self.decoder.project(x), state[:1])
        context, site = self.attention(s[:, None], *memory.prepared, memory.mask)
        return (s, self.attention_vector(torch.cat([s, context[:, 0]], dim=1))), site, gates

    def _logits(self, vectors: Tensor) -> Tensor:
        """(…, width) -> (…, vocab)"""
        numbering = self.target_embedding.numbering
        weight = numbering.ours(self.output.weight, 0.0)
        return nn.functional.linear(vectors, weight, numbering.ours(self.output.bias, NEVER))

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """All decoder steps, one by one, because each is fed the attention of the one before."""
        state = memory.initial
        states, vectors, sites, seen = [], [], [], []
        for words in inputs.unbind(1):
            state, site, step_gates = self._step(memory, words, state)
            states.append(state[0])
            vectors.append(state[1])
            sites.append(site)
            seen.append(step_gates)
        if memory.gates is not None:
            for name in self.decoder.gate_effects:
                memory.gates[f"decoder.gates.0.{name}"] = torch.stack(
                    [g[name] for g in seen], dim=1
                )
        logits = self._logits(torch.stack(vectors, dim=1))
        site = join_steps(sites)
        decoder_states = torch.stack(states, dim=1)
        attended = {"attention": site}
        return Output(logits, memory.states, decoder_states, attended, memory.gates or {})

    def parts(self) -> Parts:
        """See `NamedParts`."""
        return {
            "encoder": [self.source_embedding, self.encoder],
            "encoder.embedding": [self.source_embedding],
            **matrices_of("encoder", self.encoder),
            "decoder.embedding": [self.target_embedding],
            **matrices_of("decoder", self.decoder),
            "attention": [self.attention],
            "output": [self.attention_vector, self.output],
        }

    def cells(self) -> dict[str, RecurrentCell]:
        """See `NamedParts`."""
        read = self.attention_vector.weight[:, : self.decoder.hidden]
        columns = (self.decoder.weight_hh, read, *self.attention.query_columns)
        gates = (f"decoder.gates.0.{gate}" for gate in self.decoder.gate_effects)
        decoder = RecurrentCell(self.decoder, columns, recorded=("decoder.states", *gates))
        return {**self.encoder.cells(), "decoder.0": decoder}

    def output_layer(self) -> OutputLayer:
        """What stands between [s_t; c_t] and the logits: Wd Wa, b, and the columns of each part.

        No nonlinearity comes between the two matrices, so their product is the readout.
        (vocab, hidden + 2·hidden), (vocab,)
        """
        numbering = self.target_embedding.numbering
        weight = numbering.ours(self.output.weight @ self.attention_vector.weight, 0.0)
        hidden, width = self.decoder.hidden, weight.shape[1]
        parts = {"state": (0, hidden), "context": (hidden, width)}
        return OutputLayer(weight, numbering.ours(self.output.bias, NEVER), parts)


def fill_gru(cell: nn.Module, weights: Weights, name: str) -> None:
    """TensorFlow's GRUCell into `gru-renn`, whose equations are the same.

    There a kernel (inputs + hidden, blocks·hidden) meets [x; h] from the right, the gates [r, u] in
    one and the candidate in another; here W and U are apart, transposed, with r, u, c in turn.
    """
    assert isinstance(cell, RennGRU)
    both = [weights[f"{name}.gates.kernel"], weights[f"{name}.candidate.kernel"]]
    kernel = torch.cat(both, dim=1)  # (inputs + hidden, 3·hidden)
    inputs = kernel.shape[0] - cell.hidden
    fill(cell.weight_ih, kernel[:inputs].T)
    fill(cell.weight_hh, kernel[inputs:].T)
    fill(cell.bias_ih, torch.cat([weights[f"{name}.{p}.bias"] for p in ("gates", "candidate")]))
