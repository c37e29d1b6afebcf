"""What once gave wrong numbers without a word is right now, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard import RegardError, record
from regard.instruments.words._subwords import number_pieces
from regard.tasks import Batch, Vocabulary, collate

RNG = np.random.default_rng(0)
BATCHES = [collate([[3, 4, 5, 2], [6, 2], [7, 8, 2]], [[3, 4, 5, 6, 2], [9, 2], [7, 8, 2]])]


def arrays(**changes: Any) -> dict[str, Any]:
    made = {
        "encoder.states": RNG.normal(size=(4, 5, 8)),
        "encoder.words": RNG.integers(3, 9, size=(4, 5)),
        "decoder.states": RNG.normal(size=(4, 3, 8)),
        "decoder.words": RNG.integers(3, 9, size=(4, 3)),
        **changes,
    }
    return made


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def test_1_a_vocabulary_that_is_one_word_short() -> None:
    from regard.models.transformer import Transformer, TransformerConfig

    model = Transformer(TransformerConfig(hidden=8, layers=1, heads=2, feedforward=8), 10, 11)
    short = Vocabulary.of("abcdefg")  # ten words, of eleven
    with pytest.raises(RegardError, match="chooses among 11 words, but the target vocabulary"):
        record(model, batches=BATCHES, vocabularies=(short, short))


class Even(nn.Module):
    """States of one size on both sides, and no attention."""

    time_first = False

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 8)
        self.encoder = nn.GRU(8, 8, batch_first=not self.time_first)
        self.decoder = nn.GRU(8, 8, batch_first=not self.time_first)
        self.out = nn.Linear(8, 10)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        _, state = self.encoder(self.words(source))
        return self.out(self.decoder(self.words(inputs), state)[0])


def test_2_no_attention_is_invented() -> None:
    at = {"encoder.states": "encoder", "decoder.states": "decoder"}
    assert not record(Even(), at=at, batches=BATCHES).metadata.sites
    assert not record(regard.module(Even()), batches=BATCHES).metadata.sites


class Many(Even):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Module()
        self.attention.q_proj, self.attention.k_proj = nn.Linear(8, 8), nn.Linear(8, 8)
        self.attention.num_heads = 2  # type: ignore[assignment]

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        keys, state = self.encoder(self.words(source))
        states, _ = self.decoder(self.words(inputs), state)
        self.attention.q_proj(states), self.attention.k_proj(keys)
        return self.out(states)


def test_3_projections_of_many_heads_are_not_one_head() -> None:
    at = {"queries": "attention.q_proj", "keys": "attention.k_proj"}
    with pytest.raises(RegardError, match="an attention with 2 heads"):
        record(Many(), at=at, batches=BATCHES)
    site = regard.at(q="attention.q_proj", k="attention.k_proj", heads=2, scale=0.5)
    recording = record(regard.module(Many(), sites={"decoder.0.cross": site}), batches=BATCHES)
    assert recording.shape("decoder.0.cross.weights") == (3, 2, 5, 4)
    assert recording.metadata.sites["decoder.0.cross"].scale == 0.5


def test_4_time_first_is_decided_once_for_all_batches() -> None:
    class Turned(Even):
        time_first = True

    torch.manual_seed(0)
    net, wanted = Turned(), Even()
    wanted.load_state_dict(net.state_dict())
    square = collate([[3, 4], [5, 2]], [[3, 2], [4, 2]])  # as wide as it has rows

    def turned(module: nn.Module, batch: Batch) -> Tensor:
        return module(batch.source.T, batch.inputs.T).transpose(0, 1)

    ours = record(regard.module(net, turned), batches=[square, *BATCHES])
    theirs = record(regard.module(wanted), batches=[square, *BATCHES])
    for name in ("encoder.states", "decoder.states", "predictions"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6)


def test_5_readouts_of_another_space_are_refused(tiny: Callable[..., Any]) -> None:
    subject = regard.hugging_face(tiny("Bart"))
    recording = record(subject, pairs=[([5, 6, 2], [7, 8, 2])] * 6, sites="cross")
    with pytest.raises(RegardError, match="not in one space"):
        recording.inspect("dictionary")


def test_6_lag_can_be_said() -> None:
    given = arrays(queries=RNG.normal(size=(4, 3, 8)), keys=RNG.normal(size=(4, 5, 8)))
    shares = [
        record(given, sites={"attention": regard.at(lag=lag)}).inspect("breakdown").shares
        for lag in (0, 1)
    ]
    assert shares[0]["input-input"] != shares[1]["input-input"]


@pytest.mark.parametrize("name", ["offset", "trajectories", "pull"])
def test_7_a_decoder_does_not_look_ahead(tiny: Callable[..., Any], name: str) -> None:
    recording = record(regard.hugging_face(tiny("T5")), pairs=[([5, 6, 7, 2], [7, 8, 9, 4, 2])] * 3)
    found = recording.inspect(name, site="decoder.1.self").first
    if name == "offset":
        assert (found.best <= 0).all()
    elif name == "trajectories":
        assert not np.triu(found.attention, 1).any()
    else:
        assert np.isnan(found.by_offset[:, found.window + 1 :]).all()


def test_8_nothing_that_is_said_is_passed_over() -> None:
    net = Even()
    recording = record(net, batches=BATCHES, readout=net.out)
    np.testing.assert_allclose(recording["readout.bias"], net.out.bias.detach())
    for option in ({"n": 5}, {"seed": 1}, {"split": "test"}, {"checkpoint": 3}):
        with pytest.raises(RegardError, match="but a module was given"):
            record(net, batches=BATCHES, **option)
    with pytest.raises(RegardError, match="but arrays was given"):
        record(arrays(), gates=True)
    assert "encoder.gates.0.update" in record(net, batches=BATCHES, gates=True)


def test_9_weights_on_padding_stay_or_are_refused() -> None:
    mask = np.arange(5) < np.array([5, 3, 2, 1])[:, None]
    queries, keys = RNG.normal(size=(4, 3, 8)), RNG.normal(size=(4, 5, 8))
    weights = softmax(queries @ keys.transpose(0, 2, 1))
    given = arrays(**{"encoder.mask": mask}, queries=queries, keys=keys, weights=weights)
    with pytest.raises(RegardError, match="does the model attend to padding"):
        record(given)
    recording = record(given, sites={"attention": regard.at(masked=False)})
    np.testing.assert_allclose(recording["weights"].sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    "pieces",
    [("ein@@", "es", "kind", "</s>"), ("Ġein", "es", "Ġkind", "</s>"),
     ("▁ein", "es", "▁kind", "</s>"),
     ("ein", "##es", "kind", "[SEP]"), ("ein", "es</w>", "kind</w>", "</s>")],
)  # fmt: skip
def test_10_pieces_of_every_tokenizer_become_words(pieces: tuple[str, ...]) -> None:
    found = number_pieces(np.arange(4)[None], np.ones((1, 4), bool), pieces, frozenset())
    assert found.tolist() == [[0, 0, 1, -1]]


def test_11_connectivity_of_a_module_is_of_its_recurrence() -> None:
    assert regard.connectivity(Even()).first.block == "encoder.0.W_hh.update"
    net = nn.ModuleDict({"words": nn.Embedding(9, 4), "rnn": nn.LSTM(4, 5)})
    assert regard.connectivity(net).first.block == "rnn.0.W_hh.input"


@pytest.mark.parametrize("wrong", ["scale", "bias", "rows"])
def test_12_weights_that_do_not_follow_are_refused(wrong: str) -> None:
    queries, keys = RNG.normal(size=(4, 3, 8)), RNG.normal(size=(4, 5, 8))
    scores, bias = queries @ keys.transpose(0, 2, 1), RNG.normal(size=(4, 3, 5))
    weights = softmax(scores * 0.5 if wrong == "scale" else scores + bias)
    given = arrays(
        queries=queries, keys=keys, weights=0.9 * weights if wrong == "rows" else weights
    )
    with pytest.raises(RegardError, match="off by"):
        record(given)
    if wrong == "scale":
        record(given, sites={"attention": regard.at(scale=0.5)})
    if wrong == "bias":
        assert "attention.bias" in record({**given, "bias": bias})


def test_12_a_readout_that_does_not_give_the_logits_is_refused() -> None:
    given = arrays(readout=RNG.normal(size=(9, 8)))
    recording = record(given)
    logits = given["decoder.states"] @ given["readout"].T
    assert recording.check(logits=logits)["logits"] < 1e-5
    with pytest.raises(RegardError, match="The readout does not give the logits"):
        recording.check(logits=0.1 * logits)


def test_several_sites_heads_and_weights_alone() -> None:
    given = arrays(**{
        "decoder.0.cross.queries": RNG.normal(size=(4, 3, 12)),
        "decoder.0.cross.keys": RNG.normal(size=(4, 5, 12)),
        "decoder.1.cross.weights": softmax(RNG.normal(size=(4, 2, 3, 5))),
        "decoder.0.self.queries": RNG.normal(size=(4, 3, 6)),
        "decoder.0.self.keys": RNG.normal(size=(4, 3, 6)),
    })  # fmt: skip
    sites = {"decoder.0.cross": regard.at(heads=3, scale=0.5)}
    recording = record(given, sites=sites, specials={"pad": 0, "end": 8})
    assert recording.metadata.sites["decoder.0.cross"].heads == 3
    assert recording.metadata.sites["decoder.0.self"].causal
    assert not np.triu(recording["decoder.0.self.weights"][:, 0], 1).any()
    assert recording.inspect("entropy").estimates()
    with pytest.raises(RegardError, match="only the weights are recorded"):
        recording.inspect("breakdown", site="decoder.1.cross")
    assert recording.compact.metadata.source_words[2] == "8"  # the end token, by its own number
