from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models import MODELS, greedy
from regard.models.seq2seq import Output
from regard.runs import assemble
from regard.tasks import EOS, TASKS, Batch, Task
from regard.training import Trainer, TrainingConfig, evaluate, predict
from regard.training.forcing import forced_steps, forward
from regard.training.losses import l2_gradient, likelihood
from regard.training.professor import Discriminator, discriminator_loss, generator_loss
from regard.training.schedules import forcing_chance, learning_rate


def reversal(**settings: object) -> Task:
    return TASKS["reversal"](TASKS["reversal"].Config(**settings))


def model_for(task: Task, **settings: object):
    config, kind = MODELS["encoder-decoder"]
    return kind(config(hidden=16, **settings), len(task.source_vocabulary), 29)


def trainer(seed: int = 0, **settings: object) -> Trainer:
    values = {"hidden": 16, "held_out": 20, "batch": 8, "updates": 50, **settings}
    config = assemble("reversal", "chapter36", seed, values)
    task = config.make_task()
    return Trainer(config.make_model(task), task, config.training, seed)


def test_likelihood_is_the_mean_over_words_that_are_there() -> None:
    batch = reversal().train_batch(0, 6, 0)
    logits = torch.randn(*batch.target.shape, 29)
    by_hand = [
        -logits[b, t].log_softmax(0)[batch.target[b, t]]
        for b in range(6)
        for t in range(int(batch.target_lengths[b]))
    ]
    expected = torch.stack(by_hand).mean()
    torch.testing.assert_close(likelihood(logits, batch.target, batch.target_mask), expected)


@pytest.mark.parametrize("attention", ["none", "dot"])
def test_gradient_equals_that_of_a_plain_loop(attention: str) -> None:
    """Own predictions first and one fast pass after: the same gradient as step by step."""
    task = reversal()
    batch, model = task.train_batch(0, 6, 0), model_for(task, attention=attention)
    forced = torch.tensor([True, False] * 6)[: batch.target.shape[1]]

    def loop() -> Tensor:
        memory = model.encode(batch.source, batch.source_lengths)
        words, state, steps = batch.inputs[:, 0], memory.initial, []
        for t in range(batch.target.shape[1]):
            logits, state = model.step(memory, words, state)
            steps.append(logits)
            if t + 1 < len(forced):
                words = batch.inputs[:, t + 1] if forced[t + 1] else logits.argmax(1)
        return torch.stack(steps, dim=1)

    grads = []
    for logits in (loop(), forward(model, batch, forced).logits):
        loss = likelihood(logits, batch.target, batch.target_mask)
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


def test_coin_is_a_function_of_seed_and_update() -> None:
    config = TrainingConfig(forcing="ratio", ratio=0.5)
    assert torch.equal(forced_steps(config, 3, 0, 40), forced_steps(config, 3, 0, 40))
    assert not torch.equal(forced_steps(config, 3, 0, 40), forced_steps(config, 4, 0, 40))
    flips = torch.stack([forced_steps(config, u, 0, 50) for u in range(100)]).float()
    assert flips.mean().item() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse-sigmoid"])
def test_schedules_fall_from_teacher_to_self(schedule: str) -> None:
    config = TrainingConfig(forcing="scheduled", schedule=schedule, updates=100)
    chances = [forcing_chance(config, update) for update in range(101)]
    assert chances[0] > 0.99
    assert chances[-1] < 0.01
    assert chances == sorted(chances, reverse=True)
    floor = TrainingConfig(forcing="scheduled", schedule=schedule, schedule_floor=0.3, updates=100)
    assert forcing_chance(floor, 100) == 0.3


def test_extreme_strategies() -> None:
    assert forcing_chance(TrainingConfig(forcing="always"), 7) == 1
    assert forcing_chance(TrainingConfig(forcing="never"), 7) == 0
    assert forcing_chance(TrainingConfig(forcing="ratio", ratio=0.25), 7) == 0.25


def test_learning_rates() -> None:
    cosine = TrainingConfig(learning_rate=1.0, decay="cosine", warmup=10, updates=110)
    assert learning_rate(cosine, 0) == pytest.approx(0.1)
    assert learning_rate(cosine, 10) == pytest.approx(1.0)
    assert learning_rate(cosine, 60) == pytest.approx(0.5)
    assert learning_rate(cosine, 110) == pytest.approx(0.0)
    linear = TrainingConfig(learning_rate=1.0, decay="linear", updates=100)
    assert learning_rate(linear, 25) == pytest.approx(0.75)
    falling = TrainingConfig(learning_rate=0.1, decay="exponential", decay_rate=0.9997)
    assert learning_rate(falling, 1000) == pytest.approx(0.1 * 0.9997**1000)
    with pytest.raises(ValueError, match="decay_rate"):
        TrainingConfig(decay="linear", decay_rate=0.9)


def test_evaluation_by_hand() -> None:
    """A model that writes the last letter it was fed, once: right on strings of two equal ones."""
    task = reversal(shortest=1, longest=2, alphabet=2, held_out=200)
    model = model_for(task)
    batch = task.split("test")
    metrics = evaluate(model, task, batch, size=64)
    output = model(batch.source, batch.source_lengths, batch.inputs)
    loss = likelihood(output.logits, batch.target, batch.target_mask)
    assert metrics["loss"] == pytest.approx(float(loss.detach()), abs=1e-5)
    hits = (output.logits.argmax(2) == batch.target) & batch.target_mask
    share = float(hits.sum() / batch.target_mask.sum())
    assert metrics["forced_token_accuracy"] == pytest.approx(share)
    whole = (hits | ~batch.target_mask).all(1).float().mean()
    memory = model.encode(batch.source, batch.source_lengths)
    free = greedy(model, memory, batch.target.shape[1] + 5)
    written = [row[: row.index(EOS) + 1] if EOS in row else row for row in free.tolist()]
    wanted = [row[:n] for row, n in zip(batch.target.tolist(), batch.target_lengths, strict=True)]
    right = sum(a == b for w, t in zip(written, wanted, strict=True) for a, b in zip(w, t))  # noqa: B905
    assert metrics["token_accuracy"] == pytest.approx(right / sum(map(len, wanted)))
    assert metrics["accuracy"] == pytest.approx(float(whole)), "greedy is right iff forced is"


@pytest.mark.parametrize("forcing", ["always", "never", "ratio", "scheduled", "professor"])
def test_every_strategy_learns(forcing: str) -> None:
    one = trainer(forcing=forcing, shortest=2, longest=3, alphabet=3, learning_rate=1e-2)
    losses = [one.step() for _ in range(50)]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


@pytest.mark.parametrize("forcing", ["ratio", "professor"])
def test_state_can_be_put_down_and_picked_up(forcing: str) -> None:
    straight, first, second = (trainer(forcing=forcing) for _ in range(3))
    expected = [straight.step() for _ in range(12)]
    begun = [first.step() for _ in range(5)]
    second.load_state({name: t.clone() for name, t in first.state().items()})
    assert second.update == 5
    assert begun + [second.step() for _ in range(7)] == expected
    for a, b in zip(straight.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_clipping_bounds_the_step() -> None:
    one = trainer(clip=1e-3, forcing="always")
    one.step()
    norms = torch.stack([p.grad.norm() for p in one.model.parameters() if p.grad is not None])
    assert float(norms.norm()) == pytest.approx(1e-3, rel=1e-4)


def test_a_loss_that_is_not_a_number_stops_before_it_does_harm() -> None:
    one = trainer()
    one.step()
    with torch.no_grad():
        one.model.readout.bias.fill_(math.nan)
    before = {name: p.clone() for name, p in one.model.named_parameters()}
    with pytest.raises(RegardError, match="became nan at update 2"):
        one.step()
    assert one.update == 1
    for name, p in one.model.named_parameters():
        assert torch.equal(p.nan_to_num(), before[name].nan_to_num())


def test_discriminator_tells_trajectories_apart() -> None:
    task = reversal(shortest=2, longest=4)
    batch: Batch = task.train_batch(0, 32, 0)
    judge = Discriminator(5, 4)
    shape = batch.target.shape
    taught = Output(torch.zeros(*shape, 4), torch.empty(0), torch.ones(*shape, 5))
    free = Output(torch.zeros(*shape, 4), torch.empty(0), -torch.ones(*shape, 5))
    optimizer = torch.optim.Adam(judge.parameters(), lr=1e-2)
    for _ in range(30):
        loss, accuracy = discriminator_loss(judge(taught, batch), judge(free, batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert accuracy == 1.0
    assert generator_loss(judge(free, batch)) > generator_loss(judge(taught, batch))


def test_l2_is_the_gradient_of_the_squares() -> None:
    model = assemble("reversal", "chapter36", 0, {"hidden": 8}).make_model(
        assemble("reversal", "chapter36", 0, {}).make_task()
    )
    parameters = list(model.parameters())
    weight = 0.03
    squares = torch.stack([(p * p).sum() for p in parameters]).sum()
    wanted = torch.autograd.grad(weight * squares, parameters)
    found = [torch.zeros_like(p) for p in parameters]
    l2_gradient(parameters, found, weight)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_words_with_the_number_of_an_end_are_counted_where_there_is_none() -> None:
    """A model that copies by heart gets all right, although number 2 comes anywhere."""
    task = TASKS["copying"](TASKS["copying"].Config.model_validate({"vocabulary": 4, "length": 4}))
    batch = task.split("test")
    config, kind = MODELS["encoder-decoder"]
    model = kind(config(hidden=4), 6, 6)
    steps = iter(range(100))

    def step(memory: object, words: Tensor, state: tuple[Tensor, ...]) -> object:
        return torch.nn.functional.one_hot(batch.target[:, next(steps)], 6).float(), state

    model.step = step  # type: ignore[assignment,method-assign]
    metrics = evaluate(model, task, batch)
    assert metrics["accuracy"] == metrics["token_accuracy"] == 1
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    steps = iter(range(100))
    assert torch.equal(predict(model, batch, ends=task.ends), batch.target)
