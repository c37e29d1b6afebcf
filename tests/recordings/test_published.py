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
from regard.models import greedy
from regard.models.published import Published, load_published
from regard.models.published.layouts import LAYOUTS, Layout
from regard.models.published.speller import NEVER
from regard.tasks import EOS, PAD, SOS, Batch, collate

ATTENTIVE, FIXED = "g2p_en_1.0.1_bahdanau", "g2p_en_2.1.0_noattention"
LETTERS, SOUNDS = "abcdefghijklmnopqrstuvwxyz", ["AH0", "B", "K", "T", "IY1"]
WORDS = {
    "g2p_en 1.0.1": (["P", "E", "U", *LETTERS], ["<PAD>", "<EOS>", *SOUNDS]),
    "g2p_en 2.1.0": (
        ["<pad>", "<unk>", "</s>", *LETTERS],
        ["<pad>", "<unk>", "<s>", "</s>", *SOUNDS],
    ),
}


def arrays(layout: Layout, size: int = 6) -> dict[str, np.ndarray]:
    """Random weights with the names of a published model."""
    rng = np.random.default_rng(0)
    letters, phonemes = WORDS[layout.name]
    sizes = dict.fromkeys(layout.sizes, size)
    shapes = layout.shapes(**sizes, letters=len(letters), phonemes=len(phonemes))
    return {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def write(folder: Path, layout: Layout, weights: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **(arrays(layout) if weights is None else weights))
    letters, phonemes = WORDS[layout.name]
    text = json.dumps({"graphemes": letters, "phonemes": phonemes})
    (folder / "vocab.json").write_text(text)
    return folder


@pytest.fixture(params=LAYOUTS, ids=lambda layout: layout.name)
def layout(request: pytest.FixtureRequest) -> Layout:
    return request.param


@pytest.fixture
def model(layout: Layout, tmp_path: Path) -> Published:
    return load_published(write(tmp_path / "model", layout))


def batch(model: Published, words: list[str], said: list[list[str]]) -> Batch:
    source, target = model.source_vocabulary, model.target_vocabulary
    return collate(
        [[*source.encode(word), EOS] for word in words],
        [[*target.encode(row), EOS] for row in said],
    )


@pytest.fixture
def some(model: Published) -> Batch:
    return batch(model, ["attention", "cat", "be"], [["AH0", "T"], ["K", "AH0", "T", "B"], ["B"]])


def test_steps_trace_and_whole_agree(model: Published, some: Batch) -> None:
    whole = model(some.source, some.source_lengths, some.inputs)
    traced = model.trace(some.source, some.source_lengths, some.inputs)
    torch.testing.assert_close(traced.logits, whole.logits, atol=1e-5, rtol=1e-5)
    memory = model.encode(some.source, some.source_lengths)
    state = memory.initial
    for t in range(some.target.shape[1]):
        logits, state = model.step(memory, some.inputs[:, t], state)
        torch.testing.assert_close(logits, whole.logits[:, t], atol=1e-5, rtol=1e-5)


def test_padding_changes_nothing(model: Published, some: Batch) -> None:
    whole = model(some.source, some.source_lengths, some.inputs)
    for row in range(len(some)):
        one = some[row : row + 1]
        own = model(one.source, one.source_lengths, one.inputs)
        steps, width = one.target.shape[1], one.source.shape[1]
        torch.testing.assert_close(whole.logits[row, :steps], own.logits[0], atol=1e-5, rtol=1e-5)
        for name, site in whole.sites.items():
            there = site.weights[row, :, :steps]
            torch.testing.assert_close(there[..., :width], own.sites[name].weights[0])
            assert (there[..., width:] == 0).all()


def test_gates_have_names_and_belong_to_their_words(model: Published, some: Batch) -> None:
    gates = model.trace(some.source, some.source_lengths, some.inputs).gates
    ways = ["ahead", "back"] if "additive" in sites(model, some) else ["ahead"]
    places = [*(f"encoder.gates.0.{way}" for way in ways), "decoder.gates.0"]
    assert set(gates) == {f"{place}.{gate}" for place in places for gate in ("reset", "update")}
    if ways == ["ahead"]:
        return
    # The last word is the first that a backward cell reads: its gates follow from it alone.
    cell = model.encoder.back[0]
    x = model.source_embedding.look_up(torch.full((len(some),), EOS))
    _, first = cell.step(cell.project(x), cell.initial(len(some)))
    last = some.source_lengths - 1
    found = gates["encoder.gates.0.back.reset"][torch.arange(len(some)), last]
    torch.testing.assert_close(found, first["reset"])


def sites(model: Published, some: Batch) -> set[str]:
    output = model(some.source, some.source_lengths, some.inputs)
    return {site.score for site in output.sites.values()}


def test_gradients_reach_every_parameter(model: Published, some: Batch) -> None:
    output = model(some.source, some.source_lengths, some.inputs)
    output.logits[..., EOS:].square().sum().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


def test_words_that_they_do_not_have_are_never_chosen(model: Published, some: Batch) -> None:
    output = model(some.source, some.source_lengths, some.inputs)
    if output.sites:
        assert (output.logits[..., PAD] <= NEVER).all()
        assert (greedy(model, model.encode(some.source, some.source_lengths), 9)[:, 0] != PAD).all()
    assert output.logits.isfinite().all()
    assert len(model.spell(["cat", "BAT"])) == 2 and model.spell([]) == []


def test_unknown_letters_are_named(model: Published) -> None:
    with pytest.raises(RegardError, match=r"\['ï'\] are not in the vocabulary"):
        model.spell(["naïve"])


def test_record_takes_the_models_vocabularies(model: Published, some: Batch) -> None:
    pairs = [("cat", ["K", "AH0", "T"]), ("be", ["B", "IY1"])]
    recording = regard.record(model, pairs=pairs, inputs="teacher", gates=True)
    assert recording.words("encoder") == model.source_vocabulary.words
    assert recording.words("decoder") == model.target_vocabulary.words
    assert recording.shape("encoder.words") == (2, 4)
    np.testing.assert_array_equal(
        recording["decoder.words"][1], [SOS, *model.target_vocabulary.encode(["B", "IY1"]), PAD]
    )
    logits = recording["decoder.states"] @ recording.readout("state").T + recording["readout.bias"]
    if "attention.weights" in recording:
        context = recording["weights"][:, 0] @ recording["encoder.states"]
        logits = logits + context @ recording.readout("context").T
    there = recording["decoder.mask"]
    np.testing.assert_array_equal(logits.argmax(-1)[there], recording["predictions"][there])


def test_a_model_alone_does_not_know_what_to_read(model: Published) -> None:
    with pytest.raises(RegardError, match="pairs="):
        regard.record(model)


# What is wrong with a folder.


def test_missing_folder_and_files(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"There is no folder .*nowhere"):
        load_published(tmp_path / "nowhere")
    with pytest.raises(RegardError, match=r"There is no weights\.npz in"):
        load_published(tmp_path)
    folder = write(tmp_path / "model", LAYOUTS[0])
    (folder / "vocab.json").unlink()
    with pytest.raises(RegardError, match=r"There is no vocab\.json in .*graphemes"):
        load_published(folder)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_npz(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path / "model", LAYOUTS[0])
    (folder / "weights.npz").write_bytes(content)
    with pytest.raises(RegardError, match=r"weights\.npz is not a whole npz file"):
        load_published(folder)


def test_a_single_array_and_pickled_objects_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", LAYOUTS[0])
    with (folder / "weights.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(RegardError, match="not a whole npz file"):
        load_published(folder)
    np.savez(folder / "weights.npz", dangerous=np.array([{}], dtype=object))
    with pytest.raises(RegardError, match="not a whole npz file of plain arrays"):
        load_published(folder)


def test_what_is_missing_and_what_is_strange_is_named(layout: Layout, tmp_path: Path) -> None:
    weights = arrays(layout)
    gone = sorted(weights)[0]
    del weights[gone]
    weights["optimiser.step"] = np.zeros(1, dtype=np.float32)
    with pytest.raises(RegardError) as error:
        load_published(write(tmp_path, layout, weights))
    lacks, holds = error.value.faults
    assert layout.name in lacks and f"lacks '{gone}'" in lacks
    assert "also holds 'optimiser.step'" in holds


def test_another_model_altogether(tmp_path: Path) -> None:
    folder = write(tmp_path, LAYOUTS[0], {"wte": np.zeros((2, 2), dtype=np.float32)})
    with pytest.raises(RegardError, match=r"g2p_en 1\.0\.1 and g2p_en 2\.1\.0\): it holds 'wte'"):
        load_published(folder)


def test_shapes_and_kinds_that_do_not_fit(layout: Layout, tmp_path: Path) -> None:
    weights = arrays(layout)
    name = next(name for name in weights if name not in layout.sizes.values())
    weights[name] = np.concatenate([weights[name], weights[name]])
    with pytest.raises(RegardError, match=rf"'{name}' has the shape .* should have"):
        load_published(write(tmp_path, layout, weights))
    weights[name] = np.zeros(3, dtype=np.int64)
    with pytest.raises(RegardError, match=f"not real numbers: '{name}'"):
        load_published(write(tmp_path, layout, weights))
    weights[next(iter(layout.sizes.values()))] = np.float32(1.0)
    weights[name] = np.zeros(3, dtype=np.float32)
    with pytest.raises(RegardError, match="should have"):
        load_published(write(tmp_path, layout, weights))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('{"graphemes": []}', "cannot be read"),
        ('{"graphemes": "abc", "phonemes": []}', "not a word"),
        ('{"graphemes": ["a"], "phonemes": ["B"]}', "graphemes lack 'P', 'E'"),
        ('{"graphemes": ["P", "E", "a", "a"], "phonemes": []}', "'a' more than once"),
    ],
)
def test_vocabularies_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    folder = write(tmp_path, LAYOUTS[0])
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
def attentive(data: Path) -> Published:
    return load_published(data / "pretrained" / ATTENTIVE)


@pytest.fixture(scope="module")
def fixed(data: Path) -> Published:
    return load_published(data / "pretrained" / FIXED)


def expected(data: Path) -> list[dict[str, Any]]:
    return json.loads((data / "pretrained" / ATTENTIVE / "expected.json").read_text())["cases"]


def test_parameter_counts(attentive: Published, fixed: Published) -> None:
    assert attentive.parameter_count == 355_400
    assert fixed.parameter_count == 834_890


def test_attention_and_outputs_are_the_expected_ones(data: Path, attentive: Published) -> None:
    cases = expected(data)
    words = [case["in"] for case in cases]
    assert attentive.spell(words) == [case["out"] for case in cases]
    assert [attentive.spell([word])[0] for word in words] == [case["out"] for case in cases]
    some = batch(attentive, words, [case["out"] for case in cases])
    for together in (True, False):
        for row, case in enumerate(cases):
            piece = some if together else some[row : row + 1]
            with torch.no_grad():
                output = attentive(piece.source, piece.source_lengths, piece.inputs)
            weights = output.sites["attention"].weights[row if together else 0, 0].numpy()
            wanted = np.array(case["attention"])
            steps, width = wanted.shape
            np.testing.assert_allclose(weights[:steps, :width], wanted, atol=2e-5)
            assert (weights[:steps, width:] == 0).all()


def test_the_recorded_scores_are_additive(data: Path, attentive: Published) -> None:
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
    (layout,) = (one for one in LAYOUTS if one.name == "g2p_en 2.1.0")
    folder = write(tmp_path / "made", layout)
    model, w = load_published(folder), arrays(layout)
    letters, phonemes = WORDS[layout.name]
    given = batch(model, ["cab", "x"], [["K", "AH0", "B"], ["T"]])
    logits = model(given.source, given.source_lengths, given.inputs).logits.detach().numpy()

    def gru(x: np.ndarray, h: np.ndarray, side: str) -> np.ndarray:
        xs = np.split(w[f"{side}_w_ih"] @ x + w[f"{side}_b_ih"], 3)
        hs = np.split(w[f"{side}_w_hh"] @ h + w[f"{side}_b_hh"], 3)
        r, z = (1 / (1 + np.exp(-xs[i] - hs[i])) for i in (0, 1))
        return (1 - z) * np.tanh(xs[2] + r * hs[2]) + z * h

    for row, (word, said) in enumerate((("cab", ["K", "AH0", "B"]), ("x", ["T"]))):
        h = np.zeros(6, dtype=np.float32)
        for letter in [*word, "</s>"]:
            h = gru(w["enc_emb"][letters.index(letter)], h, "enc")
        for step, fed in enumerate(["<s>", *said]):
            h = gru(w["dec_emb"][phonemes.index(fed)], h, "dec")
            wanted = w["fc_w"] @ h + w["fc_b"]
            for theirs, name in enumerate(phonemes):
                ours = {"<pad>": PAD, "<s>": SOS, "</s>": EOS}.get(name)
                number = model.target_vocabulary.numbers[name] if ours is None else ours
                assert logits[row, step, number] == pytest.approx(wanted[theirs], abs=1e-4), name


def test_the_fixed_vector_says_what_a_plain_program_says(data: Path, fixed: Published) -> None:
    words = ["attention", "be", "thought", "christmas", "xylophone", "internationalisation"]
    assert fixed.spell(words) == [plainly(data / "pretrained" / FIXED, word) for word in words]


def test_a_recording_of_the_fixed_vector(fixed: Published) -> None:
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
