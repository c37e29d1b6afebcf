from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks import EOS
from regard.tasks.scan.escan import Escan, base_phrases, origins

VERBS = {"I_RUN": "run", "I_WALK": "walk", "I_JUMP": "jump"}


def fits(action: str, words: list[str], place: int) -> bool:
    """Whether `action` can come from the word at `place`."""
    if words[place] == "twice":
        return words[place - 1] == VERBS.get(action)
    return words[place] == {**VERBS, "I_TURN_LEFT": "left", ".": "."}[action]


@given(
    st.integers(2, 25), st.integers(0, 6), st.booleans(), st.booleans(), st.integers(0, 999)
)  # fmt: skip
def test_words_come_from_where_the_alignment_says(
    shortest: int, more: int, period: bool, conjunction: bool, seed: int
) -> None:
    task = Escan(
        Escan.Config(
            shortest=shortest, longest=shortest + more, period=period, conjunction=conjunction
        )
    )
    batch = task.draw(np.random.default_rng(seed), 7)
    assert batch.alignment is not None
    rows = zip(batch.source.tolist(), batch.target.tolist(), batch.alignment.tolist(), strict=True)
    for source, target, alignment in rows:
        words, actions = (
            task.source_vocabulary.decode(source),
            task.target_vocabulary.decode(target),
        )
        assert shortest <= len(actions) <= shortest + more
        count = len(actions)
        assert all(map(fits, actions, [words] * count, alignment[:count]))
        assert alignment[count:] == [len(words)] + [-1] * (len(target) - count - 1)
        used = [place for place, word in enumerate(words) if word != "and"]
        assert sorted(alignment[:count]) == used, "every word but `and` gives one action"
        assert conjunction or len(words) == count


def test_phrases_are_commands_of_scan() -> None:
    assert (len(base_phrases()), len(base_phrases(conjunction=False))) == (90, 9)
    assert origins(("jump", "left", "and", "walk", "twice")) == [1, 0, 3, 4]
    assert origins(("walk", "twice", "and", "jump", "left")) == [0, 1, 4, 3]


def test_phrases_equal_the_published_ones(real: Callable[[str], Path]) -> None:
    text = real("scan/escan_base_phrases_90.tsv").read_text()
    ours = {(" ".join(phrase), " ".join(does)) for phrase, does in base_phrases().items()}
    assert ours == {tuple(line.split("\t")) for line in text.splitlines()}


def test_phrases_are_equally_likely() -> None:
    task = Escan(Escan.Config())
    batch = task.draw(np.random.default_rng(0), 9000)
    texts = [" ".join(task.source_vocabulary.decode(row)) for row in batch.source.tolist()]
    firsts, counts = np.unique([text.split(" .")[0] for text in texts], return_counts=True)
    assert len(firsts) == 90
    assert counts.min() > 60 and counts.max() < 145  # 100 expected each


@pytest.mark.parametrize("length", [2, 3, 4, 15])
def test_a_single_length_can_be_met(length: int) -> None:
    task = Escan(Escan.Config(shortest=length, longest=length))
    batch = task.draw(np.random.default_rng(0), 50)
    assert (batch.target_lengths == length + 1).all()


def test_alignment_follows_a_source_fed_backwards() -> None:
    plain = Escan(Escan.Config()).split("test")
    turned = Escan(Escan.Config(reverse_source=True)).split("test")
    assert plain.alignment is not None and turned.alignment is not None
    meant = plain.alignment >= 0
    words, moved = (
        batch.source.gather(1, batch.alignment.clamp(min=0))[meant]  # type: ignore[union-attr]
        for batch in (plain, turned)
    )
    assert (words == moved).all()
    assert (words == EOS).sum() == len(plain)
    assert ((turned.alignment >= 0) == meant).all()


def test_the_source_runs_ahead_with_every_conjunction() -> None:
    def offsets(conjunction: bool) -> list[float]:
        """How far ahead the word for each decoder step lies, on average (aitken2021, Fig. 5b)."""
        task = Escan(Escan.Config(conjunction=conjunction))
        batch = task.draw(np.random.default_rng(0), 500)
        assert batch.alignment is not None
        columns = (column[column >= 0] for column in batch.alignment.T)
        return [float((c - step).double().mean()) for step, c in enumerate(columns)]

    ahead = np.array(offsets(conjunction=True))
    assert ahead[12:15].mean() > ahead[4:7].mean() + 1 > 1.5
    assert np.abs(offsets(conjunction=False)).max() < 0.5


def test_a_batch_is_made_quickly() -> None:
    task, rng = Escan(Escan.Config()), np.random.default_rng(0)

    def seconds() -> float:
        start = time.perf_counter()
        task.draw(rng, 128)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(10)) < 0.005


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"shortest": 9, "longest": 4}, "shortest is 9 but longest is 4"),
        ({"shortest": 1, "longest": 1}, "an action and its period are 2 words"),
    ],
)
def test_bounds_must_be_possible(settings: dict[str, int], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Escan.Config(**settings)
