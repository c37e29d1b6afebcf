"""Any PyTorch module: attentions and cells found by type, or at named places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard import RegardError
from regard.tasks import Batch, collate

BATCHES = [
    collate([[3, 4, 5, 2], [6, 2], [7, 8, 2]], [[3, 4, 5, 6, 2], [9, 2], [7, 8, 2]]),
    collate([[3, 2], [4, 2]], [[5, 2], [6, 2]]),  # as many rows as words
]


class Plain(nn.Module):
    """`torch.nn.Transformer` between two tables and an output layer."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 16)
        self.body = nn.Transformer(16, 4, 2, 2, 32, batch_first=batch_first)
        self.out = nn.Linear(16, 10)

    def forward(self, source: Tensor, inputs: Tensor, padding: Tensor) -> Tensor:
        x, y = self.words(source), self.words(inputs)
        if not self.body.batch_first:
            x, y = x.transpose(0, 1), y.transpose(0, 1)
        causal = nn.Transformer.generate_square_subsequent_mask(inputs.shape[1])
        states = self.body(x, y, tgt_mask=causal, src_key_padding_mask=padding,
                           memory_key_padding_mask=padding)  # fmt: skip
        return self.out(states if self.body.batch_first else states.transpose(0, 1))


def call(net: nn.Module, batch: Batch) -> Any:
    return net(batch.source, batch.inputs, ~batch.source_mask)


@pytest.fixture
def plain() -> Plain:
    torch.manual_seed(0)
    return Plain().eval()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("batch_first", [True, False])
def test_packed_attentions_are_found_by_type(batch_first: bool) -> None:
    torch.manual_seed(0)
    net = Plain(batch_first).eval()
    subject = regard.module(net, call, readout="out")
    recording = regard.record(subject, batches=BATCHES)
    assert list(recording.metadata.sites) == [
        "encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross", "decoder.1.self",
        "decoder.1.cross",
    ]  # fmt: skip
    seen: list[Tensor] = []
    layer = net.body.decoder.layers[1].multihead_attn
    attend = layer.forward

    def spy(*args: Any, **kwargs: Any) -> Any:
        out = attend(*args, **{**kwargs, "need_weights": True, "average_attn_weights": False})
        seen.append(out[1])
        return out

    layer.forward = spy  # type: ignore[method-assign]
    logits = call(net, BATCHES[0])
    mask = BATCHES[0].target_mask.numpy()
    weights = recording["decoder.1.cross.weights"][:3].transpose(0, 2, 1, 3)[mask]
    np.testing.assert_allclose(weights, seen[0].detach().transpose(1, 2)[mask], atol=1e-5)
    made = recording["decoder.states"] @ recording["readout"].T + recording["readout.bias"]
    np.testing.assert_allclose(made[:3][mask], logits.detach()[mask], atol=1e-5)
    whole = np.zeros((5, 5, 10), np.float32)
    whole[:3] = logits.detach()
    whole[3:, :2] = call(net, BATCHES[1]).detach()
    assert recording.check(logits=whole)["logits"] < 1e-4


def test_what_a_subject_can_do_a_module_can(plain: Plain) -> None:
    subject = regard.module(plain, call, readout="out")
    pairs = [([3, 4, 5, 2], [6, 7, 2]), ([8, 2], [9, 2]), ([4, 4, 2], [6, 2])]
    found = regard.ablate(subject, pairs=pairs, site="decoder.1.cross", head=1)
    assert found.estimates()["baseline"].n == 1
    saliency = regard.saliency(subject, pairs=pairs)
    assert saliency.estimates()["finite differences"].mean < 0.05
    assert regard.inspect(subject, "entropy", pairs=pairs, sites="cross").estimates()
    assert regard.heatmaps(subject, block="out").estimates()
    assert regard.inspect(subject, "probe", pairs=pairs * 9, splits=1, control=False).estimates()


class Tutorial(nn.Module):
    """Additive attention before each step, with keys made anew and padding attended to."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.say = nn.Embedding(10, 8), nn.Embedding(10, 8)
        self.encoder = nn.GRU(8, 8, batch_first=True)
        self.attention = Bahdanau()
        self.decoder = nn.GRU(16, 8, batch_first=True)
        self.out = nn.Linear(8, 10)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        keys, state = self.encoder(self.read(source))
        logits = []
        for t in range(inputs.shape[1]):
            context, _ = self.attention(state.transpose(0, 1), keys)
            x = torch.cat([self.say(inputs[:, t : t + 1]), context], dim=2)
            out, state = self.decoder(x, state)
            logits.append(self.out(out))
        return torch.cat(logits, dim=1)


class Bahdanau(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = torch.softmax(scores.transpose(1, 2), dim=-1)
        return weights @ keys, weights


SITE = {
    "attention": regard.at(q="attention.Wa", k="attention.Ua", vector="attention.Va",
                           weights="attention[1]", lag=1, masked=False)
}  # fmt: skip


def test_additive_attention_with_lag_padding_and_keys_of_every_step() -> None:
    torch.manual_seed(0)
    net = Tutorial().eval()
    recording = regard.record(regard.module(net, sites=SITE), batches=BATCHES, gates=True)
    site = recording.metadata.sites["attention"]
    assert (site.lag, site.masked, site.score) == (1, False, "additive")
    rows = recording["attention.weights"].sum(axis=3)[:, 0]
    np.testing.assert_allclose(rows, recording["decoder.mask"], atol=1e-5)
    assert recording.check()["attention, rows"] < 1e-5
    assert recording.inspect("breakdown", top=2).estimates()
    # The decoder's gates by the equations of `torch.nn.GRU`, for the first step of one sample.
    with torch.no_grad():
        keys, state = net.encoder(net.read(BATCHES[0].source[:1]))
        context, _ = net.attention(state.transpose(0, 1), keys)
        x = torch.cat([net.say(BATCHES[0].inputs[:1, :1]), context], 2)[0, 0]
        w, u = net.decoder.weight_ih_l0, net.decoder.weight_hh_l0
        total = w @ x + net.decoder.bias_ih_l0 + u @ state[0, 0] + net.decoder.bias_hh_l0
    np.testing.assert_allclose(
        recording["decoder.gates.0.update"][0, 0], torch.sigmoid(total[8:16]), atol=1e-5
    )


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gates_of_layers_that_read_both_ways(kind: type[nn.RNNBase]) -> None:
    from regard.subjects.modules._found import _run, gates_of

    torch.manual_seed(0)
    layer = kind(4, 3, num_layers=2, bidirectional=True, batch_first=True)
    x = torch.randn(2, 5, 4)
    with torch.no_grad():
        gates = gates_of(layer, x, None)
        assert {name.split(".")[1] for name in gates} == {"ahead", "back"} and "1.back" in str(
            gates
        )
        ahead, _ = _run(
            (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0), kind, x,
            [None, None],
        )  # fmt: skip
        one = kind(4, 3, batch_first=True)
        one.load_state_dict({n: p for n, p in layer.state_dict().items() if n.endswith("l0")})
        np.testing.assert_allclose(ahead, one(x)[0], atol=1e-6)


def test_a_module_that_attends_otherwise_is_refused(plain: Plain) -> None:
    class Odd(nn.MultiheadAttention):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            out, weights = super().forward(*args, **kwargs)
            return 2 * out, weights

    plain.body.decoder.layers[1].multihead_attn = Odd(16, 4, batch_first=True).eval()
    with pytest.raises(RegardError, match="worked out from queries, keys and values"):
        regard.record(regard.module(plain, call), batches=BATCHES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": {"a": regard.at(q="attention.Wx", k="attention.Ua")}}, "no submodule"),
        ({"sites": {"a": regard.at(heads=2)}}, "needs q and k, or weights"),
        ({"sites": {"a": "attention"}}, "is not a site"),
        ({"places": {"encoder.state": "encoder"}}, "no place 'encoder.state'"),
        ({"specials": {"padding": 0}}, "no special word 'padding'"),
        ({"pieces": "+"}, "no marker of pieces"),
        ({"readout": "outt"}, "no linear submodule 'outt'"),
    ],
)
def test_wrong_words_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        regard.module(Tutorial(), **options)
    with pytest.raises(RegardError, match="Give both q and k"):
        regard.at(q="a")
