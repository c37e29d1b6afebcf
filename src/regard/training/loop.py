"""The training loop: batches in, updates out, and a state that can be put down and picked up."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.layers.dropping import part_of
from regard.models.seq2seq import Output, Seq2Seq
from regard.tasks.batch import Batch
from regard.tasks.task import Task
from regard.training.adam import Adam
from regard.training.config import TrainingConfig
from regard.training.evaluation import PIECE, evaluate, evaluating
from regard.training.forcing import forced_steps, forward
from regard.training.losses import Counts, crossing, guidance, l2_gradient, likelihood
from regard.training.memory import keep_freed_memory
from regard.training.pieces import Piece, cut, require_separable
from regard.training.precision import check_precision, compute_in
from regard.training.professor import (
    LEARNS_BELOW,
    TEACHES_ABOVE,
    Discriminator,
    discriminator_loss,
    generator_loss,
)
from regard.training.ranks import ALONE, Ranks
from regard.training.schedules import forcing_chance, learning_rate


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, so that a run gives the same bits however many cores there are.

    What is in memory by now is also hidden from Python's garbage collector for the time: it
    would walk over all of it again and again, which takes a twentieth of a small run.
    """
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(before)


def seed_everything(seed: int, update: int) -> None:
    """Torch's generators as a function of seed and update: nothing to save, nothing to restore."""
    # Torch keeps the low 32 bits of a seed, so both numbers have to be mixed into them.
    digest = blake2b(f"{seed} {update}".encode(), digest_size=4).digest()
    number = int.from_bytes(digest, "little")
    torch.default_generator.manual_seed(number)  # torch.manual_seed takes ten times as long
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(number)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(number)


class Trainer:
    """A model, its optimisers, and how far they have come.

    One of several that train together (`ranks`) takes its part of every batch, and all of them
    have the same weights after every update.
    """

    def __init__(
        self,
        model: Seq2Seq,
        task: Task,
        config: TrainingConfig,
        seed: int,
        ranks: Ranks = ALONE,
    ):
        self.model = model.to(config.device)
        self.task, self.config, self.seed, self.ranks = task, config, seed, ranks
        check_precision(config)
        if ranks.size * config.accumulate > 1:
            require_separable(model)
        self.update = 0
        self.best = -math.inf  # the best checkpoint's accuracy so far, or its negative loss
        self.modules: dict[str, torch.nn.Module] = {"model": model}
        self._freeze()
        if config.guidance:
            self._check_guidance()
        if config.forcing == "professor":
            states, words = self._trajectory_sizes()
            self.modules["discriminator"] = Discriminator(states, words).to(config.device)
        self.optimizers = {name: self._adam(module) for name, module in self.modules.items()}

    def _freeze(self) -> None:
        """Take out of training what the configuration says, and note which weights stay zero."""
        names = self.model.parameters_of(self.config.freeze)
        parameters = dict(self.model.named_parameters())
        for name in names:
            parameters[name].requires_grad_(False)
        if not any(p.requires_grad for p in parameters.values()):
            raise RegardError("training.freeze leaves nothing to train. Freeze less.")
        held = [p for p in parameters.values() if p.requires_grad and self.config.keep_zeros]
        self.masks = {p: (p.detach() != 0).to(p.dtype) for p in held}

    def _check_guidance(self) -> None:
        batch = self.task.split("validation")[:1].to(self.config.device)
        if batch.alignment is None:
            raise RegardError(
                "training.guidance needs a task with attention targets, and this one has none."
                " Leave guidance out, or take a task that has some, for example lookup or scan."
            )
        with evaluating(self.model):
            output = self.model(batch.source, batch.source_lengths, batch.inputs)
        if not crossing(output.sites):
            raise RegardError(
                "training.guidance needs a model with attention, and this one has none."
                " Set model.attention, for example to dot."
            )

    def _loss(
        self, output: Output, batch: Batch, whole: Counts | None = None
    ) -> tuple[Tensor, float]:
        """What is minimised, guidance included, and the likelihood alone.

        Of a piece of a `whole` batch, its part of both.
        """
        average, logits = self.config.average, output.logits
        if logits.dtype == torch.bfloat16:
            logits = logits.float()
        loss = likelihood(logits, batch.target, batch.target_mask, average, whole)
        value = float(loss.detach())
        if self.config.guidance > 0 and self.config.guidance_by == "loss":
            loss = loss + self.config.guidance * guidance(output.sites, batch, average, whole)
        return loss, value

    def objective(self, batch: Batch) -> float:
        """The training loss on some batch, guidance included, fed as in training.

        Piece by piece, each weighed by its sequences.
        """
        own = forcing_chance(self.config, self.update) == 0
        force, total = self.config.guidance_by == "force", 0.0
        with evaluating(self.model):
            for piece in batch.pieces(PIECE):
                piece = piece.to(self.config.device)
                forced = torch.full((piece.target.shape[1],), not own)
                output = forward(self.model, piece, forced, force)
                total += float(self._loss(output, piece)[0]) * len(piece)
        return total / len(batch)

    def _adam(self, module: torch.nn.Module) -> Adam:
        config = self.config
        return Adam(
            [p for p in module.parameters() if p.requires_grad],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=config.device != "mps",
        )

    def _trajectory_sizes(self) -> tuple[int, int]:
        batch = self.task.split("validation")[:1].to(self.config.device)
        with torch.no_grad():
            output = self.model(batch.source, batch.source_lengths, batch.inputs)
        return output.decoder_states.shape[2], output.logits.shape[2]

    def step(self) -> float:
        """One update. Returns its loss; a loss that is not a number changes nothing."""
        batch = self.task.train_batch(self.update, self.config.batch, self.seed)
        batch = batch.to(self.config.device)
        self.model.train()
        forced = forced_steps(self.config, self.update, self.seed, batch.target.shape[1])
        self.optimizers["model"].zero_grad()
        pieces = cut(batch, self.ranks, self.config.accumulate)
        value = self._descend("model", sum(self._learn(piece, forced) for piece in pieces))
        self.update += 1
        return value

    def _learn(self, piece: Piece, forced: Tensor) -> float:
        """Add the gradient of a piece of the batch to that of the model; returns its loss.

        Random numbers begin anew with every piece, so that all pieces know those of the batch.
        """
        seed_everything(self.seed, self.update)
        batch, whole = piece.batch, piece.whole is None
        cutting = nullcontext() if whole else part_of(piece.start, piece.rows)
        with cutting, compute_in(self.config):
            output = forward(self.model, batch, forced, self.config.guidance_by == "force")
            loss, value = self._loss(output, batch, piece.whole)
            self.check("loss", value, self.update + 1)
            if "discriminator" in self.modules:
                loss = loss + self.config.professor_weight * self._professor(piece, output)
        loss.backward()  # type: ignore[no-untyped-call]
        return value

    def check_weights(self) -> None:
        """Stop before weights that are not numbers are kept: no loss follows the last update."""
        norms = torch._foreach_norm([p.detach() for p in self.model.parameters()])
        self.check("size of the weights", float(torch.stack(norms).max()), self.update)

    def check(self, what: str, value: float, update: int) -> None:
        """Stop before something that is not a number reaches the weights, or the run's files."""
        if not math.isfinite(value):
            raise RegardError(
                f"The {what} became {value} at update {update}, so training stopped"
                " there. The last good checkpoint is kept."
                f" Lower training.learning_rate (now {self.config.learning_rate:g})"
                f" or training.clip (now {self.config.clip})."
            )

    def _professor(self, piece: Piece, taught: Output) -> Tensor:
        """Train the discriminator where it needs it, and say what it asks of the model."""
        discriminator, batch = self.modules["discriminator"], piece.batch
        never = torch.zeros(batch.target.shape[1], dtype=torch.bool)
        free = forward(self.model, batch, never)
        seen = (discriminator(detach(output), batch) for output in (taught, free))
        loss, accuracy = discriminator_loss(*seen)
        accuracy = self.ranks.add_number(accuracy * piece.share)
        if accuracy < LEARNS_BELOW:
            self.optimizers["discriminator"].zero_grad()
            (loss * piece.share).backward()  # type: ignore[no-untyped-call]
            self._descend("discriminator")
        if accuracy < TEACHES_ABOVE:
            return torch.zeros((), device=loss.device)
        return generator_loss(discriminator(free, batch)) * piece.share

    def _descend(self, name: str, value: float = 0.0) -> float:
        """Take all processes' gradients one step down; returns the sum of their values."""
        optimizer, module = self.optimizers[name], self.modules[name]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(self.config, self.update)
        trained = [p for p in module.parameters() if p.requires_grad]
        value = self.ranks.add_gradients(trained, value)
        learned = [p for p in module.parameters() if p.grad is not None]
        gradients = [p.grad for p in learned if p.grad is not None]
        if self.config.l2 and name == "model":
            l2_gradient(learned, gradients, self.config.l2)
        norm = float(torch.stack(torch._foreach_norm(gradients)).norm())
        self.check("gradient", norm, self.update + 1)
        if self.config.clip is not None and norm > self.config.clip:
            torch._foreach_mul_(gradients, self.config.clip / norm)
        optimizer.step()
        if name == "model" and self.masks:
            with torch.no_grad():
                torch._foreach_mul_(list(self.masks), list(self.masks.values()))
        return value

    def state(self) -> dict[str, Tensor]:
        """Everything that the next update depends on, as named tensors."""
        tensors = {"progress": torch.tensor([self.update, self.best], dtype=torch.float64)}
        for name, module in self.modules.items():
            tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
            moments = self.optimizers[name].state_dict()["state"]
            for index, entries in moments.items():
                tensors |= {f"adam.{name}.{index}.{key}": v for key, v in entries.items()}
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        update, best = tensors["progress"].tolist()
        self.update, self.best = int(update), best
        for name, module in self.modules.items():
            module.load_state_dict(select_prefix(tensors, f"{name}."))
            optimizer = self.optimizers[name]
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in select_prefix(tensors, f"adam.{name}.").items():
                index, entry = key.split(".", 1)
                moments.setdefault(int(index), {})[entry] = value
            optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})


def detach(output: Output) -> Output:
    """The trajectory without its history: the discriminator's lesson is not the model's."""
    states, logits = output.decoder_states.detach(), output.logits.detach()
    return replace(output, decoder_states=states, logits=logits)


def select_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names start with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


class Keeper(Protocol):
    """Where a run's metrics and checkpoints go."""

    def log(self, row: dict[str, Any]) -> None:
        """Take one row of metrics."""

    def checkpoint(self, trainer: Trainer, keep: bool, best: bool) -> None:
        """Write the trainer's state; `keep` it as a milestone, mark it as the `best`."""


def fit(trainer: Trainer, keeper: Keeper) -> None:
    """Train from where the trainer stands to the end, evaluating and keeping on the way."""
    config = trainer.config
    validation = trainer.task.split("validation")
    if trainer.update == 0:
        best = 0 in config.milestones and _judge_together(trainer, keeper, validation)
        keeper.checkpoint(trainer, keep=True, best=best)
    while trainer.update < config.updates and not _may_stop(trainer):
        keeper.log({"update": trainer.update + 1, "loss": trainer.step()})
        noted = trainer.update == config.updates or trainer.update in config.milestones
        keep = noted or trainer.update % config.checkpoint_every == 0
        judge = noted or trainer.update % config.evaluate_every == 0
        if judge or keep:
            trainer.check_weights()
        best = judge and _judge_together(trainer, keeper, validation)
        if judge or keep:
            keeper.checkpoint(trainer, keep=keep or _may_stop(trainer), best=best)


def _judge_together(trainer: Trainer, keeper: Keeper, validation: Batch) -> bool:
    """As `_judge`, which the first process does; the others have to know when to stop."""
    best = trainer.ranks.rank == 0 and _judge(trainer, keeper, validation)
    trainer.best = trainer.ranks.tell(trainer.best)
    return best


def _judge(trainer: Trainer, keeper: Keeper, validation: Batch) -> bool:
    """Evaluate and log; whether no checkpoint before was as good."""
    config = trainer.config
    force = config.guidance_by == "force"
    metrics = evaluate(trainer.model, trainer.task, validation, forced_alignment=force)
    if config.best_by == "loss":
        metrics["objective"] = trainer.objective(validation)
    for name in metrics.keys() & {"loss", "objective"}:
        trainer.check(f"validation {name}", metrics[name], trainer.update)
    keeper.log({"update": trainer.update, "split": "validation", **metrics})
    score = metrics["accuracy"] if config.best_by == "accuracy" else -metrics["objective"]
    best = score > trainer.best
    trainer.best = max(trainer.best, score)
    return best


def _may_stop(trainer: Trainer) -> bool:
    """Whether training may stop; asked of what is saved, so that a cut run stops there, too."""
    wanted = trainer.config.stop_accuracy
    return wanted is not None and trainer.best >= wanted
