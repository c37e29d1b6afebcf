from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from regard.models import MODELS, Seq2Seq, beam, greedy
from regard.tasks import EOS, PAD, SOS

WORDS = 5  # <PAD> <SOS> <EOS> a b
SOURCE, LENGTHS = torch.tensor([[3, 4, 2], [4, 2, 0], [4, 4, 2]]), torch.tensor([3, 2, 3])


@pytest.fixture(params=["encoder-decoder", "transformer"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    config, kind = MODELS[request.param]
    torch.manual_seed(3)
    built = kind(config(hidden=8), WORDS, WORDS).eval()
    with torch.no_grad():
        built.readout.weight.mul_(6)  # opinions that differ between rows
    return built


def log_probability(model: Seq2Seq, row: int, words: list[int]) -> float:
    inputs = torch.tensor([[SOS, *words[:-1]]])
    output = model(SOURCE[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1], inputs)
    scores = output.logits.log_softmax(-1)[0]
    return float(sum(scores[t, word] for t, word in enumerate(words)))


def finished(row: Tensor) -> list[int]:
    words = row.tolist()
    return words[: words.index(EOS) + 1] if EOS in words else [w for w in words if w != PAD]


@torch.no_grad()
def test_greedy_takes_the_likeliest_word(model: Seq2Seq) -> None:
    chosen = greedy(model, model.encode(SOURCE, LENGTHS), 6)
    for row in range(3):
        words: list[int] = []
        for _ in range(6):
            inputs = torch.tensor([[SOS, *words]])
            output = model(SOURCE[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1], inputs)
            words.append(int(output.logits[0, -1].argmax()))
            if words[-1] == EOS:
                break
        assert chosen[row, : len(words)].tolist() == words
        assert (chosen[row, len(words) :] == PAD).all()


def test_narrow_beam_is_greedy(model: Seq2Seq) -> None:
    narrow, plain = (
        beam(model, model.encode(SOURCE, LENGTHS), 6, width=1),
        greedy(model, model.encode(SOURCE, LENGTHS), 6),
    )
    for row in range(3):
        assert finished(narrow[row]) == finished(plain[row])


@torch.no_grad()
def test_wide_beam_finds_the_best(model: Seq2Seq) -> None:
    """Against every sequence of up to three words, by log-probability per word."""
    best = beam(model, model.encode(SOURCE, LENGTHS), 3, width=WORDS**3)
    for row in range(3):
        others = [w for w in range(WORDS) if w != EOS]
        candidates = [[*words, EOS] for n in range(3) for words in product(others, repeat=n)]
        candidates += [list(words) for words in product(others, repeat=3)]
        scores = {tuple(c): log_probability(model, row, c) / len(c) for c in candidates}
        found = best[row].tolist()
        found = found[: found.index(EOS) + 1] if EOS in found else found
        assert scores[tuple(found)] == pytest.approx(max(scores.values()), abs=1e-5)


def test_rows_do_not_disturb_each_other(model: Seq2Seq) -> None:
    for decode in (greedy, beam):
        together = decode(model, model.encode(SOURCE, LENGTHS), 6)
        for row in range(3):
            words, length = SOURCE[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1]
            alone = decode(model, model.encode(words, length), 6)
            assert finished(together[row]) == finished(alone[0])


def test_mixed_inputs_follow_the_coin(model: Seq2Seq) -> None:
    inputs = torch.tensor([[SOS, 3, 4, 3]] * 3)
    memory = model.encode(SOURCE, LENGTHS)
    forced = torch.tensor([True, False, True, False])
    fed = model.feed(memory, inputs, forced)
    assert torch.equal(fed[:, [0, 2]], inputs[:, [0, 2]])
    logits = model.decode(memory, fed).logits
    assert torch.equal(fed[:, 1], logits[:, 0].argmax(1))
    assert torch.equal(fed[:, 3], logits[:, 2].argmax(1))
    assert torch.equal(model.feed(memory, inputs, torch.ones(4).bool()), inputs)


@torch.no_grad()
def test_without_an_end_token_every_row_goes_on(model: Seq2Seq) -> None:
    """`end=None`: against every sequence of exactly three words, number 2 a word like any other."""
    memory = model.encode(SOURCE, LENGTHS)
    assert greedy(model, memory, 3, end=None).shape == (3, 3)
    best = beam(model, memory, 3, width=WORDS**3, end=None)
    for row in range(3):
        scores = [
            log_probability(model, row, list(words)) for words in product(range(WORDS), repeat=3)
        ]
        assert log_probability(model, row, best[row].tolist()) == pytest.approx(
            max(scores), abs=1e-5
        )
        plain = beam(model, memory, 3, width=1, end=None)[row]
        assert plain.tolist() == greedy(model, memory, 3, end=None)[row].tolist()
