from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks import TASKS, Batch, Vocabulary
from regard.tasks.batch import collate, reverse, reverse_sources
from regard.tasks.vocabulary import EOS, PAD, SOS


def test_special_words_have_the_numbers_that_files_and_recordings_rely_on() -> None:
    assert (PAD, SOS, EOS) == (0, 1, 2)
    assert Vocabulary.of("a").words == ("<PAD>", "<SOS>", "<EOS>", "a")


rows = st.lists(st.lists(st.integers(3, 9), min_size=1, max_size=6), min_size=1, max_size=5)


@given(rows)
def test_collate_keeps_every_word(sequences: list[list[int]]) -> None:
    batch = collate(sequences, sequences)
    for row, sequence in zip(batch.source.tolist(), sequences, strict=True):
        assert row[: len(sequence)] == sequence
        assert set(row[len(sequence) :]) <= {0}
    assert batch.source_lengths.tolist() == list(map(len, sequences))


@given(rows)
def test_reverse_twice_is_nothing(sequences: list[list[int]]) -> None:
    batch = collate(sequences, sequences)
    turned = reverse(batch.source, batch.source_lengths)
    assert turned[0, : len(sequences[0])].tolist() == sequences[0][::-1]
    assert torch.equal(reverse(turned, batch.source_lengths), batch.source)
    features = batch.source[:, :, None].float().expand(-1, -1, 2)
    assert torch.equal(reverse(features, batch.source_lengths)[:, :, 0], turned.float())


def test_pieces_cut_padding_away() -> None:
    batch = collate([[3], [3, 4], [3, 4, 5]], [[3, 2]] * 3)
    shapes = [piece.source.shape for piece in batch.pieces(2)]
    assert shapes == [(2, 2), (1, 3)]
    assert len(batch[:0]) == 0


def test_all_that_belongs_to_a_target_is_cut_with_it() -> None:
    batch = collate([[3, 2]] * 2, [[3, 2], [3, 4, 5, 2]], [[0, 1], [0, 1, 0, 1]])
    batch = replace(batch, fed=torch.tensor([[1, 7, 0, 0], [1, 8, 9, 6]]))
    short = batch[:1]
    assert short.target.tolist() == [[3, 2]]
    assert short.fed is not None and short.fed.tolist() == [[1, 7]]
    assert short.alignment is not None and short.alignment.tolist() == [[0, 1]]


def test_alignments_turn_with_their_source() -> None:
    batch = collate([[3, 4, 5, 2], [3, 2]], [[6, 7, 8, 2], [6, 2]])
    aligned = replace(batch, alignment=torch.tensor([[0, 1, -1, 3], [0, 1, -1, -1]]))
    back = reverse_sources(aligned)
    assert back.source.tolist() == [[5, 4, 3, 2], [3, 2, 0, 0]]
    assert back.alignment is not None
    assert back.alignment.tolist() == [[2, 1, -1, 3], [0, 1, -1, -1]]


def test_a_start_and_a_missing_end_are_minded_when_turning() -> None:
    batch = collate([[1, 5, 6, 7, 2], [1, 8, 2]], [[5], [6]], [[1], [2]])
    back = reverse_sources(batch, starts=True)
    assert back.source.tolist() == [[1, 7, 6, 5, 2], [1, 8, 2, 0, 0]]
    assert back.alignment is not None and back.alignment.tolist() == [[3], [2]]
    back = reverse_sources(collate([[5, 6, 7], [8, 2]], [[5], [6]], [[2], [-1]]), ends=False)
    assert back.source.tolist() == [[7, 6, 5], [2, 8, 0]]
    assert back.alignment is not None and back.alignment.tolist() == [[0], [-1]]


@pytest.mark.parametrize("name", ["reversal", "copying"])
def test_right_is_said_row_by_row(name: str) -> None:
    """One row right, one with a wrong word, one too short, one that says more at its end."""
    task = TASKS[name](TASKS[name].Config())
    width = 4
    target = torch.tensor([[3, 4, 5, 2]] * 4)
    if not task.ends:
        target = torch.tensor([[3, 4, 5, 6]] * 4)
    rows = (target, [width] * 4, target, [width] * 4)
    given = Batch.of(*(np.asarray(x) for x in rows))
    said = target.clone()
    said[1, 1] = 9
    said[2, 2:] = 2 if task.ends else 0
    longer = torch.cat([said, torch.full((4, 1), 7)], dim=1)
    assert task.correct(said, given).tolist() == [True, False, False, True]
    assert task.correct(longer, given).tolist() == [True, False, False, True]
    assert task.correct(said[:, :3], given).tolist() == [task.ends, False, False, task.ends]
