"""The best weights are the best: against another solver, by hand, and by their certificate."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from small import WORDS, phrases, recurrent, transformer
from torch import Tensor

import regard
from regard import Recording, RegardError, optimal_attention
from regard.instruments.scores._optimal_weights import optimal_for_sentences, optimal_weights
from regard.instruments.scores.optimal_attention import Terms, read_terms, solve_rows
from regard.models import Seq2Seq, Transformer
from regard.models.transformer import TransformerConfig
from regard.tasks import Batch

Problem = tuple[Tensor, Tensor, Tensor, Tensor]


def problem(seed: int, rows: int = 4, source: int = 5, vocab: int = 7, scale: float = 1) -> Problem:
    rng = torch.Generator().manual_seed(seed)
    gamma = scale * torch.randn(rows, source, vocab, generator=rng, dtype=torch.float64)
    gamma_s = scale * torch.randn(rows, vocab, generator=rng, dtype=torch.float64)
    mask = torch.rand(rows, source, generator=rng) < 0.8
    mask[:, -1] = True
    return gamma, gamma_s, torch.randint(vocab, (rows,), generator=rng), mask


def loss(gamma: np.ndarray, gamma_s: np.ndarray, target: int, weights: np.ndarray) -> float:
    logits = weights @ gamma + gamma_s
    return float(np.logaddexp.reduce(logits) - logits[target])


def by_scipy(gamma: np.ndarray, gamma_s: np.ndarray, target: int) -> float:
    """The smallest loss that SLSQP finds on the simplex."""
    count = len(gamma)

    def slope(weights: np.ndarray) -> np.ndarray:
        logits = weights @ gamma + gamma_s
        p = np.exp(logits - np.logaddexp.reduce(logits))
        p[target] -= 1
        return gamma @ p

    found = minimize(
        lambda weights: loss(gamma, gamma_s, target, weights),
        np.full(count, 1 / count),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda _: np.ones(count)},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun)


@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0])
def test_as_good_as_another_solver(scale: float) -> None:
    gamma, gamma_s, targets, mask = problem(3, rows=12, source=6, vocab=9, scale=scale)
    found = optimal_weights(gamma, gamma_s, targets, mask)
    for row in range(len(gamma)):
        there = mask[row].numpy()
        own = gamma[row].numpy()[there], gamma_s[row].numpy(), int(targets[row])
        weights = found.weights[row].numpy()[there]
        assert found.loss[row] == pytest.approx(loss(*own, weights), abs=1e-12)
        assert found.loss[row] == pytest.approx(by_scipy(*own), abs=3e-6)
        assert found.gap[row] <= 1e-6


def test_the_largest_beta_may_get_nothing() -> None:
    """snell2021, eq. 30: β is largest at the first position, and the best weights pass it over."""
    gamma = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]])
    asked = gamma, torch.zeros(1, 3), torch.tensor([0]), torch.ones(1, 3, dtype=torch.bool)
    beta = gamma[0].softmax(dim=1)[:, 0]
    assert beta.argmax() == 0 and float(beta[0]) == pytest.approx(1 / 3)
    found = optimal_weights(*asked)
    np.testing.assert_allclose(found.weights, [[0, 0.5, 0.5]], atol=1e-7)
    assert found.weights[0, 0] == 0
    assert float(found.loss) == pytest.approx(math.log(1 + 2 * math.exp(-2.5)), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(2, 9),
    st.floats(0.01, 20),
)
def test_nothing_is_better(seed: int, source: int, vocab: int, scale: float) -> None:
    gamma, gamma_s, targets, mask = problem(seed, 3, source, vocab, scale)
    found = optimal_weights(gamma, gamma_s, targets, mask)
    assert (found.gap >= 0).all() and (found.gap <= 1e-6).all()
    assert (found.weights >= 0).all() and (found.weights[~mask] == 0).all()
    torch.testing.assert_close(found.weights.sum(dim=1), torch.ones(3, dtype=torch.float64))
    rng = np.random.default_rng(seed)
    for row in range(3):
        places = np.flatnonzero(mask[row])
        tried = [*np.eye(source)[places], mask[row].numpy() / len(places)]
        for drawn in rng.dirichlet(np.full(len(places), 0.5), size=5):
            tried.append(np.zeros(source))
            tried[-1][places] = drawn
        for weights in tried:
            other = loss(gamma[row].numpy(), gamma_s[row].numpy(), int(targets[row]), weights)
            assert found.loss[row] <= other + found.gap[row] + 1e-9


def test_easy_words_have_a_best_place_too() -> None:
    """Where the loss is 1e-9 whatever the weights are, the better of two is still found."""
    gamma = torch.tensor([[[20.0, 0, 0], [22, 0, 0], [21, 0, 0]]])
    found = optimal_weights(
        gamma, torch.zeros(1, 3), torch.tensor([0]), torch.ones(1, 3, dtype=torch.bool)
    )
    assert found.weights[0].tolist() == [0, 1, 0]


def test_positions_that_are_alike_share() -> None:
    """No position is better than another: the matrix of Newton's step is all but singular."""
    gamma = torch.randn(1, 1, 5).expand(2, 4, 5)
    mask = torch.tensor([[True] * 4, [True, False, True, False]])
    found = optimal_weights(gamma, torch.randn(2, 5), torch.tensor([1, 2]), mask)
    wanted = mask / mask.sum(dim=1, keepdim=True)
    torch.testing.assert_close(found.weights, wanted.double(), atol=1e-6, rtol=0)
    assert (found.gap <= 1e-6).all()


def test_steps_that_share_a_source_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    gamma, _, _, mask = problem(1)
    gamma_s = torch.randn(4, 3, 7, dtype=torch.float64)
    targets = torch.randint(7, (4, 3))
    whole = optimal_for_sentences(gamma, gamma_s, targets, mask)
    rows = optimal_weights(
        gamma.repeat_interleave(3, dim=0), gamma_s.flatten(0, 1), targets.flatten(),
        mask.repeat_interleave(3, dim=0),
    )  # fmt: skip
    torch.testing.assert_close(whole.weights.flatten(0, 1), rows.weights, atol=1e-5, rtol=0)
    monkeypatch.setitem(optimal_for_sentences.__globals__, "AT_ONCE", 1)  # sentence by sentence
    pieces = optimal_for_sentences(gamma, gamma_s, targets, mask)
    torch.testing.assert_close(whole.loss, pieces.loss, atol=2e-6, rtol=0)


def test_what_cannot_be_solved_is_said() -> None:
    gamma, gamma_s, targets, mask = problem(0)
    with pytest.raises(RegardError, match="do not fit together"):
        optimal_weights(gamma, gamma_s[:, 1:], targets, mask)
    with pytest.raises(RegardError, match="without any word"):
        optimal_weights(gamma, gamma_s, targets, mask & False)
    with pytest.raises(RegardError, match="not finite"):
        optimal_weights(gamma * torch.inf, gamma_s, targets, mask)
    for name in ("gamma", "gamma_s"):  # one number is enough
        given = {"gamma": gamma.clone(), "gamma_s": gamma_s.clone()}
        given[name].view(-1)[3] = torch.nan
        with pytest.raises(RegardError, match="not finite"):
            optimal_weights(**given, targets=targets, mask=mask)
    with pytest.raises(RegardError, match="2 or more"):
        optimal_weights(gamma[:, :, :1], gamma_s[:, :1], targets * 0, mask)
    with pytest.raises(RegardError, match="more than 0"):
        optimal_weights(gamma, gamma_s, targets, mask, tolerance=0)


WIRINGS = [
    {"attention": "dot"},
    {"attention": "scaled"},
    {"attention": "bilinear", "readout": "context"},
    {"attention": "additive", "readout_bias": False, "bidirectional": True},
]


def recorded(model: Seq2Seq, batch: Batch, **options: object) -> Recording:
    given = {"also": ("values",), "inputs": "teacher", **options}
    return regard.record(model, vocabularies=(WORDS, WORDS), batches=[batch], **given)  # type: ignore[arg-type]


def additive_terms(model: Seq2Seq, batch: Batch) -> Terms:
    (terms,) = read_terms(recorded(model, batch))
    return terms


@pytest.mark.parametrize("wiring", WIRINGS, ids=lambda w: w["attention"])
@torch.no_grad()
def test_terms_add_up_to_the_logits(wiring: dict[str, str]) -> None:
    model, batch = recurrent(**wiring), phrases()
    terms = additive_terms(model, batch)
    output = model(batch.source, batch.source_lengths, batch.inputs)
    mask = batch.target_mask
    found = (terms.alpha @ terms.gamma + terms.gamma_s).float()
    torch.testing.assert_close(found[mask], output.logits[mask], atol=1e-5, rtol=1e-5)
    assert torch.equal(terms.target_mask, mask) and torch.equal(terms.targets, batch.target)


def test_pieces_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(recurrent("dot"), phrases(12))
    whole = optimal_attention(recording).first
    monkeypatch.setitem(read_terms.__globals__, "PIECE", 1)  # sentence by sentence
    pieces = optimal_attention(recording).first
    assert pieces.values() == pytest.approx(whole.values(), abs=2e-6)
    assert pieces.words == whole.words and pieces.picture.target == whole.picture.target


REFUSED = {
    "no attention": lambda: recurrent("none"),
    "in 2 layers": lambda: Transformer(TransformerConfig(hidden=8, heads=1), *[len(WORDS)] * 2),
    "output layer does not see": lambda: transformer(),
    "before the step": lambda: recurrent("dot", attend="before", focus="concatenate"),
    "2 heads": lambda: recurrent("scaled", 2),
    "does not see the context": lambda: recurrent("dot", readout="state"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_other_models_are_refused(why: str) -> None:
    with pytest.raises(RegardError, match=why):
        optimal_attention(recorded(REFUSED[why](), phrases()))


def test_a_hidden_layer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = recurrent("dot")
    monkeypatch.setattr(model, "output_layer", lambda: None)
    with pytest.raises(RegardError, match="hidden layer"):
        optimal_attention(recorded(model, phrases()))
    with pytest.raises(RegardError, match=r"no values.*also=\('values',\)"):
        optimal_attention(recorded(recurrent("dot"), phrases(), also=None))


@torch.no_grad()
def test_rows_are_what_loops_find() -> None:
    model, batch = recurrent("dot", seed=2), phrases(4)
    terms = additive_terms(model, batch)
    rows = solve_rows(terms)
    gamma, gamma_s, alpha = (x.numpy() for x in terms[:3])
    row = 0
    for b in range(len(batch)):
        count = int(batch.source_lengths[b])
        for t in range(int(batch.target_lengths[b])):
            own = gamma[b, :count], gamma_s[b, t], int(batch.target[b, t])
            beta = [math.exp(-loss(*own, one)) for one in np.eye(count)]
            np.testing.assert_allclose(rows.beta[row, :count], beta, rtol=1e-6)
            wanted = [
                alpha[b, t, :count],
                rows.best[row, :count].numpy(),
                np.full(count, 1 / count),
            ]
            losses = [loss(*own, weights) for weights in wanted]
            np.testing.assert_allclose(rows.losses[row], losses, rtol=1e-6)
            assert losses[1] <= min(losses) + 1e-6
            row += 1
    assert row == len(rows.gap)


def test_of_a_run(tmp_path: Path) -> None:
    run = regard.train(
        "one-to-one", "aed", 0, tmp_path, hidden=8, updates=4, checkpoint_every=2, held_out=10
    )
    found = optimal_attention(run, n=12)
    values = found.first.values()
    assert values["optimal loss"] <= min(values["loss"], values["uniform loss"])
    assert 0 <= values["largest gap"] <= 1e-6
    assert optimal_attention(run, n=12, checkpoint=0).first.values() != values
    assert optimal_attention(run, n=10, split="test").first.words > 0
    shown = found.first.picture
    assert all(len(heat) == len(shown.target) for heat in shown.heats.values())
    assert "eos" in shown.source[-1].lower()
