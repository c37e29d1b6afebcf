"""The loop by hand: one update is Adam's, the best is the first of equals, and who is kept when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.runs import assemble
from regard.training import loop
from regard.training.config import TrainingConfig
from regard.training.pieces import Piece, cut
from regard.training.ranks import ALONE

SMALL = {"hidden": 4, "batch": 3, "held_out": 7, "longest": 3, "shortest": 2}


def make(task: str = "reversal", model: str = "chapter36", **settings: Any) -> loop.Trainer:
    config = assemble(task, model, 0, {**SMALL, **settings})
    made = config.make_task()
    return loop.Trainer(config.make_model(made), made, config.training, 0)


def weights(trainer: loop.Trainer) -> dict[str, np.ndarray]:
    named = trainer.model.named_parameters()
    return {name: p.detach().numpy().astype(float) for name, p in named}


def test_updates_are_those_of_adam_by_hand() -> None:
    """Loss, 2·l2·θ, clipping over all weights together, moments with their corrections."""
    rate, beta1, beta2, epsilon, l2, clip = 0.05, 0.7, 0.9, 0.01, 0.03, 0.2
    trainer = make(
        learning_rate=rate, beta1=beta1, beta2=beta2, epsilon=epsilon, l2=l2, clip=clip,
        forcing="always",
    )  # fmt: skip
    model, names = trainer.model, [name for name, _ in trainer.model.named_parameters()]
    first = {name: np.zeros_like(value) for name, value in weights(trainer).items()}
    second = {name: np.zeros_like(value) for name, value in weights(trainer).items()}
    for update in range(1, 4):
        before = weights(trainer)
        batch = trainer.task.train_batch(update - 1, 3, 0)
        output = model(batch.source, batch.source_lengths, batch.inputs)
        chances = output.logits.log_softmax(dim=2).gather(2, batch.target[..., None])[..., 0]
        loss = -chances[batch.target_mask].mean()
        grads = torch.autograd.grad(loss, list(model.parameters()))
        assert trainer.step() == pytest.approx(float(loss.detach()), rel=1e-5)
        full = {n: g.numpy() + 2 * l2 * before[n] for n, g in zip(names, grads, strict=True)}
        norm = np.sqrt(sum((g**2).sum() for g in full.values()))
        assert norm > clip
        for name, gradient in full.items():
            gradient = gradient * clip / norm
            first[name] = beta1 * first[name] + (1 - beta1) * gradient
            second[name] = beta2 * second[name] + (1 - beta2) * gradient**2
            m, v = first[name] / (1 - beta1**update), second[name] / (1 - beta2**update)
            wanted = before[name] - rate * m / (np.sqrt(v) + epsilon)
            np.testing.assert_allclose(weights(trainer)[name], wanted, atol=2e-5)
    assert trainer.update == 3


def test_small_gradients_are_not_clipped() -> None:
    free, held = make(clip=None), make(clip=1e6)
    for trainer in (free, held):
        trainer.step()
    for name, value in weights(free).items():
        np.testing.assert_array_equal(value, weights(held)[name])


@pytest.mark.parametrize("keep", [True, False])
def test_zeros_are_kept_when_asked(keep: bool) -> None:
    config = assemble("reversal", "chapter36", 0, {**SMALL, "keep_zeros": keep})
    task = config.make_task()
    model = config.make_model(task)
    with torch.no_grad():
        holes = {name: torch.rand_like(p) < 0.4 for name, p in model.named_parameters()}
        for name, p in model.named_parameters():
            p[holes[name]] = 0.0
    trainer = loop.Trainer(model, task, config.training, 0)
    before = weights(trainer)
    for _ in range(2):
        trainer.step()
    moved = [np.any(weights(trainer)[n][holes[n].numpy()] != 0) for n in holes]
    assert not any(moved) if keep else any(moved)
    assert any(np.any(weights(trainer)[n] != before[n]) for n in holes)


def test_frozen_weights_stay() -> None:
    trainer = make(freeze=("encoder",))
    before = weights(trainer)
    trainer.step()
    after = weights(trainer)
    still = {name for name in before if np.array_equal(before[name], after[name])}
    assert still and all("encoder" in name or "source" in name for name in still)
    assert still != set(before)


class Keeper:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.kept: list[tuple[int, bool, bool]] = []

    def log(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def checkpoint(self, trainer: loop.Trainer, keep: bool, best: bool) -> None:
        self.kept.append((trainer.update, keep, best))


def follow(
    monkeypatch: pytest.MonkeyPatch, scores: list[float], **settings: Any
) -> tuple[Keeper, loop.Trainer]:
    """A training of which only the order of things is looked at, judged by given scores."""
    trainer, keeper, told = make(**settings), Keeper(), iter(scores)

    def step() -> float:
        trainer.update += 1
        return trainer.update / 10

    def evaluate(*about: Any, **more: Any) -> dict[str, float]:
        return {"accuracy": next(told), "loss": 1.0}

    monkeypatch.setattr(trainer, "step", step)
    monkeypatch.setattr(loop, "evaluate", evaluate)
    loop.fit(trainer, keeper)
    return keeper, trainer


def test_what_is_judged_and_kept_when(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, trainer = follow(
        monkeypatch, [0.1, 0.5, 0.5, 0.4, 0.6, 0.2], updates=10, evaluate_every=3,
        checkpoint_every=4, milestones=(0, 5),
    )  # fmt: skip
    assert keeper.kept == [
        (0, True, True), (3, False, True), (4, True, False), (5, True, False), (6, False, False),
        (8, True, False), (9, False, True), (10, True, False),
    ]  # fmt: skip
    judged = [(row["update"], row["accuracy"]) for row in keeper.rows if "split" in row]
    assert judged == [(0, 0.1), (3, 0.5), (5, 0.5), (6, 0.4), (9, 0.6), (10, 0.2)]
    losses = [(row["update"], row["loss"]) for row in keeper.rows if "split" not in row]
    assert losses == [(n, n / 10) for n in range(1, 11)]
    assert trainer.best == 0.6


def test_without_a_first_milestone_the_start_is_kept_and_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeper, _ = follow(monkeypatch, [0.1], updates=1, milestones=())
    assert keeper.kept == [(0, True, False), (1, True, True)]


def test_training_stops_at_the_accuracy_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, trainer = follow(
        monkeypatch, [0.89, 0.9], updates=9, evaluate_every=2, checkpoint_every=9, milestones=(),
        stop_accuracy=0.9,
    )  # fmt: skip
    assert keeper.kept == [(0, True, False), (2, False, True), (4, True, True)]
    assert trainer.update == 4


def test_the_lowest_objective_is_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([2.0, 1.5, 1.7])
    monkeypatch.setattr(loop.Trainer, "objective", lambda self, batch: next(told))
    keeper, trainer = follow(
        monkeypatch, [0.9, 0.1, 0.95], updates=3, evaluate_every=1, checkpoint_every=1,
        milestones=(), best_by="loss",
    )  # fmt: skip
    assert keeper.kept == [(0, True, False), (1, True, True), (2, True, True), (3, True, False)]
    assert trainer.best == -1.5


def test_the_objective_weighs_pieces_by_their_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    config = assemble("lookup", "baan", 0, {"guidance": 2.0, "hidden": 6})
    task = config.make_task()
    trainer = loop.Trainer(config.make_model(task), task, config.training, 0)
    batch = trainer.task.split("validation")[:5]
    whole = trainer.objective(batch)
    monkeypatch.setattr(loop, "PIECE", 3)
    parts = [trainer.objective(batch[:3]), trainer.objective(batch[3:])]
    assert whole == pytest.approx((3 * parts[0] + 2 * parts[1]) / 5, rel=1e-5)
    assert trainer.objective(batch) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("accuracy", "learns", "teaches"),
    [(0.5, True, False), (0.7499, True, False), (0.75, True, True), (0.9899, True, True),
     (0.99, False, True), (1.0, False, True)],
)  # fmt: skip
def test_when_the_discriminator_learns_and_teaches(
    accuracy: float, learns: bool, teaches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make(forcing="professor")
    batch = trainer.task.train_batch(0, 3, 0)
    taught = trainer.model(batch.source, batch.source_lengths, batch.inputs)
    descended: list[str] = []
    monkeypatch.setattr(trainer, "_descend", descended.append)
    zero = torch.zeros((), requires_grad=True)
    monkeypatch.setattr(loop, "discriminator_loss", lambda taught, free: (zero, accuracy))
    (piece,) = cut(batch, ALONE, 1)
    asked = trainer._professor(piece, taught)
    assert descended == (["discriminator"] if learns else [])
    assert bool(asked != 0) == teaches


def test_a_part_of_a_batch_teaches_the_discriminator_by_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = make(forcing="professor")
    batch = trainer.task.train_batch(0, 4, 0)
    monkeypatch.setattr(trainer, "_descend", lambda name: 0.0)
    weights = list(trainer.modules["discriminator"].parameters())
    asked, slopes = [], []
    for rows in (4, 16):  # the same sequences, as all of a batch and as a quarter of one
        told = (lambda sure: lambda *seen: (sum(w.sum() for w in weights), sure))(0.8 * rows / 4)
        monkeypatch.setattr(loop, "discriminator_loss", told)
        taught = trainer.model(batch.source, batch.source_lengths, batch.inputs)
        asked.append(float(trainer._professor(Piece(batch, 0, rows, None), taught).detach()))
        slopes.append(float(weights[0].grad.flatten()[0]))  # type: ignore[union-attr]
    assert slopes == [1.0, 0.25] and asked[1] == pytest.approx(asked[0] / 4)


def test_the_l2_term_is_of_the_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make(forcing="professor", l2=0.1)
    touched: list[int] = []
    monkeypatch.setattr(
        loop, "l2_gradient", lambda learned, *rest: touched.extend(map(id, learned))
    )
    monkeypatch.setattr(loop, "discriminator_loss", lambda taught, free: (taught.sum(), 0.9))
    trainer.step()
    assert sorted(touched) == sorted(id(p) for p in trainer.model.parameters())
    touched.clear()
    make(forcing="always", l2=0.0).step()
    assert not touched


def test_a_model_is_in_training_when_it_learns() -> None:
    trainer = make(layers=2, dropout=0.5)
    trainer.model.eval()
    trainer.step()
    assert trainer.model.training


def test_a_loss_that_is_no_number_is_told_as_such() -> None:
    trainer = make()
    with torch.no_grad():
        next(iter(trainer.model.parameters())).fill_(torch.nan)
    with pytest.raises(RegardError, match="loss"):
        trainer.step()


def test_randomness_follows_seed_and_update() -> None:
    def draw(seed: int, update: int) -> float:
        loop.seed_everything(seed, update)
        return float(torch.rand(()))

    assert draw(0, 1) == draw(0, 1)
    assert len({draw(seed, update) for seed in range(4) for update in range(4)}) == 16


def test_the_rate_is_that_of_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's first step is as long as the rate, whatever the gradient."""
    trainer = make(learning_rate=0.08, warmup=4, clip=None, epsilon=1e-12)
    before = weights(trainer)
    trainer.step()
    step = max(np.abs(weights(trainer)[name] - before[name]).max() for name in before)
    assert step == pytest.approx(0.02, rel=1e-3)
    assert TrainingConfig().learning_rate != 0.02
