"""`prune`: keep only the strongest units or weights, and see what is left, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.display import Figure, Table
from regard.errors import RegardError
from regard.instruments.instrument import Result, Runs, opened
from regard.instruments.retrain import (
    Changed,
    Stages,
    Trainer,
    shares,
    side_by_side,
    stage_figure,
    stage_table,
    updates_of,
)
from regard.instruments.strengths import strongest, unit_strengths
from regard.models import EncoderDecoder, Seq2Seq
from regard.models.cells import Cell
from regard.runs import Run

What = Literal["units", "weights"]
Mask = Literal["held", "free", "both", "none"]


@dataclass(frozen=True)
class PruneResult(Result[Stages]):
    """Accuracies over runs."""

    what: str = "units"
    keep: float = 0.05
    left: float = 1.0  # the share of all parameters that is not zero, mean over runs
    name = "prune"
    within = (0.0, 1.0)

    def table(self) -> Table:
        """A row per split: as it was, pruned, and retrained in either way."""
        title = (
            f"The strongest {self.keep:.0%} of {self.what} kept ({self.left:.1%} of the"
            f" parameters), {self.n} run{'s' * (self.n > 1)}"
        )
        return stage_table(title, self.seeds, self.estimates())

    def figure(self) -> Figure:
        """The same as bars."""
        caption = (
            f"Sequence accuracy as it was, with only the strongest {self.keep:.0%} of"
            f" {self.what}, and after retraining: with the mask held, so that what was pruned"
            f" stays zero, or free, so that it can grow back; {self.n} runs."
        )
        return stage_figure("prune", caption, self.seeds, self.estimates())

    def to_json(self) -> dict[str, Any]:
        """The estimates, and what was kept."""
        return {**super().to_json(), "what": self.what, "keep": self.keep, "left": self.left}


def pruned(
    run: Run,
    keep: float = 0.05,
    what: What = "units",
    held: bool = False,
    updates: int | None = None,
    epochs: int | None = None,
) -> Changed:
    """A run's model with only its strongest units or weights; `held` keeps the rest at zero."""
    if not 0 < keep <= 1:
        raise RegardError(f"keep={keep} does not fit: it is a share above 0 and at most 1.")
    model = run.model()
    with torch.no_grad():
        if what == "units":
            prune_units(model, keep)
        else:
            prune_weights(model, keep)
    settings = {"keep_zeros": held, **updates_of(run, updates, epochs)}
    return Changed(run, dict(model.state_dict()), settings)


def prune_units(model: Seq2Seq, keep: float) -> dict[str, list[int]]:
    """Silence all but the strongest units of each cell, in place; returns those kept.

    A unit's strength is the mean size of its weights (`strengths.py`). What leads into a silenced
    unit becomes zero in all gates, biases included, and so does what leads out of it: its column
    of W_hh, of the cell above, of the attention's query and of the output layer.
    """
    if not isinstance(model, EncoderDecoder) or not model.config.recurrent:
        raise RegardError(
            f"A {type(model).__name__} has no recurrent units to keep. Prune weights instead:"
            " what=weights."
        )
    if model.config.bidirectional:
        raise RegardError("Units of a two-way encoder cannot be pruned yet. Take what=weights.")
    kept = {}
    for side, chain in (("encoder", model.encoder.ahead), ("decoder", model.decoder)):
        for layer, cell in enumerate(chain):  # type: ignore[arg-type]
            assert isinstance(cell, Cell)
            sizes = unit_strengths(cell.weight_ih.numpy(), cell.weight_hh.numpy())
            units = strongest(sizes, keep)
            gone = torch.ones(cell.hidden, dtype=torch.bool)
            gone[torch.from_numpy(units.copy())] = False
            rows = gone.repeat(cell.blocks)
            for name, parameter in cell.named_parameters():
                parameter[rows] = 0
                if name == "weight_hh":
                    parameter[:, gone] = 0
            for matrix in _above(model, side, layer, len(chain)):  # type: ignore[arg-type]
                matrix[:, gone] = 0
            kept[f"{side}.{layer}"] = sorted(int(unit) for unit in units)
    return kept


def _above(model: EncoderDecoder, side: str, layer: int, layers: int) -> list[Tensor]:
    """The matrices whose columns meet the units of a layer.

    What the encoder's last layer says is zero where a unit is silent, so that nothing more needs
    to be cut; a decoder's unit starts from the encoder's state and has to be cut off.
    """
    if layer + 1 < layers:
        chain: Any = model.encoder.ahead if side == "encoder" else model.decoder
        return [chain[layer + 1].weight_ih]
    if side == "encoder":
        return []
    found = [model.readout.weight[:, : model.config.hidden]] if model.reads[0] else []
    query = getattr(model.attention, "query", None)
    return [*found, query.weight] if isinstance(query, nn.Linear) else found


def prune_weights(model: nn.Module, keep: float) -> None:
    """Keep the largest share of every matrix, in place; biases and vectors stay."""
    for parameter in model.parameters():
        if parameter.ndim < 2:
            continue
        count = max(1, round(keep * parameter.numel()))
        sizes = parameter.abs().flatten()
        chosen = sizes.topk(count).indices
        mask = torch.zeros_like(sizes)
        mask[chosen] = 1
        parameter.mul_(mask.view_as(parameter))


def prune(
    runs: Runs,
    keep: float = 0.05,
    what: What = "units",
    mask: Mask = "both",
    updates: int | None = None,
    epochs: int | None = None,
    train: Trainer = side_by_side,
) -> PruneResult:
    """Keep the strongest share of units or weights, measure, retrain, measure (baan2019, 5.2).

    Retraining takes `updates` or `epochs` (default: a fifth of the run's own time) with a fresh
    optimiser. With `mask` held, what was pruned stays zero; free, it can grow back (which is what
    the paper's program does); both, or none: no retraining.

    >>> regard.prune(runs, keep=0.05, epochs=20)  # doctest: +SKIP
    """
    many = opened(runs)
    ways = [way for way in ("held", "free") if mask in (way, "both")]
    seeds, left = [], []
    plans = []
    for run in many:
        if updates is None and epochs is None:
            updates_here: int | None = max(1, run.config.training.updates // 5)
        else:
            updates_here = updates
        changed = {
            way: pruned(run, keep, what, way == "held", updates_here, epochs)
            for way in ways or ["free"]
        }
        plans.append(changed)
    configs = [one.config() for changed in plans for way, one in changed.items() if way in ways]
    after = iter(train(configs, many[0].folder.parent) if configs else [])
    for run, changed in zip(many, plans, strict=True):
        first = next(iter(changed.values()))
        stages = {"as it was": shares(run.metrics), "pruned": first.metrics()}
        stages |= {f"retrained, mask {way}": shares(next(after).metrics) for way in ways}
        seeds.append(Stages(stages))
        left.append(_left(first.model()))
    return PruneResult(tuple(seeds), what, keep, sum(left) / len(left))


def _left(model: nn.Module) -> float:
    numbers = [(int((p != 0).sum()), p.numel()) for p in model.parameters()]
    return sum(n for n, _ in numbers) / sum(n for _, n in numbers)
