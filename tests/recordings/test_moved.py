"""The lexical probe of models that cannot be asked at once: attention is moved, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import RegardError
from regard.models import EncoderDecoder
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.seq2seq import Seq2Seq
from regard.models.transformer import Transformer, TransformerConfig
from regard.recordings.adapters import _moved
from regard.recordings.adapters._moved import can_be_moved, probe_by_moving
from regard.subjects import Subject
from regard.subjects.subject import Native
from regard.tasks import Vocabulary, collate
from regard.tasks.batch import Batch

PAIRS = [([5, 6, 7, 2], [8, 9, 2]), ([5, 2], [8, 9, 4, 6, 2]), ([4, 4, 8, 9, 6, 2], [3, 2])]
BATCH = collate([s for s, _ in PAIRS], [t for _, t in PAIRS])


def recurrent(**settings: Any) -> EncoderDecoder:
    torch.manual_seed(0)
    given = {"hidden": 8, "attention": "dot", "readout": "both", **settings}
    return EncoderDecoder(EncoderDecoderConfig(**given), 10, 10).eval()


def transformer(layers: int) -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(hidden=8, layers=layers, heads=2, feedforward=8)
    return Transformer(config, 10, 10).eval()


def put(model: Seq2Seq) -> Subject:
    words = Vocabulary.of("abcdefg")

    def read(pairs: Any) -> list[Batch]:
        return [collate([s for s, _ in pairs], [t for _, t in pairs])]

    return Native(model, (words, words), read)


def probe(model: Seq2Seq) -> torch.Tensor:
    pairs = BATCH.target_mask[:, :, None] & BATCH.source_mask[:, None]
    with torch.no_grad():
        memory = model.encode(BATCH.source, BATCH.source_lengths)
    return probe_by_moving(model, memory, BATCH.inputs, BATCH.target, pairs, 10)


@pytest.mark.parametrize(
    "settings",
    [{}, {"attention": "scaled", "heads": 2}, {"attention": "additive"}, {"cell": "lstm"}],
)
def test_moving_attention_is_what_the_output_network_says_at_once(settings: Any) -> None:
    model = recurrent(**settings)
    pairs = BATCH.target_mask[:, :, None] & BATCH.source_mask[:, None]
    with torch.no_grad():
        memory = model.encode(BATCH.source, BATCH.source_lengths)
        states = model.decode(memory, BATCH.inputs).decoder_states
        wanted = model.lexical(memory, states, BATCH.target, pairs)
    found = probe(model)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    assert float(found[pairs].std()) > 1e-3  # positions differ
    assert not found[~pairs].any()


def test_attention_before_the_step_is_moved_at_that_step_alone() -> None:
    model = recurrent(
        attention="additive-relu", attend="before", focus="full", readout="state", cell="gru-torch"
    )
    assert not model.has_lexical_probe and can_be_moved(model)
    found = probe(model)
    for row, step, place in ((0, 2, 1), (1, 4, 0), (2, 1, 5)):
        one = BATCH[row : row + 1]
        where = torch.full((1, one.target.shape[1]), -1)
        where[0, step] = place
        with torch.no_grad():
            memory = model.encode(one.source, one.source_lengths)
            memory = model.force_alignment(memory, where)
            logits = model.decode(memory, one.inputs).logits[0, step]
        said = float(logits.log_softmax(0)[one.target[0, step]])
        assert float(found[row, step, place]) == pytest.approx(said, abs=1e-6)


def test_one_layer_that_looks_at_one_word_might_as_well_see_no_other() -> None:
    """In one layer a step's attention bears on that step alone, so the source may be cut to l."""
    model = transformer(1)
    found = probe(model)
    for row, (source, target) in enumerate(PAIRS):
        one = BATCH[row : row + 1]
        with torch.no_grad():
            memory = model.encode(one.source, one.source_lengths)
            for place in range(len(source)):
                only = torch.zeros_like(memory.mask)
                only[:, place] = True
                logits = model.decode(memory._replace(mask=only), one.inputs).logits[0]
                said = logits.log_softmax(1)[torch.arange(len(target)), target]
                torch.testing.assert_close(found[row, : len(target), place], said)


def test_what_came_before_is_left_as_it_is() -> None:
    """In two layers the past is heard through self-attention, and must be that of free steps."""
    model, whole = transformer(2), probe(transformer(2))
    with torch.no_grad():
        memory = model.encode(BATCH.source, BATCH.source_lengths)
        only = torch.zeros_like(memory.mask)
        only[:, 0] = True
        logits = model.decode(memory._replace(mask=only), BATCH.inputs).logits
    forced = logits.log_softmax(2).gather(2, BATCH.target[:, :, None])[:, :, 0]
    torch.testing.assert_close(whole[:, 0, 0], forced[:, 0])  # nothing came before
    assert float((whole[1, 1:5, 0] - forced[1, 1:5]).abs().max()) > 1e-4


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = transformer(2)
    whole = probe(model)
    monkeypatch.setattr(_moved, "NUMBERS", 150)  # three rows of five steps of ten words
    torch.testing.assert_close(probe(model), whole)


def test_hooks_are_gone_afterwards() -> None:
    model = transformer(1)
    probe(model)
    assert not any(point.watched for point in model.hook_points().values())


def test_the_instrument_takes_a_transformer() -> None:
    model = transformer(2)
    result = regard.lexical_probe(put(model), pairs=PAIRS)
    np.testing.assert_allclose(
        result.first.scores.values[1, :5, :2], probe(model)[1, :5, :2], atol=1e-6
    )
    assert 0 < result.estimates()["mean β"].mean < 1


def test_without_attention_there_is_nothing_to_move() -> None:
    model = recurrent(attention="none", readout="state")
    assert not can_be_moved(model)
    with pytest.raises(RegardError, match="no lexical probe"):
        regard.record(put(model), pairs=PAIRS, also=("lexical",))
    with pytest.raises(RegardError, match="no lexical probe"):  # asks for every word of the output
        regard.record(put(transformer(1)), pairs=PAIRS, also={"log_odds": {"word": 3}})
