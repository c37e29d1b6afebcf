"""`prune`: keep only the strongest units or weights, and see what is left, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from regard.display import Figure
from regard.errors import RegardError, together
from regard.instruments._settings import Share
from regard.instruments.interventions._retrain import (
    Changed,
    Stages,
    StagesResult,
    Trainer,
    choose_duration,
    keep_shares,
    require_finished,
    retrain,
)
from regard.instruments.registry import instrument
from regard.instruments.result import count_nouns
from regard.instruments.sources import Runs
from regard.instruments.weights._unit_strengths import strongest, unit_strengths
from regard.models.seq2seq import Seq2Seq
from regard.runs import Run, run_all

What = Literal["units", "weights"]
Mask = Literal["held", "free", "both", "none"]
SHARE_OF_TIME = 0.2  # how long retraining takes by default, of the run's own time


@dataclass(frozen=True)
class Pruned(Stages):
    """One model's accuracies, stage by stage, and how much of it was left."""

    left: float = 1.0  # the share of all parameters that is not zero


class PruneResult(StagesResult):
    """Accuracies over runs: as it was, pruned, and retrained in either way."""

    @property
    def left(self) -> float:
        """The share of all parameters that is not zero, the mean over runs."""
        return sum(seed.left for seed in self.seeds if isinstance(seed, Pruned)) / self.n

    def _kept(self) -> str:
        return f"the strongest {self.settings['keep']:.3g} of {self.settings['what']}"

    def heading(self) -> str:
        """What was kept, and of how many runs."""
        kept = self._kept()
        left = f"{self.left:.1%} of the parameters not zero"
        return f"{kept[0].upper()}{kept[1:]} kept, {left}, {count_nouns(self.n, 'run')}"

    def figure(self) -> Figure:
        """The same as bars."""
        return self.draw_stages(
            f"Sequence accuracy as it was, with only {self._kept()},"
            " and after retraining: with the mask held, so that what was pruned stays zero, or"
            f" free, so that it can grow back; {count_nouns(self.n, 'run')}."
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, the runs, and what was kept."""
        about = {name: self.settings[name] for name in ("what", "keep")}
        return {**super().to_json(), **about, "left": self.left}


@instrument(PruneResult, Runs(), at_once=True)
def prune(
    runs: Sequence[Run],
    keep: Share = 0.05,
    what: What = "units",
    mask: Mask = "both",
    updates: int | None = None,
    epochs: int | None = None,
    out: str | Path | None = None,
    train: Trainer = run_all,
) -> tuple[Pruned, ...]:
    """Keep the strongest share of units or weights, measure, retrain, measure (baan2019, 5.2).

    Units are kept cell by cell, weights matrix by matrix. Retraining takes `updates` or `epochs`
    (default: a fifth of the run's own time) with a fresh optimiser. With the `mask` held, what
    was pruned stays zero; free, it can grow back (which is what the paper's program does); both;
    or none: no retraining. The new runs go beside the first run, or to `out`.

    >>> regard.prune(runs, keep=0.05, epochs=20)  # doctest: +SKIP
    """
    require_finished(runs)
    cut = together(partial(cut_down, run, keep, what, updates, epochs) for run in runs)
    ways = [way for way in ("held", "free") if mask in (way, "both")]
    going = [one.going_on(keep_zeros=way == "held") for one in cut for way in ways]
    after = iter(retrain(going, out, train))
    seeds = []
    for one in cut:
        stages = {"as it was": keep_shares(one.run.metrics), "pruned": one.metrics()}
        new = {f"retrained, mask {way}": next(after) for way in ways}
        stages |= {stage: keep_shares(run.metrics) for stage, run in new.items()}
        folders = {stage: str(run.folder) for stage, run in new.items()}
        seeds.append(Pruned(stages, folders, _share_left(one.model())))
    return tuple(seeds)


def cut_down(
    run: Run,
    keep: float = 0.05,
    what: What = "units",
    updates: int | None = None,
    epochs: int | None = None,
) -> Changed:
    """A run's model with only its strongest units or weights, and how it would be retrained."""
    model = run.model()
    if what == "units":
        prune_units(model, keep)
    else:
        prune_weights(model, keep)
    return Changed(
        run,
        dict(model.state_dict()),
        {"by": "prune", "from": run.folder.name, "keep": keep, "what": what},
        choose_duration(run, updates, epochs, SHARE_OF_TIME),
    )


@torch.no_grad()
def prune_units(model: Seq2Seq, keep: float) -> dict[str, list[int]]:
    """Silence all but the strongest units of each cell, in place; returns those kept.

    A unit's strength is the mean size of its weights (`unit_strengths`). What leads into a silenced
    unit becomes zero in all gates, biases included. In the encoder that makes its state zero. In
    the decoder, which starts from the encoder's last state, all that leads out of it becomes zero,
    too. Where the state itself is the attention's query (dot), a unit is one with the encoder's
    unit of that number: both are kept, by the mean of their strengths, or neither.
    """
    cells = model.cells()
    if not cells:
        raise RegardError(
            "This model has no recurrent units to keep. Prune its weights (what=weights)."
        )
    strengths = {
        name: unit_strengths(
            one.cell.weight_ih.detach().numpy(), one.cell.weight_hh.detach().numpy()
        )
        for name, one in cells.items()
    }
    kept = {}
    for name, one in cells.items():
        strength = np.mean([strengths[other] for other in one.shares or [name]], axis=0)
        units = sorted(int(unit) for unit in strongest(strength, keep))
        gone = torch.ones(one.cell.hidden, dtype=torch.bool)
        gone[units] = False
        for parameter in one.cell.parameters():
            parameter[gone.repeat(one.cell.blocks)] = 0
        for matrix in one.columns:
            matrix[:, gone] = 0
        kept[name] = units
    return kept


@torch.no_grad()
def prune_weights(model: nn.Module, keep: float) -> None:
    """Keep the largest share of every matrix, in place; biases and other vectors stay."""
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2 or not name.rpartition(".")[2].startswith("weight"):
            continue
        sizes = parameter.abs().flatten()
        mask = torch.zeros_like(sizes)
        mask[sizes.topk(max(1, round(keep * len(sizes)))).indices] = 1
        parameter.mul_(mask.view_as(parameter))


def _share_left(model: nn.Module) -> float:
    parts = [(int(p.count_nonzero()), p.numel()) for p in model.parameters()]
    return sum(n for n, _ in parts) / sum(n for _, n in parts)
