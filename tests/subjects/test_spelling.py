"""Published spelling-to-phoneme models: the same numbers as where they come from."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import RegardError
from regard.subjects.formats.spelling import Speller, load_published

ATTENTIVE, FIXED = "g2p_en_1.0.1_bahdanau", "g2p_en_2.1.0_noattention"
LETTERS, SOUNDS = "abcdefghijklmnopqrstuvwxyz", ["AH0", "B", "K", "T", "IY1", "D", "S", "Z"]
KINDS = ("g2p_en 1.0.1", "g2p_en 2.1.0")
WORDS = {
    "g2p_en 1.0.1": (["P", "E", "U", *LETTERS], ["<PAD>", "<EOS>", *SOUNDS]),
    "g2p_en 2.1.0": (
        ["<pad>", "<unk>", "</s>", *LETTERS],
        ["<pad>", "<unk>", "<s>", "</s>", *SOUNDS],
    ),
}
PAIRS = [("attention", ["AH0", "T"]), ("cat", ["K", "AH0", "T", "B"]), ("be", ["B"])]


def shapes(kind: str, hidden: int, size: int, width: int) -> dict[str, tuple[int, ...]]:
    """The names that a published model has, and what shapes they have there."""
    letters, sounds = map(len, WORDS[kind])
    if kind == "g2p_en 2.1.0":
        found: dict[str, tuple[int, ...]] = {"fc_w": (sounds, hidden), "fc_b": (sounds,)}
        for side, words in (("enc", letters), ("dec", sounds)):
            found |= {f"{side}_emb": (words, size), f"{side}_w_ih": (3 * hidden, size),
                      f"{side}_w_hh": (3 * hidden, hidden), f"{side}_b_ih": (3 * hidden,),
                      f"{side}_b_hh": (3 * hidden,)}  # fmt: skip
        return found
    inside = "rnn.attention_wrapper."
    found = {
        "dense.bias": (sounds,), "dense.kernel": (width, sounds),
        "memory_layer.kernel": (2 * hidden, size),
        f"{inside}attention_layer.kernel": (3 * hidden, width),
        f"{inside}bahdanau_attention.attention_v": (size,),
        f"{inside}bahdanau_attention.query_layer.kernel": (hidden, size),
    }  # fmt: skip
    places = {"bidirectional_rnn.fw.": letters, "bidirectional_rnn.bw.": letters}
    for place, count in {**places, inside: sounds + width}.items():
        for part, blocks in (("gates", 2), ("candidate", 1)):
            found[f"{place}gru_cell.{part}.kernel"] = (count + hidden, blocks * hidden)
            found[f"{place}gru_cell.{part}.bias"] = (blocks * hidden,)
    return found


def arrays(kind: str) -> dict[str, np.ndarray]:
    """Random weights with the names of a published model."""
    rng = np.random.default_rng(0)
    known = shapes(kind, 6, 5, 7)
    return {name: rng.normal(size=s).astype(np.float32) for name, s in known.items()}


def write(folder: Path, kind: str, weights: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **(arrays(kind) if weights is None else weights))
    letters, phonemes = WORDS[kind]
    text = json.dumps({"graphemes": letters, "phonemes": phonemes})
    (folder / "vocab.json").write_text(text)
    return folder


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def subject(kind: str, tmp_path: Path) -> Speller:
    return load_published(write(tmp_path / "model", kind))


def test_steps_trace_and_whole_agree(subject: Speller) -> None:
    (some,), model = subject.read(PAIRS), subject.model
    whole = model(some.source, some.source_lengths, some.inputs)
    traced = model.trace(some.source, some.source_lengths, some.inputs)
    torch.testing.assert_close(traced.logits, whole.logits, atol=1e-5, rtol=1e-5)
    memory = model.encode(some.source, some.source_lengths)
    state = memory.initial
    for t in range(some.target.shape[1]):
        logits, state = model.step(memory, some.inputs[:, t], state)
        torch.testing.assert_close(logits, whole.logits[:, t], atol=1e-5, rtol=1e-5)


def test_gates_have_names_and_belong_to_their_words(subject: Speller, kind: str) -> None:
    (some,), model = subject.read(PAIRS), subject.model
    gates = model.trace(some.source, some.source_lengths, some.inputs).gates
    ways = ["ahead", "back"] if kind == KINDS[0] else ["ahead"]
    places = [*(f"encoder.gates.0.{way}" for way in ways), "decoder.gates.0"]
    assert set(gates) == {f"{place}.{gate}" for place in places for gate in ("reset", "update")}
    if ways == ["ahead"]:
        return
    # The last word is the first that a backward cell reads: its gates follow from it alone.
    cell = model.encoder.back[0]
    x = model.source_embedding.look_up(torch.full((len(some),), subject.lexicons["encoder"].end))
    _, first = cell.step(cell.project(x), cell.initial(len(some)))
    last = some.source_lengths - 1
    found = gates["encoder.gates.0.back.reset"][torch.arange(len(some)), last]
    torch.testing.assert_close(found, first["reset"])


def test_gradients_reach_every_parameter(subject: Speller) -> None:
    (some,), model = subject.read(PAIRS), subject.model
    model(some.source, some.source_lengths, some.inputs).logits.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_words_are_read_letter_by_letter(subject: Speller) -> None:
    assert len(subject.spell(["cat", "BAT"])) == 2 and subject.spell([]) == []
    with pytest.raises(RegardError, match="'ï'"):
        subject.spell(["naïve"])


def test_record_takes_the_subjects_words(subject: Speller, kind: str) -> None:
    pairs = [("cat", ["K", "AH0", "T"]), ("be", ["B", "IY1"])]
    recording = regard.record(subject, pairs=pairs, gates=True)
    assert recording.words("encoder") == tuple(WORDS[kind][0])
    assert recording.shape("encoder.words") == (2, 4)
    target = subject.lexicons["decoder"]
    assert recording["decoder.words"][1, :3].tolist() == [
        target.start,
        *target.encode(["B", "IY1"]),
    ]
    logits = recording["decoder.states"] @ recording.readout("state").T + recording["readout.bias"]
    if "attention.weights" in recording:
        context = recording["weights"][:, 0] @ recording["encoder.states"]
        logits = logits + context @ recording.readout("context").T
    there = recording["decoder.mask"]
    np.testing.assert_array_equal(logits.argmax(-1)[there], recording["predictions"][there])


# What is wrong with a folder.


def test_missing_folder_and_files(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"There is no .*nowhere.weights\.npz"):
        load_published(tmp_path / "nowhere")
    folder = write(tmp_path / "model", KINDS[0])
    (folder / "vocab.json").unlink()
    with pytest.raises(RegardError, match=r"vocab\.json cannot be read .*graphemes"):
        load_published(folder)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_npz(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path / "model", KINDS[0])
    (folder / "weights.npz").write_bytes(content)
    with pytest.raises(RegardError, match=r"weights\.npz is not a whole npz file"):
        load_published(folder)


def test_a_single_array_and_pickled_objects_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", KINDS[0])
    with (folder / "weights.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(RegardError, match="not a whole npz file"):
        load_published(folder)
    np.savez(folder / "weights.npz", dangerous=np.array([{}], dtype=object))
    with pytest.raises(RegardError, match="not a whole npz file of plain arrays"):
        load_published(folder)


def test_what_is_missing_and_what_is_strange_is_named(kind: str, tmp_path: Path) -> None:
    weights = arrays(kind)
    gone = sorted(weights)[0]
    kept = weights.pop(gone)
    with pytest.raises(RegardError, match=f"lacks '{gone}'"):
        load_published(write(tmp_path, kind, weights))
    strange = {**weights, gone: kept, "optimiser.step": np.zeros(1, dtype=np.float32)}
    with pytest.raises(RegardError, match=r"holds 'optimiser\.step'"):
        load_published(write(tmp_path, kind, strange))


def test_another_model_altogether(tmp_path: Path) -> None:
    folder = write(tmp_path, KINDS[0], {"wte": np.zeros((2, 2), dtype=np.float32)})
    with pytest.raises(RegardError, match=r"g2p_en 1\.0\.1 and g2p_en 2\.1\.0.*holds wte"):
        load_published(folder)


def test_shapes_and_kinds_that_do_not_fit(kind: str, tmp_path: Path) -> None:
    for name in arrays(kind):
        weights = arrays(kind)
        weights[name] = np.concatenate([weights[name], weights[name]])
        with pytest.raises(RegardError, match=r"shape|does not fit|different words"):
            load_published(write(tmp_path, kind, weights))
    weights = arrays(kind)
    weights[name] = np.full(weights[name].shape, "a")
    with pytest.raises(RegardError, match=f"'{name}' does not hold real numbers"):
        load_published(write(tmp_path, kind, weights))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('{"graphemes": []}', "cannot be read"),
        ('{"graphemes": "abc", "phonemes": []}', "not a word"),
        ('{"graphemes": ["a"], "phonemes": ["B"]}', "29 different words.*missing: .'P', 'E'."),
        ('{"graphemes": ["P", "E", "a", "a"], "phonemes": []}', "3 are there"),
    ],
)
def test_vocabularies_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    folder = write(tmp_path, KINDS[0])
    (folder / "vocab.json").write_text(text)
    with pytest.raises(RegardError, match=message):
        load_published(folder)


# The real models.


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("REGARD_DATA")
    if not folder:
        pytest.skip("REGARD_DATA is not set: the published models are not part of the project")
    return Path(folder)


@pytest.fixture(scope="module")
def attentive(data: Path) -> Speller:
    return load_published(data / "pretrained" / ATTENTIVE)


@pytest.fixture(scope="module")
def fixed(data: Path) -> Speller:
    return load_published(data / "pretrained" / FIXED)


def expected(data: Path) -> list[dict[str, Any]]:
    return json.loads((data / "pretrained" / ATTENTIVE / "expected.json").read_text())["cases"]


def test_parameter_counts(attentive: Speller, fixed: Speller) -> None:
    assert attentive.model.parameter_count == 355_400
    assert fixed.model.parameter_count == 834_890


def test_attention_and_outputs_are_the_expected_ones(data: Path, attentive: Speller) -> None:
    cases = expected(data)
    words = [case["in"] for case in cases]
    assert attentive.spell(words) == [case["out"] for case in cases]
    assert [attentive.spell([word])[0] for word in words] == [case["out"] for case in cases]
    (some,) = attentive.read([(case["in"], case["out"]) for case in cases])
    for together in (True, False):
        for row, case in enumerate(cases):
            piece = some if together else some[row : row + 1]
            with torch.no_grad():
                output = attentive.model(piece.source, piece.source_lengths, piece.inputs)
            weights = output.sites["attention"].weights[row if together else 0, 0].numpy()
            wanted = np.array(case["attention"])
            steps, width = wanted.shape
            np.testing.assert_allclose(weights[:steps, :width], wanted, atol=2e-5)
            assert (weights[:steps, width:] == 0).all()


def test_the_recorded_scores_are_additive(data: Path, attentive: Speller) -> None:
    cases = expected(data)
    recording = regard.record(attentive, pairs=[(case["in"], case["out"]) for case in cases])
    assert recording.metadata.sites["attention"].score == "additive"
    assert recording.shape("vector") == (1, 128)
    queries, keys = recording["queries"], recording["keys"]
    scores = np.tanh(queries[:, 0, :, None] + keys[:, 0, None]) @ recording["vector"][0]
    mask = recording["decoder.mask"][:, :, None] & recording["encoder.mask"][:, None]
    np.testing.assert_allclose(recording["scores"][:, 0], scores * mask, atol=1e-4)
    # The model was right in every case, so its own inputs are the teacher's.
    np.testing.assert_array_equal(recording["predictions"], recording["targets"])
    context = recording["weights"][:, 0] @ recording["encoder.states"]
    logits = recording["decoder.states"] @ recording.readout("state").T
    logits = logits + context @ recording.readout("context").T + recording["readout.bias"]
    np.testing.assert_array_equal(
        logits.argmax(-1) * recording["decoder.mask"], recording["targets"]
    )


def plainly(folder: Path, word: str) -> list[str]:
    """The fixed-vector model as its authors run it, in numpy, one word at a time."""
    w = np.load(folder / "weights.npz", allow_pickle=False)
    vocab = json.loads((folder / "vocab.json").read_text())

    def gru(x: np.ndarray, h: np.ndarray, side: str) -> np.ndarray:
        xs = np.split(w[f"{side}_w_ih"] @ x + w[f"{side}_b_ih"], 3)
        hs = np.split(w[f"{side}_w_hh"] @ h + w[f"{side}_b_hh"], 3)
        r, z = (1 / (1 + np.exp(-xs[i] - hs[i])) for i in (0, 1))
        return (1 - z) * np.tanh(xs[2] + r * hs[2]) + z * h

    h = np.zeros(w["enc_w_hh"].shape[1], dtype=np.float32)
    for letter in [*word, "</s>"]:
        h = gru(w["enc_emb"][vocab["graphemes"].index(letter)], h, "enc")
    said = ["<s>"]
    while said[-1] != "</s>" and len(said) < 40:
        h = gru(w["dec_emb"][vocab["phonemes"].index(said[-1])], h, "dec")
        said.append(vocab["phonemes"][int((w["fc_w"] @ h + w["fc_b"]).argmax())])
    return said[1:-1]


def test_made_weights_of_the_fixed_vector_in_numpy(tmp_path: Path) -> None:
    """Without the published file: random weights, the teacher's phonemes fed, step by step."""
    kind = "g2p_en 2.1.0"
    subject, w = load_published(write(tmp_path / "made", kind)), arrays(kind)
    letters, phonemes = WORDS[kind]
    spoken = (("cab", ["K", "AH0", "B"]), ("be", ["B", "IY1"]))
    (given,) = subject.read(spoken)
    found = subject.model(given.source, given.source_lengths, given.inputs)
    logits = found.logits.detach().numpy()

    def gru(x: np.ndarray, h: np.ndarray, side: str) -> np.ndarray:
        xs = np.split(w[f"{side}_w_ih"] @ x + w[f"{side}_b_ih"], 3)
        hs = np.split(w[f"{side}_w_hh"] @ h + w[f"{side}_b_hh"], 3)
        r, z = (1 / (1 + np.exp(-xs[i] - hs[i])) for i in (0, 1))
        return (1 - z) * np.tanh(xs[2] + r * hs[2]) + z * h

    for row, (word, said) in enumerate(spoken):
        h = np.zeros(6, dtype=np.float32)
        for letter in [*word, "</s>"]:
            h = gru(w["enc_emb"][letters.index(letter)], h, "enc")
        for step, fed in enumerate(["<s>", *said]):
            h = gru(w["dec_emb"][phonemes.index(fed)], h, "dec")
            np.testing.assert_allclose(logits[row, step], w["fc_w"] @ h + w["fc_b"], atol=1e-4)


def test_the_fixed_vector_says_what_a_plain_program_says(data: Path, fixed: Speller) -> None:
    words = ["attention", "be", "thought", "christmas", "xylophone", "internationalisation"]
    assert fixed.spell(words) == [plainly(data / "pretrained" / FIXED, word) for word in words]


def test_a_recording_of_the_fixed_vector(fixed: Speller) -> None:
    words = ["attention", "be", "thought"]
    pairs = list(zip(words, fixed.spell(words), strict=True))
    recording = regard.record(fixed, pairs=pairs, gates=True)
    assert not recording.metadata.sites
    assert recording.shape("encoder.states") == (3, 10, 256)
    assert recording["decoder.gates.0.update"].max() <= 1
    np.testing.assert_array_equal(recording["predictions"], recording["targets"])


def dictionary(path: Path) -> dict[str, list[list[str]]]:
    """Spellings of letters only, with all their pronunciations: `word` and `word(2)` are one."""
    entries: dict[str, list[list[str]]] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        word, *sounds = line.partition("#")[0].split()
        word = word.partition("(")[0]
        if word.isascii() and word.isalpha():
            entries.setdefault(word, []).append(sounds)
    return entries


def distance(a: list[str], b: list[str]) -> int:
    """Levenshtein's edit distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@pytest.mark.parametrize(("name", "wanted", "margin"), [(ATTENTIVE, 12.2, 2.0), (FIXED, 9.1, 1.5)])
def test_phoneme_error_on_the_dictionary(
    data: Path, name: str, wanted: float, margin: float
) -> None:
    """600 random words; of several pronunciations the nearest counts; errors per phoneme.

    The margin is about two standard deviations of such a sample.
    """
    entries = dictionary(data / "cmudict" / "cmudict.dict.gz")
    words = np.random.default_rng(0).choice(sorted(entries), 600, replace=False).tolist()
    said = load_published(data / "pretrained" / name).spell(words)
    errors = phonemes = 0
    for word, row in zip(words, said, strict=True):
        error, length = min((distance(row, right), len(right)) for right in entries[word])
        errors, phonemes = errors + error, phonemes + length
    assert abs(100 * errors / phonemes - wanted) < margin
