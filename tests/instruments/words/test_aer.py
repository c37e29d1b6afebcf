"""Word alignments: files, two directions, and the error rate, against published ones."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard import RegardError, Scores, alignment_error_rate, read_alignments
from regard.instruments.words import Alignment, link_best, match_links, pool_pieces, symmetrise
from regard.instruments.words._subwords import number_pieces

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=10)


def test_reading(tmp_path: Path) -> None:
    file = tmp_path / "gold"
    file.write_text("1-1 2p3\n\n3-2 \n")
    one, none, last = read_alignments(file)
    assert one == Alignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    assert none == Alignment.of([]) and last.sure == {(2, 1)}
    assert one.turned.possible == {(0, 0), (2, 1)} and one.turned.turned == one
    assert read_alignments(file, first=0)[0].sure == {(1, 1)}
    zipped = tmp_path / "other.gz"
    zipped.write_bytes(gzip.compress(b"0-1 2-2\n5-5\n"))
    assert read_alignments(zipped)[1].sure == {(5, 5)}, "a 0 anywhere: the file counts from 0"
    with pytest.raises(RegardError, match=r"other.gz, line 1: .*first=1"):
        read_alignments(zipped, first=1)


@pytest.mark.parametrize("line", ["1-2 3", "1-b", "1--2", "1-2-3", "-1-2", "1s2"])
def test_bad_lines_are_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad"
    file.write_text(f"1-1\n{line}\n")
    with pytest.raises(RegardError, match=r"bad, line 2: .* is no link") as raised:
        read_alignments(file)
    assert "1p2 (possible)" in str(raised.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no file"):
        read_alignments(tmp_path / "absent")
    with pytest.raises(RegardError, match="folder"):
        read_alignments(tmp_path)
    (tmp_path / "bytes").write_bytes(b"1-1\n\xff\n")
    with pytest.raises(RegardError, match=r"line 2.*UTF-8"):
        read_alignments(tmp_path / "bytes")


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_the_error_rate(rows: list[tuple[frozenset[tuple[int, int]], ...]]) -> None:
    ours = [Alignment.of(a) for a, _, _ in rows]
    gold = [Alignment(s, p) for _, s, p in rows]
    a, s = sum(len(a) for a, _, _ in rows), sum(len(s) for _, s, _ in rows)
    right = sum(len(a & s) + len(a & (p | s)) for a, s, p in rows)
    wanted = 1 - right / (a + s) if a + s else 0.0
    assert alignment_error_rate(ours, gold) == pytest.approx(wanted)
    assert alignment_error_rate([Alignment.of(g.sure) for g in gold], gold) == 0


def test_precision_and_recall() -> None:
    gold = [Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(1, 2)}))]
    found = match_links([Alignment.of([(0, 0), (1, 2), (3, 3)])], gold)
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), 0.5)
    with pytest.raises(RegardError, match="same pairs"):
        alignment_error_rate(gold, gold * 2)


def test_two_directions() -> None:
    one = [Alignment.of([(0, 0), (1, 1), (2, 2), (4, 4)])]
    two = [Alignment.of([(0, 0), (1, 2), (2, 2), (5, 4)])]
    ways = ("intersection", "union", "grow-diag-final", "grow-diag-final-and", "strict")
    links = {way: symmetrise(one, two, way)[0].sure for way in ways}  # type: ignore[arg-type]
    assert links["intersection"] == {(0, 0), (2, 2)}
    assert links["union"] == one[0].sure | two[0].sure
    assert links["grow-diag-final"] == links["union"] - {(1, 2)}
    assert links["grow-diag-final-and"] == {(0, 0), (1, 1), (2, 2), (4, 4)} == links["strict"]
    with pytest.raises(RegardError, match="no way to join"):
        symmetrise(one, two, "grow")  # type: ignore[arg-type]


@pytest.mark.parametrize(("program", "error"), [("giza", 0.062), ("fastalign", 0.121)])
def test_published_alignments(real: Callable[[str], Path], program: str, error: float) -> None:
    folder = real("word_alignment")
    gold = read_alignments(folder / "enfr.gold.gz")
    forward, backward, both = (
        read_alignments(folder / f"baseline_{program}.enfr{way}.talp.gz")
        for way in ("", ".reverse", ".grow-diagonal-final")
    )
    assert len(gold) == len(both) == 447
    assert alignment_error_rate(both, gold) == pytest.approx(error, abs=5e-4)
    ours = symmetrise(forward, [b.turned for b in backward], "strict")
    assert alignment_error_rate(ours, gold) == pytest.approx(error, abs=1e-3)
    assert np.mean([a == b for a, b in zip(ours, both, strict=True)]) > 0.95


def test_ibm1_on_the_sentences_that_people_aligned(real: Callable[[str], Path]) -> None:
    folder = real("word_alignment")
    text = gzip.decompress((folder / "enfr.src-tgt.gz").read_bytes()).decode().splitlines()
    pairs = [tuple(side.split() for side in line.split("|||")) for line in text]
    model = regard.ibm1(pairs, 5)  # type: ignore[arg-type]
    result = regard.aer(model.alpha(pairs), folder / "enfr.gold.gz")  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    random = [(rng.random((len(t), len(s)))) for s, t in pairs]
    chance = regard.aer(Scores.of(random), folder / "enfr.gold.gz")
    assert result.estimates()["aer"].mean < chance.estimates()["aer"].mean - 0.2


def test_links_of_scores() -> None:
    scores = Scores.of([np.array([[0.1, 0.5, 0.4], [0.9, 0.1, 0.0]]), np.array([[1.0]])])
    assert [a.sure for a in link_best(scores)] == [{(1, 0), (0, 1)}, {(0, 0)}]
    assert link_best(scores, 0.3)[0].sure == {(1, 0), (2, 0), (0, 1)}
    gold = [Alignment.of([(1, 0), (0, 1)]), Alignment.of([(0, 0)])]
    result = regard.aer(scores, gold)
    assert result.estimates()["aer"].mean == 0 and result.estimates()["links"].mean == 3
    for threshold in (None, 0.2, 0.45):
        found = regard.aer(scores, gold, threshold=threshold).first.match
        assert found == match_links(link_best(scores, threshold), gold)
    logs = Scores(np.log(scores.values + 1e-3), scores.mask)
    assert regard.aer(logs, gold).first.match == result.first.match
    assert regard.aer(logs, gold).figure().panels
    with pytest.raises(RegardError, match="negative"):
        regard.aer(logs, gold, threshold=0.5)
    with pytest.raises(RegardError, match="threshold=2 does not fit aer: it is at most 1"):
        regard.aer(scores, gold, threshold=2)
    with pytest.raises(RegardError, match="same pairs"):
        regard.aer(scores, gold[:1])
    with pytest.raises(RegardError, match=r"Sentence pair 2: the link 3-0"):
        regard.aer(scores, [gold[0], Alignment.of([(3, 0)])])


def test_pieces_become_words() -> None:
    names = ("<PAD>", "<SOS>", "<EOS>", "▁the", "▁tr", "ans", "late")
    special = frozenset(names[:3])
    words = np.array([[4, 5, 6, 3, 2], [3, 3, 2, 0, 0]])
    numbers = number_pieces(words, words != 0, names, special)
    assert numbers.tolist() == [[0, 0, 0, 1, -1], [0, 1, -1, -1, -1]]
    bpe = ("<PAD>", "<SOS>", "<EOS>", "the", "tr@@", "ans@@", "late")
    assert number_pieces(words, words != 0, bpe, special).tolist() == numbers.tolist()
    plain = number_pieces(words, words != 0, ("<PAD>", "<SOS>", "<EOS>", *"abcd"), special)
    assert plain[0].tolist() == [0, 1, 2, 3, -1]
    rng = np.random.default_rng(0)
    values = rng.random((2, 5, 5))
    scores = Scores.of(values)
    summed, highest = (pool_pieces(scores, numbers, numbers, way) for way in ("sum", "max"))
    assert summed.values.shape == (2, 2, 2) and summed.mask.all()
    assert summed.values[0, 0, 0] == pytest.approx(values[0, :3, :3].sum(axis=1).mean())
    assert summed.values[0, 1, 0] == pytest.approx(values[0, 3, :3].sum())
    assert highest.values[0, 0, 0] == values[0, :3, :3].max()
    assert summed.values[1, 0, 1] == values[1, 0, 1]
    empty = pool_pieces(Scores.of(np.zeros((2, 0, 5))), numbers, np.zeros((2, 0), int))
    assert empty.values.shape == (2, 0, 2)


def test_a_recording_has_its_own_links(tmp_path: Path) -> None:
    run = regard.train("one-to-one", "aed", 0, tmp_path, hidden=4, updates=0, held_out=5)
    recording = regard.record(run, n=20, inputs="teacher")
    result = regard.aer(recording)
    scores = Scores.of_attention(recording)
    gold = [
        Alignment.of((int(i), t) for t, i in enumerate(row) if i >= 0)
        for row in recording["alignment"]
    ]
    assert result.first.match == match_links(link_best(scores), gold)
    assert regard.aer(recording, [Alignment.of([(0, 0)])] * 20).first.match.sure == 20
    with pytest.raises(RegardError, match="give gold"):
        regard.aer(brute.recording(brute.arrays(0)))


@pytest.mark.parametrize("step", [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b])
def test_links_grow_to_every_neighbour_and_no_further(step: tuple[int, int]) -> None:
    for far in (1, 2):
        link = (4 + far * step[0], 4 + far * step[1])
        # One of the link's words is taken, so that it is not added at the end in any case.
        shared = {(4, 4), (9, link[1])} if all(step) else {(4, 4)}
        joined = symmetrise(
            [Alignment.of(shared | {link})], [Alignment.of(shared)], "grow-diag-final-and"
        )
        assert joined[0].sure == (shared | {link} if far == 1 else shared)
