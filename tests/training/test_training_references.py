"""Losses, coin flips and settings, held against numpy by hand; settings that are given are used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from regard.models.layers.attention import Site
from regard.runs import assemble
from regard.tasks import Batch
from regard.training import evaluation, forcing, loop
from regard.training.config import TrainingConfig
from regard.training.losses import guidance, likelihood
from regard.training.professor import discriminator_loss, generator_loss
from regard.training.schedules import forcing_chance, learning_rate

SMALL = {"hidden": 8, "batch": 4, "held_out": 20}


def batch(alignment: list[list[int]]) -> Batch:
    return Batch(
        source=torch.tensor([[3, 4, 5, 6], [3, 4, 0, 0]]),
        target=torch.tensor([[3, 4, 2], [5, 2, 0]]),
        source_lengths=torch.tensor([4, 2]),
        target_lengths=torch.tensor([3, 2]),
        alignment=torch.tensor(alignment),
    )


def site(scores: torch.Tensor, **more: Any) -> Site:
    nothing = scores[..., :1]
    return Site(
        nothing, nothing, nothing, scores, scores.softmax(-1), heads=scores.shape[1], **more
    )


@pytest.mark.parametrize("average", ["words", "sequences"])
@pytest.mark.parametrize("heads", [1, 3])
def test_guidance(heads: int, average: Any) -> None:
    """Several heads, several sites, words without a target, padding with one: by loops."""
    torch.manual_seed(0)
    given = batch([[2, -1, 0], [1, -1, 3]])  # the last 3 lies in the padding
    sites = {
        "a": site(torch.randn(2, heads, 3, 4)),
        "b": site(torch.randn(2, heads, 3, 4)),
        "own": site(torch.randn(2, heads, 3, 3), query_side="decoder", key_side="decoder"),
    }
    total, count = 0.0, 0
    for name in ("a", "b"):
        for row, length in enumerate((4, 2)):
            for step, target in enumerate(given.alignment[row].tolist()):  # type: ignore[index]
                if target < 0 or step >= (3, 2)[row]:
                    continue
                for head in range(heads):
                    scores = sites[name].scores[row, head, step, :length].numpy()
                    share = np.exp(scores[target]) / np.exp(scores).sum()
                    total -= math.log(share)
                    count += 1
    wanted = total / count if average == "words" else total / (2 * heads) / 2
    assert float(guidance(sites, given, average)) == pytest.approx(wanted, rel=1e-5)


def test_guidance_without_any_target_is_nothing() -> None:
    sites = {"a": site(torch.randn(2, 1, 3, 4))}
    assert float(guidance(sites, batch([[-1] * 3] * 2))) == 0.0


@pytest.mark.parametrize("average", ["words", "sequences"])
def test_likelihood(average: Any) -> None:
    torch.manual_seed(0)
    given, logits = batch([[0] * 3] * 2), torch.randn(2, 3, 7)
    total = 0.0
    for row, length in enumerate((3, 2)):
        for step in range(length):
            values = logits[row, step].numpy().astype(float)
            total -= values[int(given.target[row, step])] - math.log(np.exp(values).sum())
    wanted = total / (5 if average == "words" else 2)
    found = likelihood(logits, given.target, given.target_mask, average)
    assert float(found) == pytest.approx(wanted, rel=1e-5)


def test_losses_of_the_discriminator() -> None:
    taught, free = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([-3.0, 0.25, -0.5])

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    apart = -np.mean([math.log(sigmoid(x)) for x in taught.tolist()])
    apart -= np.mean([math.log(1 - sigmoid(x)) for x in free.tolist()])
    loss, accuracy = discriminator_loss(taught, free)
    assert float(loss) == pytest.approx(apart, rel=1e-5)
    assert accuracy == pytest.approx((2 / 3 + 2 / 3) / 2)
    passing = -np.mean([math.log(sigmoid(x)) for x in free.tolist()])
    assert float(generator_loss(free)) == pytest.approx(passing, rel=1e-5)


# Settings that are given are used.


def step_with(**settings: Any) -> dict[str, torch.Tensor]:
    """The weights after a few updates."""
    config = assemble("reversal", "chapter36", settings.pop("seed", 0), {**SMALL, **settings})
    task = config.make_task()
    trainer = loop.Trainer(config.make_model(task), task, config.training, config.seed)
    for _ in range(3):
        trainer.step()
    return trainer.state()


def differ(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return any(name in b and not torch.equal(a[name], b[name]) for name in a)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "professor_weight": (
        {"forcing": "professor", "professor_weight": 0.5},
        {"forcing": "professor", "professor_weight": 5.0},
    ),
    "ratio": ({"forcing": "ratio", "ratio": 0.1}, {"forcing": "ratio", "ratio": 0.9}),
    "l2": ({}, {"l2": 0.1}),
    "clip": ({"clip": 0.01}, {"clip": None}),
    "beta1": ({"beta1": 0.5}, {"beta1": 0.99}),
    "beta2": ({"beta2": 0.5}, {"beta2": 0.99}),
    "epsilon": ({}, {"epsilon": 0.1}),
    "learning_rate": ({}, {"learning_rate": 0.1}),
    "warmup": ({}, {"warmup": 10}),
    "decay": ({"updates": 5}, {"updates": 5, "decay": "linear"}),
    "decay_rate": ({"decay": "exponential"}, {"decay": "exponential", "decay_rate": 0.5}),
    "average": ({"clip": None}, {"clip": None, "average": "sequences"}),
    "batch": ({}, {"batch": 5}),
    "freeze": ({}, {"freeze": "encoder.embedding"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_of_training_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A discriminator that is always between its two thresholds teaches at every update.
    monkeypatch.setattr(loop, "TEACHES_ABOVE", 0.0)
    one, other = CHANGES[name]
    assert differ(step_with(**one), step_with(**other)), f"{name} changes nothing"
    assert not differ(step_with(**one), step_with(**one))


def test_the_weight_of_the_professor_is_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model minimises is the likelihood plus weight times what the professor asks."""
    monkeypatch.setattr(loop.Trainer, "_professor", lambda self, batch, output: asked)
    seen: list[float] = []
    monkeypatch.setattr(torch.Tensor, "backward", lambda self: seen.append(float(self.detach())))
    monkeypatch.setattr(loop.Trainer, "_descend", lambda self, name, value: value)
    for weight in (0.0, 1.0, 3.0):
        asked = torch.tensor(0.7)
        settings = {**SMALL, "forcing": "professor", "professor_weight": weight}
        config = assemble("reversal", "chapter36", 0, settings)
        task = config.make_task()
        loop.Trainer(config.make_model(task), task, config.training, 0).step()
    assert seen[1] - seen[0] == pytest.approx(0.7, abs=1e-5)
    assert seen[2] - seen[0] == pytest.approx(2.1, abs=1e-5)


def test_coin_flips_depend_on_seed_and_update() -> None:
    config = TrainingConfig(forcing="ratio", ratio=0.5)
    base = forcing.forced_steps(config, 3, 0, 64)
    assert torch.equal(base, forcing.forced_steps(config, 3, 0, 64))
    assert not torch.equal(base, forcing.forced_steps(config, 3, 1, 64))
    assert not torch.equal(base, forcing.forced_steps(config, 4, 0, 64))
    many = [
        forcing.forced_steps(TrainingConfig(forcing="ratio", ratio=0.2), u, 0, 500)
        for u in range(8)
    ]
    assert torch.cat(many).float().mean() == pytest.approx(0.2, abs=0.03)


def test_rates_by_hand() -> None:
    base = {"learning_rate": 0.4, "warmup": 4, "updates": 12}
    linear = TrainingConfig(**base, decay="linear")
    assert [learning_rate(linear, u) for u in (0, 1, 3, 4, 8, 12)] == pytest.approx(
        [0.1, 0.2, 0.4, 0.4, 0.2, 0.0]
    )
    cosine = TrainingConfig(**base, decay="cosine")
    assert [learning_rate(cosine, u) for u in (4, 6, 8, 12)] == pytest.approx(
        [0.4, 0.4 * (1 + math.sqrt(0.5)) / 2, 0.2, 0.0], abs=1e-12
    )
    falling = TrainingConfig(learning_rate=0.4, decay="exponential", decay_rate=0.5)
    assert [learning_rate(falling, u) for u in (0, 1, 3)] == pytest.approx([0.4, 0.2, 0.05])


CURVES = {"linear": 0.75, "exponential": math.exp(-1.25), "inverse-sigmoid": 1 / (1 + math.exp(-3))}


def replace_floor(config: TrainingConfig) -> TrainingConfig:
    return config.model_copy(update={"schedule_floor": 0.0})


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("linear", [1.0, 0.75, 0.5, 0.3]),
        ("exponential", [1.0, 0.3, 0.3, 0.3]),
        ("inverse-sigmoid", [1 / (1 + math.exp(-6)), 1 / (1 + math.exp(-3)), 0.5, 0.3]),
    ],
)
def test_chances_by_hand(schedule: Any, wanted: list[float]) -> None:
    config = TrainingConfig(forcing="scheduled", schedule=schedule, schedule_floor=0.3, updates=100)
    assert forcing_chance(replace_floor(config), 25) == pytest.approx(CURVES[schedule])
    assert [forcing_chance(config, u) for u in (0, 25, 50, 100)] == pytest.approx(wanted)


def test_evaluation_is_without_dropout() -> None:
    config = assemble("reversal", "chapter36", 0, {**SMALL, "layers": 2, "dropout": 0.6})
    task = config.make_task()
    model = config.make_model(task)
    trainer = loop.Trainer(model, task, config.training, 0)
    model.train()
    split = task.split("validation")
    assert evaluation.evaluate(model, task, split) == evaluation.evaluate(model, task, split)
    assert trainer.objective(split) == trainer.objective(split)
    assert model.training, "evaluation leaves the mode as it was"
    plain = assemble("reversal", "chapter36", 0, {**SMALL, "layers": 2})
    same = plain.make_model(task)
    same.load_state_dict(model.state_dict())
    assert evaluation.evaluate(same.eval(), task, split) == evaluation.evaluate(model, task, split)
