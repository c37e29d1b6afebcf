"""Co-occurrence and IBM Model 1 against loops; the proxy's first movement against autograd."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from benchmarks.ibm import agree_on_tables, ibm_ratio, plain_ibm1, zipfian
from regard import RegardError
from regard.instruments.words import Cooccurrence, Counts, _meetings, _spool, count_pairs
from regard.instruments.words._pairs import Pair
from regard.instruments.words.ibm1 import NULL
from regard.papers.snell2021 import identity, initial_gradient

WORDS = st.lists(st.sampled_from("abcde"), max_size=5)
CORPUS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=8)
FULL = st.lists(
    st.tuples(*(st.lists(st.sampled_from("abcde"), min_size=1, max_size=5),) * 2),
    min_size=1,
    max_size=8,
)


def table(pairs: list[Pair]) -> dict[tuple[object, object], float]:
    """Eq. 16 in loops."""
    found: dict[tuple[object, object], float] = defaultdict(float)
    for source, target in pairs:
        for i in source:
            for o in target:
                found[i, o] += 1 / len(source)
    return dict(found)


def cells(counted: Cooccurrence) -> dict[tuple[object, object], float]:
    coo = counted.matrix.tocoo()
    return {
        (counted.sources[i], counted.targets[o]): float(value)
        for i, o, value in zip(*coo.coords, coo.data, strict=True)
    }


@given(CORPUS)
@settings(max_examples=20, deadline=None)
def test_cooccurrence_is_equation_16(pairs: list[Pair]) -> None:
    found = regard.cooccurrence(pairs)
    assert cells(found) == pytest.approx(table(pairs))
    assert found.pairs == len(pairs)


@given(CORPUS, st.integers(0, 8), st.integers(0, 8), st.randoms())
@settings(max_examples=20, deadline=None)
def test_counts_merge_in_any_order(pairs: list[Pair], a: int, b: int, rng: random.Random) -> None:
    first, second = sorted((a, b))
    parts = [count_pairs(p) for p in (pairs[:first], pairs[first:second], pairs[second:])]
    rng.shuffle(parts)
    merged = Counts()
    for part in parts:
        merged.merge(pickle.loads(pickle.dumps(part)))
    assert cells(merged.result()) == pytest.approx(table(pairs))
    assert merged.pairs == len(pairs)


def test_equals_keep_the_order_in_which_they_came() -> None:
    words = [f"w{k}" for k in range(40)]
    found = regard.cooccurrence([(["x"], [word]) for word in words] + [(["x"], ["w17"])])
    assert [word for word, _ in found.highest("x", 41)] == ["w17", *words[:17], *words[18:]]


def test_processes_count_the_same() -> None:
    pairs = [*zipfian(2500, words=50), (["ä"], ["b", "b"])]
    found = regard.cooccurrence(iter(pairs), jobs=2)
    assert cells(found) == pytest.approx(table(pairs))


@given(FULL, st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_the_plain_version_gives_the_same(pairs: list[Pair], steps: int) -> None:
    agree_on_tables(plain_ibm1(pairs, steps), pairs, steps)


def test_pieces_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = zipfian(300, words=60)
    whole = regard.ibm1(pairs, 3)
    monkeypatch.setattr(_meetings, "MEETINGS", 6000)
    monkeypatch.setattr(_meetings, "CELLS", 1000)
    monkeypatch.setattr(_spool, "MOST", 2**17)  # some in memory, some in files
    split = regard.ibm1(pairs, 3)
    assert split.sources == whole.sources
    np.testing.assert_allclose(split.matrix.toarray(), whole.matrix.toarray(), rtol=1e-10)
    assert split.likelihood == pytest.approx(whole.likelihood)


def test_no_step_and_one_step_are_the_count_table() -> None:
    pairs = zipfian(200, words=40)
    shares = regard.cooccurrence(pairs).shares.toarray()
    for steps in (0, 1):
        np.testing.assert_allclose(regard.ibm1(pairs, steps).matrix.toarray(), shares, rtol=1e-12)


@pytest.mark.parametrize("null", [False, True])
def test_the_likelihood_rises(null: bool) -> None:
    found = regard.ibm1(zipfian(400, words=80), 12, null=null)
    assert len(found.likelihood) == 12
    assert np.all(np.diff(found.likelihood) >= -1e-9)
    np.testing.assert_allclose(np.asarray(found.matrix.sum(axis=1)).ravel(), 1, rtol=1e-12)


def test_the_likelihood_is_what_it_says() -> None:
    pairs = zipfian(30, words=12)
    found = regard.ibm1(pairs, 3)
    wanted = sum(
        np.log(sum(found.translation(i, o) for i in source) / len(source))
        for source, target in pairs
        for o in target
    )
    assert found.likelihood[-1] == pytest.approx(wanted)


def test_scores_of_sentences() -> None:
    pairs: list[Pair] = [(["das", "Haus"], ["the", "house"]), (["das"], ["the"])]
    found = regard.ibm1(pairs, 8)
    new: list[Pair] = [*pairs, (["Haus", "neu"], ["house", "new", "the"]), ([], ["the"])]
    beta, alpha = found.beta(new), found.alpha(new)
    assert beta.values.shape == (4, 3, 2)
    for m, (source, target) in enumerate(new):
        for t, o in enumerate(target):
            row = [found.translation(i, o) for i in source]
            assert beta.values[m, t, : len(row)] == pytest.approx(row)
            assert beta.mask[m, t].sum() == len(row)
            if sum(row):
                assert alpha.values[m, t, : len(row)] == pytest.approx(np.array(row) / sum(row))
    assert alpha.values[2, 1] == pytest.approx([0.5, 0.5]), "nothing is known: all alike"
    assert found.align(new) == [[0, 1], [0], [0, -1, 0], [-1]]
    assert found.best("Haus", 1)[0][0] == "house"
    assert found.translation("Haus", "unheard") == found.translation("unheard", "house") == 0
    assert regard.agreement(alpha, beta) == 1


def test_null() -> None:
    pairs: list[Pair] = [([w], [w.upper(), "!"]) for w in "abcdefgh"] * 3
    found = regard.ibm1(pairs, 20, null=True)
    assert found.best(NULL, 1)[0][0] == "!"
    assert found.align(pairs)[0] == [0, -1]
    assert found.alpha(pairs).values[0, 1, 0] < 0.5
    assert found.beta(pairs).values.shape == (24, 2, 1)


def permutations(words: int, taken: int, n: int, start: int = 0) -> list[Pair]:
    rng = np.random.default_rng(0)
    rows = [(start + rng.permutation(words)[:taken]).tolist() for _ in range(n)]
    return [(row, row) for row in rows]


def test_permutations_say_nothing() -> None:
    """Fig. 4: all of one set; Fig. 8: two disjoint sets; and the control, 40 of 60."""
    alone = regard.cooccurrence(permutations(40, 40, 50))
    mixed = regard.cooccurrence(permutations(40, 40, 50) + permutations(40, 40, 50, start=40))
    easy = regard.cooccurrence(permutations(60, 40, 500))
    assert alone.spread == mixed.spread == 0
    assert np.ptp(alone.dense()) == pytest.approx(0)
    assert np.count_nonzero(mixed.dense()) == 2 * 40**2
    assert easy.spread > 0.04
    assert all(easy.highest(w, 1)[0][0] == w for w in easy.sources)
    with pytest.raises(RegardError, match="teach a bag of words nothing"):
        identity(permutations(5, 5, 10))


def test_a_task_and_a_run_have_pairs(tmp_path: Path) -> None:
    run = regard.train("one-to-one", "aed", 0, tmp_path, hidden=4, updates=0, held_out=5)
    found = regard.cooccurrence(run, n=40)
    assert found.pairs == 40
    assert set(found.sources) <= {"A", "B", "C"} and "<EOS>" not in found.targets
    assert regard.ibm1(run.config.make_task(), n=30).likelihood


def by_autograd(pairs: list[Pair], d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """∂θ̂/∂τ and ∂θ/∂τ by a derivative along minus the gradient of eq. 14."""
    counts = regard.cooccurrence(pairs)
    rng = np.random.default_rng([seed, d])
    e, w = (
        torch.tensor(rng.normal(size=(n, d)) / np.sqrt(d), requires_grad=True)
        for n in counts.matrix.shape
    )
    loss = torch.zeros((), dtype=torch.float64)
    for source, target in pairs:
        mean = e[[counts.rows[i] for i in source]].mean(dim=0)
        loss = loss - torch.log_softmax(w @ mean, 0)[[counts.columns[o] for o in target]].sum()
    down = tuple(-g for g in torch.autograd.grad(loss, (e, w)))
    found = [
        torch.autograd.functional.jvp(f, (e.detach(), w.detach()), down)[1].numpy()
        for f in (lambda e, w: e @ w.T, lambda e, w: torch.softmax(e @ w.T, 1))
    ]
    return found[0], found[1]


@pytest.mark.parametrize("d", [3, 40])
def test_the_first_movement_is_exact(d: int) -> None:
    pairs = zipfian(20, words=9, mean=5)
    found = initial_gradient(pairs, d, seed=2)
    logits, probabilities = by_autograd(pairs, d, 2)
    np.testing.assert_allclose(found.logits, logits, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.probabilities, probabilities, rtol=1e-9, atol=1e-11)


def test_the_first_movement_goes_to_the_count_table() -> None:
    """With 2/|O|, not the paper's 2, for the probabilities."""
    pairs = permutations(12, 6, 60)
    result = identity(pairs, sizes=(64, 1024, 16384), seeds=(0, 1, 2))
    made = initial_gradient(pairs, 16384)
    centred = regard.cooccurrence(pairs).centred()
    np.testing.assert_allclose(made.limit["logits"], 2 * centred)
    np.testing.assert_allclose(made.limit["probabilities"], 2 / 12 * centred)
    for what in ("θ", "θ̂"):
        errors = [result.at(f"{what} error", d).mean for d in (64, 1024, 16384)]
        assert errors[0] > 2 * errors[1] > 4 * errors[2] and errors[2] < 0.1
        assert result.at(f"{what} correlation", 16384).mean > 0.99
    assert result.estimates()["slope"].mean == pytest.approx(-0.5, abs=0.1)
    assert len(result.table().rows) == 3 and result.figure().interactive()["data"]
    assert result.bounds("θ error d=64")[0] == 0
    assert result.bounds("θ correlation d=64") == (-1, 1) and result.bounds("slope") is None


def test_results_show_themselves(tmp_path: Path) -> None:
    pairs = zipfian(60, words=30)
    for result in (regard.cooccurrence(pairs), regard.ibm1(pairs, 2)):
        assert result.table().rows and result.to_json()["cells"] == result.matrix.nnz
        assert result.figure().interactive()["data"]
    alone = regard.ibm1([(["only"], []), (["a"], ["b"])])
    assert alone.best("only") == [] and alone.table().rows[0][0] == "a"
    files = result.save(tmp_path)
    assert [f.name for f in files] == [f"ibm1.{end}" for end in ("json", "csv", "svg", "html")]


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([], "no pair"),
        ([([], [])], "words on both sides|nothing to learn"),
        ([("das Haus", "the house")], "is a text"),
        ("das Haus", "no pair of sentences"),
        ([(["a"], ["b"], ["c"])], "no pair of sentences"),
    ],
)
def test_what_is_no_corpus(pairs: list[Pair], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        regard.ibm1(pairs)


def test_wrong_settings() -> None:
    with pytest.raises(RegardError, match="iterations"):
        regard.ibm1([(["a"], ["b"])], -1)
    with pytest.raises(RegardError, match="jobs"):
        regard.cooccurrence([(["a"], ["b"])], jobs=0)
    with pytest.raises(RegardError, match="no pairs"):
        regard.cooccurrence([])
    with pytest.raises(RegardError, match="no source word"):
        regard.ibm1([(["a"], ["b"])]).best("z")


def test_the_ratio_is_measured_on_equal_tables() -> None:
    found = ibm_ratio(pairs=400, iterations=2, rounds=1)
    assert found["ratio"] > 0 and found["plain_pairs"] == found["pairs"] == 400
    wrong = plain_ibm1(zipfian(50, words=20), 1)
    wrong[0][0] = 0.123
    with pytest.raises(RegardError, match="nothing to compare"):
        agree_on_tables(wrong, zipfian(50, words=20), 1)


def test_five_words_unless_told() -> None:
    table = regard.ibm1([(["a"], [word]) for word in "uvwxyz"])
    assert len(table.highest("a")) == 5 and len(table.highest("a", 6)) == 6
