from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.batch import collate, reverse

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
