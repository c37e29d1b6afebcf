"""Models that others made: looked at, changed where their hook points allow it, else a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.explorer import questions
from regard.explorer.finders import find_heads, find_sentences
from regard.explorer.heads import show_head
from regard.explorer.saving import save_view
from regard.explorer.saying import say
from regard.explorer.seeds import fold
from regard.explorer.spaces import find_neighbours
from regard.explorer.splitting import split_head
from regard.explorer.things import Things
from regard.explorer.trees import grow_tree
from regard.explorer.views import Views

SOURCE, TARGET, SITE = "5 6 7 8", "9 10 11", "decoder.1.cross"
FED = {"thing": "bart", "source": SOURCE, "target": TARGET, "feed": "target"}


def ready() -> None:
    """Somebody waits."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BART of random weights, without a tokenizer: sentences are numbers."""
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        max_position_embeddings=200, init_std=0.4, forced_bos_token_id=7,
    )  # fmt: skip
    where = tmp_path_factory.mktemp("models") / "bart"
    transformers.BartForConditionalGeneration(config).eval().save_pretrained(where)
    return where


@pytest.fixture(scope="module")
def net(folder: Path) -> Any:
    """The same model, as `transformers` runs it."""
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    found = transformers.BartForConditionalGeneration.from_pretrained(folder).eval()
    found.set_attn_implementation("eager")
    return found


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Path:
    """A recording of it, in a file."""
    rng = np.random.default_rng(0)
    pairs = [
        ([*rng.integers(8, 40, 5).tolist(), 2], [*rng.integers(8, 40, 4).tolist(), 2])
        for _ in range(30)
    ]
    where = folder.parent / "bart.safetensors"
    regard.record(regard.hugging_face(folder), pairs=pairs, also=("values",), out=where)
    return where


@pytest.fixture(scope="module")
def views(folder: Path, recorded: Path) -> Views:
    """The model with its recording beside it."""
    return Views(Things([folder, recorded]))


def ask_head(views: Views, changes: Any = (), **more: Any) -> Any:
    asked = questions.HeadQuestion(**{**FED, "site": SITE, "head": 1, "changes": changes, **more})
    return show_head(views, asked, ready)[1]


def run(net: Any, views: Views, **more: Any) -> Any:
    """The same pass by `transformers` alone."""
    look = views.look(questions.Question(**FED), ready)
    source, fed = (torch.from_numpy(x)[None] for x in (look.source, look.fed))
    with torch.no_grad():
        return net(source, decoder_input_ids=fed, output_attentions=True, **more)


def test_its_attention_is_that_of_transformers(views: Views, net: Any) -> None:
    out = run(net, views)
    found = ask_head(views)
    np.testing.assert_allclose(found["weights"], out.cross_attentions[1][0, 1], atol=1e-5)
    answer = say(views, questions.Question(**FED), ready)
    assert len(answer["sites"]) == 5 and answer["fixed"] == {}
    chances = out.logits[0].softmax(dim=1)
    for step, entry in enumerate(answer["forced"]["steps"]):
        assert entry["p"] == pytest.approx(float(chances[step, int(entry["word"])]), abs=1e-5)


def test_its_first_word_is_the_one_that_it_is_forced_to_say(views: Views) -> None:
    answer = say(views, questions.Question(thing="bart", source=SOURCE), ready)
    assert answer["free"]["steps"][0]["word"] == "7"


def test_a_head_taken_out_is_what_transformers_says_without_it(views: Views, net: Any) -> None:
    """By hand: the columns of the output map that meet the head are zero."""
    change = {"kind": "head", "site": SITE, "head": 1}
    asked = questions.Question(**FED, changes=[change])
    found = say(views, asked, ready)["forced"]["steps"]
    weight = net.model.decoder.layers[1].encoder_attn.out_proj.weight
    kept = weight.data.clone()
    try:
        weight.data[:, 8:] = 0
        chances = run(net, views).logits[0].softmax(dim=1)
    finally:
        weight.data.copy_(kept)
    for step, entry in enumerate(found):
        assert entry["p"] == pytest.approx(float(chances[step, int(entry["word"])]), abs=1e-5)
    assert not ask_head(views, [change])["weights"].any()


def test_a_weight_is_set_at_its_step_and_what_follows_may_change(views: Views) -> None:
    change = {"kind": "weight", "site": "decoder.0.cross", "step": 2, "source": 1, "weight": 1.0}
    before, now = (ask_head(views, changes)["weights"] for changes in ((), [change]))
    assert np.allclose(now[:2], before[:2], atol=1e-6) and not np.allclose(now[2], before[2])
    own = ask_head(views, [{**change, "head": 1}], site="decoder.0.cross")["weights"]
    assert own[2].tolist() == pytest.approx([0, 1, 0, 0], abs=1e-6)
    answer = say(views, questions.Question(**FED, changes=[change]), ready)
    assert answer["reach"][SITE] == 2 and answer["reach"]["encoder.0.self"] is None


def test_words_chosen_step_by_step_see_the_change_at_the_same_step(views: Views) -> None:
    """All words so far run at each step: a change at step 1 must not move to other steps."""
    change = {"kind": "weight", "site": SITE, "step": 1, "source": 0, "weight": 1.0}
    free = questions.Question(thing="bart", source=SOURCE, changes=[change])
    said = [s["word"] for s in say(views, free, ready)["free"]["steps"]]
    forced = dict(enumerate(said))
    again = questions.Question(thing="bart", source=SOURCE, changes=[change], forced=forced)
    steps = say(views, again, ready)["free"]["steps"]
    assert all(step["first"] for step in steps[1:])  # the first word is forced on every output


def test_terms_add_up_and_sliders_scale_them(views: Views, recorded: Path) -> None:
    arrays = split_head(views, questions.HeadQuestion(**FED, site=SITE, head=1), ready)[1]
    scores = ask_head(views)["scores"]
    np.testing.assert_allclose(arrays["terms"].sum(axis=0), scores, atol=1e-4)
    queries, keys = regard.load_recording(recorded).decomposition.site(SITE).head(1)
    steps, width = scores.shape
    own = queries.temporal[:steps] @ keys.temporal[:width].T
    np.testing.assert_allclose(arrays["terms"][0], own, atol=1e-4)
    factors = [0.0, *[1.0] * 8]
    change = {"kind": "terms", "site": SITE, "head": 1, "factors": factors}
    scaled = ask_head(views, [change])["scores"]
    np.testing.assert_allclose(scaled, arrays["terms"][1:].sum(axis=0), atol=1e-4)
    part = {"kind": "part", "site": SITE, "part": "temporal", "where": "keys"}
    without = ask_head(views, [part])["scores"]
    expected = arrays["terms"].reshape(3, 3, steps, width)[:, 1:].sum(axis=(0, 1))
    np.testing.assert_allclose(without, expected, atol=1e-4)


def test_states_and_units_are_changed(views: Views) -> None:
    put = {"kind": "state", "side": "encoder", "step": 1, "sentence": "30 31 32", "other": 1}
    before = ask_head(views)["weights"]
    moved = ask_head(views, [put])["weights"]
    assert not np.allclose(before, moved)
    gone = ask_head(views, [{"kind": "unit", "side": "encoder", "unit": 3}])["weights"]
    assert not np.allclose(before, gone)


def test_a_beam_is_that_of_transformers(views: Views, net: Any) -> None:
    """The best of the tree has the score that a pass gives its words."""
    asked = questions.BeamQuestion(thing="bart", source=SOURCE, width=3)
    tree = grow_tree(views, asked, ready)["tree"]
    best = max((n for n in tree if n["best"]), key=lambda n: n["step"])
    words = [int(word) for word in best["path"]]
    look = views.look(questions.Question(thing="bart", source=SOURCE), ready)
    fed = torch.tensor([[int(look.fed[0]), *words[:-1]]])
    with torch.no_grad():
        logits = net(torch.from_numpy(look.source)[None], decoder_input_ids=fed).logits[0]
    total = logits.log_softmax(dim=1)[range(len(words)), words].sum()
    assert best["score"] == pytest.approx(float(total), abs=1e-3)


@pytest.mark.parametrize("changes", [
    [], [{"kind": "terms", "site": SITE, "head": 1, "factors": [0] + [1] * 8}],
    [{"kind": "head", "site": SITE, "head": 0},
     {"kind": "state", "side": "encoder", "step": 1, "sentence": "30 31", "other": 0}],
])  # fmt: skip
def test_the_lines_of_python_give_the_same_numbers(views: Views, changes: Any) -> None:
    asked = questions.ExportQuestion(**FED, site=SITE, head=1, changes=changes, form="python")
    lines = bytes(save_view(views, asked, ready).body).decode()
    scope: dict[str, Any] = {}
    exec(lines, scope)  # what a person would paste
    np.testing.assert_allclose(scope["weights"], ask_head(views, changes)["weights"], atol=1e-5)


def test_finders_and_neighbours_read_the_recording_beside(views: Views, recorded: Path) -> None:
    from types import SimpleNamespace

    asked: Any = SimpleNamespace(thing="bart", checkpoint="reported", most=300)
    rows = find_heads(views, asked, ready)["rows"]
    assert len(rows) == 10 and all("lost" in row for row in rows)
    sentences = find_sentences(views, asked, ready)["rows"]
    rec = regard.load_recording(recorded)
    words = rec["encoder.words"][3][rec["encoder.mask"][3]].tolist()
    assert sentences[3]["source"].split() == [str(n) for n in words if n != 2]
    near = questions.NearQuestion(**FED, side="encoder", step=1, count=4)
    assert len(find_neighbours(views, near, ready)["near"]) == 4


def test_without_sentences_it_says_what_is_missing(folder: Path) -> None:
    views = Views(Things([folder]))
    fixed = say(views, questions.Question(**FED), ready)["fixed"]
    assert set(fixed) == {"terms", "part"} and "--sentences" in fixed["terms"]
    change = {"kind": "part", "site": SITE, "part": "input", "where": "keys"}
    with pytest.raises(regard.RegardError, match="without sentences"):
        ask_head(views, [change])
    assert ask_head(views, [{"kind": "head", "site": SITE, "head": 0}])["weights"].any()


def test_sentences_are_read_from_a_file(folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "sentences.txt"
    lines.write_text("9 10 11\n12 13 14 15\n\n16 17\n", encoding="utf-8")
    with pytest.raises(regard.RegardError, match="no tokenizer"):
        Things([folder], sentences=lines)["bart"].reference("reported")
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(regard.RegardError, match="no sentence"):
        Things([folder], sentences=tmp_path / "empty.txt")
    with pytest.raises(regard.RegardError, match="cannot be read"):
        Things([folder], sentences=tmp_path / "none.txt")


def test_a_recording_knows_its_model_and_is_not_changed(views: Views, recorded: Path) -> None:
    things = {thing["name"]: thing for thing in views.list_things()}
    assert things["bart.safetensors"]["maker"] == "bart"
    asked = questions.HeadQuestion(thing="bart.safetensors", sample=2, site=SITE)
    assert "nothing runs" in say(views, asked, ready)["fixed"]["weight"]
    rec = regard.load_recording(recorded)
    steps, width = int(rec["decoder.mask"][2].sum()), int(rec["encoder.mask"][2].sum())
    terms = split_head(views, asked, ready)[1]["terms"]
    scores = rec[f"{SITE}.scores"][2, 0, :steps, :width]
    np.testing.assert_allclose(terms.sum(axis=0), scores, atol=1e-4)
    parts = rec.decomposition.site(SITE).head(0)
    words = rec.compact["encoder.words"][2, :width]
    chi = parts[0].temporal[:steps] @ parts[1].input[words].T  # μ·χ: numbers as averages have them
    np.testing.assert_allclose(terms[1], chi, atol=1e-4)
    saved = questions.ExportQuestion(thing="bart.safetensors", sample=2, site=SITE, form="python")
    lines = bytes(save_view(views, saved, ready).body).decode()
    scope: dict[str, Any] = {}
    exec(lines, scope)
    np.testing.assert_array_equal(scope["weights"], rec[f"{SITE}.weights"][2, 0, :steps, :width])


def test_texts_that_differ_become_nothing_and_numbers_a_mean() -> None:
    found = fold([{"a": 1, "b": "x", "c": [1, 2]}, {"a": 3, "b": "y", "c": [3]}], "mean")
    assert found == {"a": 2.0, "b": None, "c": [2.0]}
