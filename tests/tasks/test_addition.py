from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.synthetic.addition import Addition, show_working


def pairs(task: Addition, count: int = 300) -> list[tuple[str, str]]:
    batch = task.draw(np.random.default_rng(0), count)
    return [
        ("".join(task.source_vocabulary.decode(s)), "".join(task.target_vocabulary.decode(t)))
        for s, t in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    ]


@pytest.mark.parametrize("sampling", ["value", "digits"])
def test_sums_are_right(sampling: str) -> None:
    for source, target in pairs(Addition(Addition.Config(digits="2+3", sampling=sampling))):
        a, b = map(int, source.rstrip("=").split("+"))
        assert a + b == int(target)
        assert (a < 100) and (b < 1000)


def test_digits_sampling_gives_exact_sizes() -> None:
    config = Addition.Config(digits="1+1,3+3", sampling="digits")
    sizes = {tuple(map(len, s.rstrip("=").split("+"))) for s, _ in pairs(Addition(config))}
    assert sizes == {(1, 1), (3, 3)}


@given(st.integers(0, 99_999), st.integers(0, 99_999))
def test_the_working_is_sound(a: int, b: int) -> None:
    *steps, answer = show_working(a, b).split(";")
    carry, digits = 0, ""
    for column, step in enumerate(steps):
        left, total = step.split("=")
        first, second, carried = map(int, left.split("+"))
        assert (first, second) == (a // 10**column % 10, b // 10**column % 10)
        assert carried == carry
        assert first + second + carried == int(total)
        carry, digits = int(total) // 10, total[-1] + digits
    assert int(answer) == a + b == int(f"{carry}{digits}")


def test_only_the_answer_of_a_scratchpad_counts() -> None:
    task = Addition(Addition.Config(scratchpad=True))
    right, other = task.batch([(47, 89)]), task.batch([(89, 47)])
    assert not (right.target == other.target).all()
    assert task.correct(other.target, right).all()


@pytest.mark.parametrize("text", ["2", "2+", "0+1", "2+2;3+3", "10+1", ""])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="sizes look like"):
        Addition.Config(digits=text)
