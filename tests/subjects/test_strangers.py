"""What went wrong when strangers brought their models: each case as a test."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_ctranslate2
import torch
from safetensors.torch import load_file, save_file
from test_modules import Plain, call
from torch import Tensor, nn

import regard
from regard import RegardError
from regard.subjects.formats import ctranslate2
from regard.subjects.formats._fill import Arrays
from regard.subjects.formats.ctranslate2 import read_binary

PAIRS = [([3, 4, 5, 6, 7, 8, 2], [6, 7, 2]), ([8, 2], [9, 5, 2]), ([5, 6, 2], [4, 4, 5, 3, 2])]


class Own(nn.Module):
    """Attention with heads of its own, written by hand; `blind` to padding, or not."""

    def __init__(self, heads: int = 2, blind: bool = False, pad: int = 0):
        super().__init__()
        self.heads, self.blind, self.pad = heads, blind, pad
        self.words = nn.Embedding(12, 16)
        self.enc, self.dec = nn.Linear(16, 16), nn.Linear(16, 16)
        self.q, self.k, self.v = (nn.Linear(16, 8 * heads) for _ in range(3))
        self.softmax, self.bias = nn.Softmax(-1), nn.Identity()
        self.merge, self.out = nn.Linear(8 * heads, 16), nn.Linear(16, 12)
        self.dropout = nn.Dropout(0.3)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0, 0.5)

    def forward(self, source: Tensor, fed: Tensor) -> Tensor:
        memory = self.enc(self.words(source)).tanh()
        states = self.dec(self.dropout(self.words(fed))).tanh()
        split = lambda x: x.view(*x.shape[:2], self.heads, 8).transpose(1, 2)  # noqa: E731
        scores = split(self.q(states)) @ split(self.k(memory)).mT * 8**-0.5
        if not self.blind:
            scores = scores.masked_fill((source == self.pad)[:, None, None], -1e9)
        mixed = self.softmax(scores) @ split(self.v(memory))
        logits: Tensor = self.out(self.merge(mixed.transpose(1, 2).flatten(2)) + states)
        return logits


PLACES = {"encoder.states": "enc", "decoder.states": "dec"}


def own(site: Any = None, mode: str = "eval", **settings: Any) -> Any:
    torch.manual_seed(0)
    net = Own(settings.pop("heads", 2), settings.pop("blind", False), settings.pop("number", 0))
    getattr(net, mode)()
    named = site or regard.at("q", "k", "v", heads=net.heads, scale=8**-0.5, weights="softmax")
    return regard.module(net, sites={"decoder.0.cross": named}, places=PLACES, **settings)


def compare_alone(subject: Any) -> None:
    """A sentence alone, and among longer ones."""
    whole = regard.record(subject, pairs=PAIRS, sites="cross")
    for row, pair in enumerate(PAIRS):
        alone = regard.record(subject, pairs=[pair], sites="cross")
        for name in ("decoder.states", "decoder.0.cross.weights"):
            part = alone[name][0]
            same = whole[name][row][tuple(map(slice, part.shape))]
            np.testing.assert_allclose(same, part, atol=1e-5)
    np.testing.assert_allclose(
        whole["decoder.0.cross.weights"].sum(-1)[whole["decoder.mask"][:, None].repeat(2, 1)],
        1, atol=1e-5,
    )  # fmt: skip
    assert max(whole.check().values()) < 1e-3


@pytest.mark.parametrize("blind", [False, True])
def test_padding_that_a_module_does_not_know_is_not_put_in(blind: bool) -> None:
    subject = own(blind=blind)
    compare_alone(subject)
    assert subject.pads is not blind and ("padding" in subject.parity) is blind
    sizes = [len(batch) for batch in subject.read(PAIRS)]
    assert sizes == ([1, 1, 1] if blind else [3])


def test_weights_alone_are_not_believed_where_there_is_padding() -> None:
    subject = own(regard.at(weights="softmax", heads=2), blind=True)
    compare_alone(subject)
    batch = own().read(PAIRS)[0]
    with pytest.raises(RegardError, match=r"Rows of the weights .* masked=False"):
        regard.record(own(regard.at(weights="softmax", heads=2), blind=True), batches=[batch])


def test_a_batch_is_padded_with_the_number_that_means_padding() -> None:
    subject = own(number=1, specials={"pad": 1, "start": 2, "end": 2})
    batch = subject.read(PAIRS)[0]
    assert batch.source[1].tolist() == [8, 2, 1, 1, 1, 1, 1]
    assert batch.inputs[1].tolist() == [2, 9, 5, 1, 1]
    compare_alone(subject)
    assert subject.pads


@pytest.mark.parametrize("heads", [3, 5])
def test_as_many_heads_as_words(heads: int) -> None:
    """(batch, head, target, source) stays that where heads and target words are as many."""
    subject = own(regard.at(weights="softmax", heads=heads), heads=heads)
    (first,) = regard.record(subject, pairs=PAIRS[:1])["decoder.0.cross.weights"]
    assert first.shape == (heads, 3, 7)
    other = own(regard.at("q", "k", heads=heads, scale=8**-0.5), heads=heads)
    (wanted,) = regard.record(other, pairs=PAIRS[:1])["decoder.0.cross.weights"]
    np.testing.assert_allclose(first, wanted, atol=1e-6)


def test_values_are_not_invented() -> None:
    subject = own(regard.at("q", "k", heads=2, scale=8**-0.5))
    for ask in (
        lambda: regard.record(subject, pairs=PAIRS, also=("values",)),
        lambda: regard.ablate(subject, pairs=PAIRS),
        lambda: regard.optimal_attention(subject, pairs=PAIRS),
    ):
        with pytest.raises(RegardError, match=r"values of 'decoder.0.cross' are not known.*v="):
            ask()
    with pytest.raises(RegardError):
        regard.record(subject, pairs=PAIRS).inspect("dictionary")
    assert own().model.decode(*_memory(own())).sites["decoder.0.cross"].values.shape[3] == 8


def _memory(subject: Any) -> tuple[Any, Tensor]:
    batch = subject.read(PAIRS)[0]
    return subject.model.encode(batch.source, batch.source_lengths), batch.inputs


def test_ablation_where_weights_are_named() -> None:
    """What is changed on the way is not held against what the module would give without."""
    with_, without = (
        regard.ablate(own(regard.at("q", "k", "v", heads=2, scale=8**-0.5, weights=w)), pairs=PAIRS)
        for w in ("softmax", None)
    )
    assert with_.first.accuracy == without.first.accuracy and len(with_.first.accuracy) > 20


@pytest.mark.parametrize("shape", ["heads", "one", "all"])
def test_a_bias_need_not_have_a_batch(shape: str) -> None:
    class Biased(Own):
        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            steps, words = fed.shape[1], source.shape[1]
            bias = torch.arange(2.0 * steps * words).view(2, steps, words).cos()
            given = {"heads": bias, "one": bias[None], "all": bias.expand(len(source), -1, -1, -1)}
            bias = self.bias(given[shape])
            memory, states = self.enc(self.words(source)).tanh(), self.dec(self.words(fed)).tanh()
            split = lambda x: x.view(*x.shape[:2], 2, 8).transpose(1, 2)  # noqa: E731
            scores = split(self.q(states)) @ split(self.k(memory)).mT * 8**-0.5 + bias
            mixed = self.softmax(scores) @ split(self.v(memory))
            logits: Tensor = self.out(self.merge(mixed.transpose(1, 2).flatten(2)) + states)
            return logits

    torch.manual_seed(0)
    site = regard.at("q", "k", heads=2, scale=8**-0.5, bias="bias", weights="softmax")
    m = regard.module(Biased().eval(), sites={"decoder.0.cross": site}, places=PLACES)
    recording = regard.record(m, pairs=PAIRS)
    wanted = np.cos(np.arange(2.0 * 3 * 7)).reshape(2, 3, 7)
    np.testing.assert_allclose(recording["decoder.0.cross.bias"][0, :, :3], wanted, atol=1e-6)
    assert max(recording.check().values()) < 1e-3


def test_dropout_is_off_and_modes_stay_as_they_were() -> None:
    subject = own(mode="train")
    net = subject.model.net
    net.enc.eval()  # somebody has frozen a part
    batch = subject.read(PAIRS)[0]
    twice = [subject.generate(batch, 5).target for _ in range(2)]
    assert torch.equal(*twice)
    memory = subject.encode(batch.source, batch.source_lengths)
    logits = [subject.decode(memory, batch.inputs).logits for _ in range(2)]
    assert torch.equal(*logits)
    regard.record(subject, pairs=PAIRS)
    assert net.training and net.dropout.training and not net.enc.training
    net.eval()
    regard.record(subject, pairs=PAIRS)
    assert not net.training and not net.dropout.training


def test_own_words_of_a_module() -> None:
    subject = own()
    recording = regard.record(subject, pairs=[(source, None) for source, _ in PAIRS])
    fed, said = recording["decoder.words"], recording["targets"]
    assert (fed[:, 0] == 1).all() and (fed[:, 1:] == said[:, :-1])[
        recording["decoder.mask"][:, 1:]
    ].all()
    np.testing.assert_array_equal(recording["predictions"], said)
    with pytest.raises(RegardError, match="a target with every source, or with none"):
        subject.read([PAIRS[0], ([5, 2], None)])


def test_a_module_that_cannot_go_on_says_so() -> None:
    class Short(Own):
        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            if fed.shape[1] > 20:
                raise IndexError("only 20 positions")
            return super().forward(source, fed)

    m = regard.module(Short().eval(), sites={"a": regard.at(weights="softmax")}, places=PLACES)
    with pytest.raises(RegardError, match=r"128 words of its own \(only 20 positions\)"):
        m.read([([5, 2], None)])


def test_logits_that_are_not_numbers_are_told() -> None:
    class Broken(Own):
        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            logits = super().forward(source, fed)
            logits[1, -1] = torch.nan
            return logits

    torch.manual_seed(0)
    m = regard.module(Broken().eval(), sites={"a": regard.at(weights="softmax")}, places=PLACES)
    with pytest.raises(RegardError, match=r"logits of sample 1 are not a number at step 2"):
        regard.record(m, pairs=[PAIRS[0]] * 2)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_instruments_that_need_logits_say_so() -> None:
    m = regard.module(Plain().eval(), lambda net, batch: (call(net, batch),))
    for name in ("saliency", "lexical_probe", "ablate"):
        with pytest.raises(RegardError, match="does not show its logits"):
            regard.inspect(m, name, pairs=PAIRS)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype, tiny: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    m = regard.module(Plain().eval().to(dtype), call, readout="out")
    recording = regard.record(m, pairs=PAIRS)
    assert recording["decoder.0.cross.weights"].dtype == np.float32 and recording.check()
    assert recording.metadata.origin["precision"] == str(dtype).removeprefix("torch.")
    for family in ("Bart", "T5"):
        subject = regard.hugging_face(tiny(family).to(dtype))
        assert regard.record(subject, pairs=PAIRS).check()
    with pytest.raises(RegardError, match="more than 1e-05"):
        recording.check(tolerance=1e-5)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda net: regard.hugging_face(net, "foo"), "A str is no tokenizer"),
        (lambda net: regard.record(regard.hugging_face(net), pairs=[([5, 2],)]), r"pairs\[0\] is"),
        (lambda net: regard.record(regard.hugging_face(net), pairs=PAIRS, sites=3), "sites=3 does"),
        (lambda net: regard.hugging_face(net).read([([5, -1], [6])]), "Word number -1 is beyond"),
        (lambda net: own().read([([5, 99], [6])]), "Word number 99 does not fit: there are 12"),
        (lambda net: own().lexicons["encoder"].number_words([5]), "takes sentences"),
    ],
)
def test_what_was_meant_is_asked_for(make: Any, match: str, tiny: Callable[..., Any]) -> None:
    with pytest.raises(RegardError, match=match):
        make(tiny("Marian"))


def test_a_parameter_that_no_file_has_is_refused(tiny: Callable[..., Any], tmp_path: Path) -> None:
    for family in ("Bart", "Marian", "T5", "M2M100", "Whisper"):
        tiny(family).save_pretrained(tmp_path / family)
        assert regard.hugging_face(tmp_path / family).parity
    file = tmp_path / "Bart" / "model.safetensors"
    tensors = load_file(file)
    lost = "model.decoder.layers.0.encoder_attn.q_proj.weight"
    save_file({n: t for n, t in tensors.items() if n != lost}, file, {"format": "pt"})
    with pytest.raises(RegardError, match=f"have no '{lost}'"):
        regard.hugging_face(tmp_path / "Bart")
    save_file({**tensors, lost: torch.full_like(tensors[lost], torch.nan)}, file, {"format": "pt"})
    with pytest.raises(RegardError, match=f"'{lost}' has numbers in the file that are none"):
        regard.hugging_face(tmp_path / "Bart")


def test_own_words_by_the_models_own_settings(tiny: Callable[..., Any]) -> None:
    net = tiny("Bart")
    source = [([5, 6, 7, 2], None)]
    net.generation_config.max_length = 12
    assert regard.hugging_face(net).read(source)[0].inputs.shape[1] == 11
    net.generation_config.max_length = 20  # what `transformers` has where nobody said anything
    net.generation_config.max_new_tokens = 7
    assert regard.hugging_face(net).read(source)[0].target.shape[1] == 7
    net.generate = lambda **given: 1 / 0
    with pytest.raises(RegardError, match=r"could not put out words of its own \(division"):
        regard.hugging_face(net).read(source)


def test_a_model_in_training_is_looked_at_without_dropout(tiny: Callable[..., Any]) -> None:
    net = tiny("Bart", dropout=0.4).train()
    subject = regard.hugging_face(net)
    assert net.training
    said = [subject.read([([5, 6, 7, 2], None)])[0].target for _ in range(2)]
    assert torch.equal(*said) and net.training
    net.eval()
    regard.record(subject, pairs=PAIRS)
    assert not net.training and not net.model.decoder.layers[0].training


def test_speech_has_no_words(tiny: Callable[..., Any]) -> None:
    subject = regard.hugging_face(tiny("Whisper"))
    pairs = [(np.random.default_rng(k).normal(size=(8, 40)), [5, 6, 2]) for k in range(2)]
    for name in ("ablate", "saliency"):
        with pytest.raises(RegardError, match=r"speech|no embedding of source words"):
            regard.inspect(subject, name, pairs=pairs)
    assert regard.lexical_probe(subject, pairs=pairs[:1]).estimates()


def write_binary(path: Path, arrays: dict[str, np.ndarray], aliases: dict[str, str]) -> Path:
    """A file of CTranslate2 with some arrays."""
    kinds = {"float32": 0, "int8": 1, "int16": 2}

    def text(said: str) -> bytes:
        return struct.pack("<H", len(said) + 1) + said.encode() + b"\0"

    out = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(arrays))
    for name, array in arrays.items():
        out += text(name) + struct.pack("<B", array.ndim)
        out += b"".join(struct.pack("<I", n) for n in array.shape)
        out += struct.pack("<BI", kinds[str(array.dtype)], array.nbytes) + array.tobytes()
    out += struct.pack("<I", len(aliases))
    path.write_bytes(out + b"".join(text(a) + text(o) for a, o in aliases.items()))
    return path


def test_a_table_of_few_bits_with_two_names(tmp_path: Path) -> None:
    few = np.array([[10, -20], [30, 127]], np.int8)
    arrays = {"a/weight": few, "a/weight_scale": np.array([2.0, 10.0], np.float32)}
    wanted = np.array([[5, -10], [3, 12.7]], np.float32)
    for aliases in ({"b/weight": "a/weight"},
                    {"b/weight": "a/weight", "b/weight_scale": "a/weight_scale"}):  # fmt: skip
        _, found = read_binary(write_binary(tmp_path / "model.bin", arrays, aliases))
        assert set(found) == {"a/weight", "b/weight"}
        np.testing.assert_allclose(found["a/weight"], wanted)
        np.testing.assert_allclose(found["b/weight"], wanted)
    with pytest.raises(RegardError, match=r"'a/weight' holds int8, and there is no scale"):
        read_binary(write_binary(tmp_path / "model.bin", {"a/weight": few}, {}))


def arrays(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
    return {
        "encoder.states": rng.normal(size=(2, 5, 8)), "encoder.words": rng.integers(3, 9, (2, 5)),
        "decoder.states": rng.normal(size=(2, 4, 8)), "decoder.words": rng.integers(3, 9, (2, 4)),
        "encoder.mask": mask, "decoder.0.cross.queries": rng.normal(size=(2, 4, 12)),
        "decoder.0.cross.keys": rng.normal(size=(2, 5, 12)), **more,
    }  # fmt: skip


def test_arrays_whose_padding_is_attended_to() -> None:
    given = arrays()
    site = {"decoder.0.cross": regard.at(masked=False)}
    found = regard.record(given, sites=site)["decoder.0.cross.weights"][:, 0]
    scores = given["decoder.0.cross.queries"] @ given["decoder.0.cross.keys"].transpose(0, 2, 1)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(found, raised / raised.sum(-1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize(
    ("heads", "more", "match"),
    [
        (5, {}, r"12 features, which do not part into heads=5"),
        (4, {"decoder.0.cross.queries": np.ones((2, 3, 4, 4))}, "has 3 heads, but heads=4"),
    ],
)
def test_arrays_with_other_heads_than_was_said(heads: int, more: Any, match: str) -> None:
    with pytest.raises(RegardError, match=match) as caught:
        regard.record(arrays(**more), sites={"decoder.0.cross": regard.at(heads=heads)})
    assert len(caught.value.faults) == 1


def test_weights_below_zero_are_refused() -> None:
    weights = np.zeros((2, 4, 5))
    weights[..., 0], weights[..., 1] = 1.4, -0.4
    plain = {n: a for n, a in arrays().items() if "cross" not in n and n != "encoder.mask"}
    with pytest.raises(RegardError, match=r"rows: off by 0\.4.*Weights are 0 or more"):
        regard.record({**plain, "decoder.0.cross.weights": weights})


def test_own_words_end_where_positions_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = regard.ctranslate2(test_ctranslate2.write(tmp_path / "m"))
    monkeypatch.setattr(type(subject), "longest", 6)
    assert 1 <= subject.read([([5, 6, 2], None)])[0].target.shape[1] <= 6


def test_a_kind_of_model_that_is_not_read_is_named(tmp_path: Path) -> None:
    held = Arrays({"encoder/layer_norm/gamma": np.ones(4, np.float32)}, "model.bin")
    with pytest.raises(RegardError, match=r"normalises without a shift .*as T5 does"):
        ctranslate2._norm(held, nn.LayerNorm(4), "encoder/layer_norm")


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_batches_of_ones_own_show_what_attentions_there_are() -> None:
    torch.manual_seed(0)
    net = Plain().eval()
    batch = regard.module(net, call).read(PAIRS)[0]
    recording = regard.record(regard.module(net, call), batches=[batch], sites="cross")
    assert [*recording.metadata.sites] == ["decoder.0.cross", "decoder.1.cross"]


class Stacked(nn.Module):
    """Any encoder and decoder over one table of vectors, attention between them by torch."""

    def __init__(self, **parts: nn.Module):
        super().__init__()
        self.words, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        for name, part in parts.items():
            setattr(self, name, part)


def attention(**more: Any) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(8, 2, batch_first=True, **more)


PLAIN_PLACES = {"encoder.states": "enc", "decoder.states": "dec"}


def open_module(net: nn.Module, run: Callable[[Any, Any], Any], **more: Any) -> Any:
    torch.manual_seed(0)
    for parameter in net.parameters():
        nn.init.normal_(parameter, 0, 0.5)
    return regard.module(net.eval(), run, places=PLAIN_PLACES, **more)


def test_padding_is_tried_on_each_side() -> None:
    """That a longer target changes nothing says nothing of a longer source."""
    subject = own(blind=True)
    regard.record(subject, pairs=[([3, 4, 5, 2], [6, 2]), ([3, 4, 5, 2], [6, 7, 8, 2])])
    assert subject.pads and subject.tried == {"target"}
    compare_alone(subject)
    assert subject.pads is False


def test_rows_that_are_sorted_on_the_way_go_alone() -> None:
    class Sorting(Own):
        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            order = (source != 0).sum(1).argsort(descending=True)
            return super().forward(source[order], fed[order])[order.argsort()]

    torch.manual_seed(0)
    site = regard.at("q", "k", heads=2, scale=8**-0.5)
    subject = regard.module(Sorting().eval(), sites={"decoder.0.cross": site}, places=PLACES)
    compare_alone(subject)
    assert subject.alone and [len(batch) for batch in subject.read(PAIRS)] == [1, 1, 1]


def test_who_shifts_the_target_himself_feeds_the_same() -> None:
    def shifting(net: Any, batch: Any) -> Tensor:
        start = torch.ones_like(batch.target[:, :1])
        found: Tensor = net(batch.source, torch.cat([start, batch.target[:, :-1]], 1))
        return found

    torch.manual_seed(0)
    net, named = Own().eval(), {"decoder.0.cross": regard.at(weights="softmax", heads=2)}
    one = regard.record(regard.module(net, shifting, sites=named, places=PLACES), pairs=PAIRS)
    two = regard.record(regard.module(net, sites=named, places=PLACES), pairs=PAIRS)
    np.testing.assert_array_equal(one["decoder.states"], two["decoder.states"])


@pytest.mark.parametrize("pair", [([5], [2]), ([5], [3, 2]), ([5, 6], [2])])
def test_one_word_tells_no_less(pair: Any) -> None:
    subject = own()
    regard.record(subject, pairs=[pair])
    compare_alone(subject)
    net = Stacked(enc=nn.GRU(8, 8, batch_first=True), dec=nn.GRU(8, 8, batch_first=True))
    torch.manual_seed(0)
    m = regard.module(
        net.eval(), lambda n, b: n.out(n.dec(n.words(b.inputs), n.enc(n.words(b.source))[1])[0])
    )
    regard.record(m, pairs=[pair])
    assert m.parity["encoder.states"] == "enc" and m.parity["decoder.states"] == "dec"
    assert regard.record(m, pairs=PAIRS)["encoder.states"].shape[1] == 7


@pytest.mark.parametrize("source", [6, 8, 7])
def test_keys_that_are_not_one_a_word_are_left_out(source: int) -> None:
    """A halved source may be as long as the target, and is not the target all the same."""
    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), look=attention())

    def run(n: Any, b: Any) -> Tensor:
        memory, states = n.enc(n.words(b.source)), n.dec(n.words(b.inputs))
        pooled = memory[:, : memory.shape[1] // 2 * 2].unflatten(1, (-1, 2)).mean(2)
        found: Tensor = n.out(n.look(states, pooled, pooled)[0])
        return found

    m = open_module(net, run)
    pairs = [([*range(3, 2 + source), 2], [4, 5, 2]), ([*range(3, 2 + source), 2], [6, 5, 2])]
    regard.record(m, pairs=pairs)
    assert m.sites() == [] and "not one a word" in m.parity["not recorded"][0]
    torch.manual_seed(0)
    named = regard.module(
        net, run, places=PLAIN_PLACES, sites={"a": regard.at(weights="look[1]", masked=False)}
    )
    with pytest.raises(RegardError, match=r"looks at one position a word|puts out"):
        regard.record(named, pairs=pairs)


def test_one_attention_in_two_roles_is_left_out() -> None:
    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), look=attention(), other=attention())

    def run(n: Any, b: Any) -> Tensor:
        memory, states = n.enc(n.words(b.source)), n.dec(n.words(b.inputs))
        ahead = torch.ones(states.shape[1], states.shape[1], dtype=torch.bool).triu(1)
        own, _ = n.look(states, states, states, attn_mask=ahead)
        cross, _ = n.look(own, memory, memory)
        found: Tensor = n.out(cross + n.other(states, memory, memory)[0])
        return found

    m = open_module(net, run)
    regard.record(m, pairs=PAIRS)
    assert m.sites() == ["decoder.0.cross"]
    assert m.parity["not recorded"] == ["look: called several times in a pass"]


def test_a_projection_in_two_roles_is_refused() -> None:
    class Twice(Own):
        def forward(self, source: Tensor, fed: Tensor) -> Tensor:
            return super().forward(source, fed) + self.q(self.words(fed)).mean()

    torch.manual_seed(0)
    site = regard.at("q", "k", heads=2, scale=8**-0.5)
    m = regard.module(Twice().eval(), sites={"a": site}, places=PLACES)
    with pytest.raises(RegardError, match="is called 2 times in a pass"):
        regard.record(m, pairs=PAIRS)


@pytest.mark.parametrize("causal", [True, False])
def test_a_decoder_that_looks_ahead_is_left_out(causal: bool) -> None:
    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), look=attention(), cross=attention())

    def run(n: Any, b: Any) -> Tensor:
        memory, states = n.enc(n.words(b.source)), n.dec(n.words(b.inputs))
        ahead = torch.ones(states.shape[1], states.shape[1], dtype=torch.bool).triu(1)
        states = n.look(states, states, states, attn_mask=ahead if causal else None)[0]
        found: Tensor = n.out(n.cross(states, memory, memory)[0])
        return found

    m = open_module(net, run)
    recording = regard.record(m, pairs=PAIRS)
    assert ("decoder.0.self" in m.sites()) is causal and "decoder.0.cross" in m.sites()
    assert causal or "looks ahead" in m.parity["not recorded"][0]
    assert max(recording.check().values()) < 1e-3


def test_a_mask_that_also_adds_something() -> None:
    """ALiBi and causality in one mask: what is added where attention may look is a bias."""
    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), look=attention(), cross=attention())

    def slope(steps: int) -> Tensor:
        place = torch.arange(float(steps))
        return (place[None] - place[:, None]) / 2

    def run(n: Any, b: Any) -> Tensor:
        memory, states = n.enc(n.words(b.source)), n.dec(n.words(b.inputs))
        mask = slope(states.shape[1])
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), -torch.inf)
        states = n.look(states, states, states, attn_mask=mask)[0]
        found: Tensor = n.out(n.cross(states, memory, memory)[0])
        return found

    recording = regard.record(open_module(net, run), pairs=PAIRS)
    np.testing.assert_allclose(
        recording["decoder.0.self.bias"][0, 1, :3, :3], np.tril(slope(3)), atol=1e-6
    )
    assert max(recording.check().values()) < 1e-3
    shares = recording.inspect("breakdown", site="decoder.0.self").shares
    assert len(shares) == 10 and min(shares.values()) > 0


def test_inputs_cannot_be_changed_from_outside() -> None:
    class Core(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            mixed: Tensor = (q @ k.mT).softmax(-1) @ v
            return mixed

    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), core=Core())

    def run(n: Any, b: Any) -> Tensor:
        memory, states = n.enc(n.words(b.source)), n.dec(n.words(b.inputs))
        found: Tensor = n.out(n.core(states, memory, memory))
        return found

    m = open_module(net, run, sites={"a": regard.at("core(0)", "core(1)", "core(2)")})
    with pytest.raises(RegardError, match="or an input, so that it cannot be changed"):
        regard.ablate_heads(m, pairs=PAIRS)


def test_saliency_is_of_source_words_though_a_table_is_shared() -> None:
    net = Stacked(enc=nn.Linear(8, 8), dec=nn.Linear(8, 8), look=attention())

    def run(first: str) -> Callable[[Any, Any], Tensor]:
        def look(n: Any, b: Any) -> Tensor:
            both = {"inputs": b.inputs, "source": b.source}
            order = [first, *({*both} - {first})]
            vectors = {name: n.words(both[name]) for name in order}
            memory = n.enc(vectors["source"])
            found: Tensor = n.out(n.look(n.dec(vectors["inputs"]), memory, memory)[0])
            return found

        return look

    pairs = [([3, 4, 5, 2], [6, 7, 8, 2]), ([8, 9, 4, 2], [9, 5, 4, 2])]
    found = [
        regard.record(open_module(net, run(first)), pairs=pairs, also=("saliency",))["saliency"]
        for first in ("source", "inputs")
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    assert np.abs(found[0]).max() > 1e-3


def test_gates_of_cells_by_what_each_call_was_given() -> None:
    """Two cells a step, the second on the first one's state; sides by a probe, not by chance."""
    net = Stacked(enc=nn.GRU(8, 8, batch_first=True), dec=nn.Identity(), one=nn.GRUCell(8, 8),
                  two=nn.GRUCell(8, 8))  # fmt: skip

    def run(n: Any, b: Any) -> Tensor:
        memory, last = n.enc(n.words(b.source))
        state, found = last[0], []
        for vector in n.words(b.inputs).unbind(1):
            between = n.one(vector, state)
            state = n.two(memory.mean(1), between)
            found.append(state)
        logits: Tensor = n.out(n.dec(torch.stack(found, 1)))
        return logits

    m = open_module(net, run)
    pairs = [([3, 4, 2], [6, 7, 2]), ([5, 8, 2], [4, 4, 2])]  # as many words on both sides
    recording = regard.record(m, pairs=pairs, gates=True)
    names = {name for name in recording if ".gates." in name}
    assert names == {f"{side}.{gate}" for side in ("encoder.gates.0", "decoder.gates.0",
                                                   "decoder.gates.1")
                     for gate in ("reset", "update")}  # fmt: skip
    calls: list[tuple[Tensor, Tensor]] = []
    hook = net.two.register_forward_hook(lambda _m, args, _out: calls.append(args))
    with torch.no_grad():
        run(net, m.read(pairs)[0])
    hook.remove()
    for step, (x, h) in enumerate(calls):
        gates = (
            x @ net.two.weight_ih.T + net.two.bias_ih + h @ net.two.weight_hh.T + net.two.bias_hh
        )
        wanted = gates.chunk(3, 1)[1].sigmoid().detach()
        np.testing.assert_allclose(recording["decoder.gates.1.update"][:, step], wanted, atol=1e-5)
    assert len(regard.inspect(m, "strength", pairs=pairs, quantity="decoder.gates.1.update",
                              splits=1).seeds) == 1  # fmt: skip


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_projected_states_have_no_gates_here() -> None:
    net = Stacked(enc=nn.LSTM(8, 8, batch_first=True, proj_size=4), dec=nn.Linear(8, 8))
    m = open_module(
        net, lambda n, b: n.out(n.dec(n.words(b.inputs)) + n.enc(n.words(b.source))[0].mean())
    )
    with pytest.raises(RegardError, match="proj_size"):
        regard.record(m, pairs=PAIRS, gates=True)
    assert regard.record(m, pairs=PAIRS)["encoder.states"].shape[2] == 4


def test_a_sites_name_says_its_layer() -> None:
    names = {f"decoder.{k}.cross": regard.at("q", "k", heads=2, scale=8**-0.5) for k in (0, 2)}
    torch.manual_seed(0)
    m = regard.module(Own().eval(), sites=names, places=PLACES)
    sites = regard.record(m, pairs=PAIRS).metadata.sites
    assert {name: site.layer for name, site in sites.items()} == {
        "decoder.0.cross": 0, "decoder.2.cross": 2,
    }  # fmt: skip


def test_special_words_that_did_not_occur_are_words_all_the_same() -> None:
    given = arrays()
    recording = regard.record(given, specials={"pad": 0, "end": 30, "others": [20]})
    assert recording.compact.metadata.source_words[2] == "30"
    assert recording.inspect("breakdown").estimates()


@pytest.mark.parametrize("wrong", [{"end": 9}, {"pad": -1}, {"start": "<s>"}, {"others": [4, 12]}])
def test_special_words_that_cannot_be_are_refused(wrong: Any) -> None:
    names = [*"abcdefghi"]
    with pytest.raises(RegardError, match="which is no word's number: they are 0 to 8"):
        regard.record(arrays(), source_words=names, target_words=names, specials=wrong)
