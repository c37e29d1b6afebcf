"""Word vectors from a user's file as the first embedding."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.models.layers import word_vectors
from regard.models.layers.embedding import Embedding
from regard.models.layers.word_vectors import load_word_vectors, read_vectors
from regard.tasks.vocabulary import SOS

WORDS = ("<PAD>", "<SOS>", "<EOS>", "film", "great", "odd")
TEXT = "film 1 2 3\n. . . 7 8 9\ngreat -1 0 1.5\n"


def files(folder: Path) -> list[Path]:
    plain, packed, arrays = folder / "v.txt", folder / "v.gz", folder / "v.npz"
    plain.write_text(TEXT, encoding="utf-8")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    values = np.array([[1, 2, 3], [7, 8, 9], [-1, 0, 1.5]], np.float32)
    np.savez(arrays, words=np.array(["film", ". . .", "great"]), vectors=values)
    return [plain, packed, arrays]


def test_every_format_gives_the_same(tmp_path: Path) -> None:
    for path in files(tmp_path):
        found = dict(read_vectors(path))
        assert list(found) == ["film", ". . .", "great"], path
        np.testing.assert_array_equal(found["great"], np.array([-1, 0, 1.5], np.float32))


def test_known_words_are_replaced_and_only_they(tmp_path: Path) -> None:
    table = Embedding(len(WORDS), 3)
    before = table.weight.detach().clone()
    assert load_word_vectors(table.weight, WORDS, files(tmp_path)[0]) == 2
    torch.testing.assert_close(table.weight[3], torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(table.weight[4], torch.tensor([-1.0, 0.0, 1.5]))
    for kept in (0, 1, 2, 5):
        assert torch.equal(table.weight[kept], before[kept])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("film 1 2\n", "Set model.embedding=2"),
        ("film 1 2 3\nodd 1 x 3\n", "line 2"),
        ("film 1 2 3\n1 2 3\n", "line 2"),
        ("kino 1 2 3\n", "none of the task's 6 words"),
        ("film 1 nan 3\n", "'film' has entries that are not numbers"),
    ],
)
def test_faults_say_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RegardError, match=message):
        load_word_vectors(Embedding(len(WORDS), 3).weight, WORDS, path)


def test_missing_and_damaged_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="There is no file"):
        load_word_vectors(Embedding(3, 3).weight, WORDS[:3], tmp_path / "none")
    broken = tmp_path / "b.gz"
    broken.write_bytes(gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(RegardError, match="cannot be read"):
        list(read_vectors(broken))


def test_sizes_in_the_first_line_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("2 3\nfilm 1 2 3\nodd 1 1 1\n", encoding="utf-8")
    assert [word for word, _ in read_vectors(path)] == ["film", "odd"]


def test_what_an_archive_unpacks_to_is_held_against_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, arrays = files(tmp_path)
    asked: list[int] = []
    monkeypatch.setattr(word_vectors, "require_memory", lambda size, *words: asked.append(size))
    assert len(list(read_vectors(arrays))) == 3
    (size,) = asked
    assert size > 3 * 5 * 4 + 3 * 3 * 4  # letters of numpy have four bytes, and so has a number


def test_the_first_input_is_the_mean_of_all_words() -> None:
    torch.manual_seed(0)
    table = Embedding(5, 3, uniform_start=True)
    wanted = table.weight.detach().clone()
    wanted[SOS] = wanted.sum(dim=0) / 5  # the padding's vector is zero, and counts
    assert torch.allclose(table.table, wanted)
    plain = Embedding(5, 3)
    assert torch.equal(plain.table, plain.weight)
