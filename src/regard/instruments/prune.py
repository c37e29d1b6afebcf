"""`prune`: keep only the strongest units or weights, and see what is left, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from regard.display import Figure, Table
from regard.errors import RegardError, together, unknown
from regard.instruments.instrument import Runs
from regard.instruments.retrain import (
    Changed,
    Stages,
    StagesResult,
    Trainer,
    counted,
    duration,
    finished,
    retrained,
    shares,
    side_by_side,
)
from regard.instruments.strengths import strongest, unit_strengths
from regard.models import EncoderDecoder
from regard.models.cells import Cell
from regard.models.encoder import Encoder
from regard.runs import Run

What = Literal["units", "weights"]
Mask = Literal["held", "free", "both", "none"]
SHARE_OF_TIME = 0.2  # how long retraining takes unless told, of the run's own time


@dataclass(frozen=True)
class PruneResult(StagesResult):
    """Accuracies over runs."""

    what: str = "units"
    keep: float = 0.05
    left: float = 1.0  # the share of all parameters that is not zero, mean over runs
    name = "prune"

    def table(self) -> Table:
        """A row per split: as it was, pruned, and retrained in either way."""
        return self.by_stage(
            f"The strongest {self.keep:.3g} of {self.what} kept, {self.left:.1%} of the parameters"
            f" not zero, {counted(self.n, 'run')}"
        )

    def figure(self) -> Figure:
        """The same as bars."""
        return self.bars(
            f"Sequence accuracy as it was, with only the strongest {self.keep:.3g} of {self.what},"
            " and after retraining: with the mask held, so that what was pruned stays zero, or"
            f" free, so that it can grow back; {counted(self.n, 'run')}."
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, the runs, and what was kept."""
        return {**super().to_json(), "what": self.what, "keep": self.keep, "left": self.left}


def prune(
    runs: Runs,
    keep: float = 0.05,
    what: What = "units",
    mask: Mask = "both",
    updates: int | None = None,
    epochs: int | None = None,
    out: str | Path | None = None,
    train: Trainer = side_by_side,
) -> PruneResult:
    """Keep the strongest share of units or weights, measure, retrain, measure (baan2019, 5.2).

    Units are kept cell by cell, weights matrix by matrix. Retraining takes `updates` or `epochs`
    (default: a fifth of the run's own time) with a fresh optimiser. With the `mask` held, what
    was pruned stays zero; free, it can grow back (which is what the paper's program does); both;
    or none: no retraining. The new runs go beside the first run, or to `out`.

    >>> regard.prune(runs, keep=0.05, epochs=20)  # doctest: +SKIP
    """
    many, _ = together([partial(finished, runs), partial(_check, keep, what, mask)])
    cut = together(partial(pruned, run, keep, what, updates, epochs) for run in many)
    ways = [way for way in ("held", "free") if mask in (way, "both")]
    going = [one.going_on(keep_zeros=way == "held") for one in cut for way in ways]
    after = iter(retrained(going, out, train))
    seeds = []
    for one in cut:
        stages = {"as it was": shares(one.run.metrics), "pruned": one.metrics()}
        new = {f"retrained, mask {way}": next(after) for way in ways}
        stages |= {stage: shares(run.metrics) for stage, run in new.items()}
        seeds.append(Stages(stages, {stage: str(run.folder) for stage, run in new.items()}))
    left = sum(_left(one.model()) for one in cut) / len(cut)
    return PruneResult(tuple(seeds), what, keep, left)


def _check(keep: float, what: str, mask: str) -> list[Run]:
    """Raise what is wrong with the settings; there are no runs among them."""
    faults = [
        unknown(name, value, get_args(kind))
        for name, value, kind in (("kind of thing to prune", what, What), ("mask", mask, Mask))
        if value not in get_args(kind)
    ]
    if not 0 < keep <= 1:
        faults.append(f"keep={keep:g} does not fit: it is a share above 0 and at most 1.")
    if faults:
        raise RegardError(*faults)
    return []


def pruned(
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
        duration(run, updates, epochs, SHARE_OF_TIME),
    )


@torch.no_grad()
def prune_units(model: nn.Module, keep: float) -> dict[str, list[int]]:
    """Silence all but the strongest units of each cell, in place; returns those kept.

    A unit's strength is the mean size of its weights (`strengths.py`). What leads into a silenced
    unit becomes zero in all gates, biases included. In the encoder that makes its state zero. In
    the decoder, which starts from the encoder's last state, all that leads out of it becomes zero,
    too. Where the state itself is the attention's query (dot), a unit is one with the encoder's
    unit of that number: both are kept, by the mean of their strengths, or neither.
    """
    if not isinstance(model, EncoderDecoder) or not isinstance(model.encoder, Encoder):
        raise RegardError(
            "This model has no recurrent units to keep. Prune its weights (what=weights)."
        )
    cells = _cells(model)
    strengths = {
        name: unit_strengths(cell.weight_ih.detach().numpy(), cell.weight_hh.detach().numpy())
        for name, (cell, _) in cells.items()
    }
    if (pair := _meeting(model)) is not None:
        shared = (strengths[pair[0]] + strengths[pair[1]]) / 2
        strengths |= dict.fromkeys(pair, shared)
    kept = {}
    for name, (cell, columns) in cells.items():
        units = sorted(int(unit) for unit in strongest(strengths[name], keep))
        gone = torch.ones(cell.hidden, dtype=torch.bool)
        gone[units] = False
        for parameter in cell.parameters():
            parameter[gone.repeat(cell.blocks)] = 0
        for matrix in columns:
            matrix[:, gone] = 0
        kept[name] = units
    return kept


def _cells(model: EncoderDecoder) -> dict[str, tuple[Cell, list[Tensor]]]:
    """Every cell by name, and the tensors in which columns stand for its units.

    An encoder's unit has a column where it starts, if that is learned; what leads out of it need
    not be cut, because its state is zero, and is left so that it can grow back. A decoder's unit
    has one wherever it is read.
    """
    assert isinstance(model.encoder, Encoder) and isinstance(model.decoder, nn.ModuleList)
    found: dict[str, tuple[Cell, list[Tensor]]] = {}
    starts: list[Tensor] = list(model.encoder.starts)
    for layer, (ahead, above) in enumerate(zip(model.encoder.ahead, model.decoder, strict=True)):
        ways = {f"encoder.{layer}": ahead}
        if model.config.bidirectional:
            ways = {
                f"encoder.{layer}.ahead": ahead,
                f"encoder.{layer}.back": model.encoder.back[layer],
            }
        for name, cell in ways.items():
            assert isinstance(cell, Cell)
            found[name] = cell, [starts.pop(0)] if starts else []
        assert isinstance(above, Cell)
        found[f"decoder.{layer}"] = above, _readers(model, layer)
    return found


def _readers(model: EncoderDecoder, layer: int) -> list[Tensor]:
    """The matrices that read the units of a decoder's layer, a column for each."""
    cells: Any = model.decoder
    found = [cells[layer].weight_hh]
    if layer + 1 < len(cells):
        return [*found, cells[layer + 1].weight_ih]
    if model.reads[0]:
        found.append(model.readout.weight[:, : model.config.hidden])
    query = _query(model)
    if query is not None:
        found.append(query.weight)
    elif model.attention is not None:  # nothing to cut before it, so that it must start from zero
        bridges: Any = model.bridge[-model.per_layer :]
        for bridge in bridges:
            found += [bridge.weight.T, bridge.bias[None]]
    return found


def _query(model: EncoderDecoder) -> nn.Linear | None:
    """What makes a query of a state; None where the state is the query itself."""
    query = getattr(model.attention, "query", None)
    return query if isinstance(query, nn.Linear) else None


def _meeting(model: EncoderDecoder) -> tuple[str, str] | None:
    """The two cells whose units attention multiplies with each other, where there are any."""
    if model.attention is None or _query(model) is not None or model.bridge:
        return None
    last = model.config.layers - 1
    return f"encoder.{last}", f"decoder.{last}"


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


def _left(model: nn.Module) -> float:
    parts = [(int(p.count_nonzero()), p.numel()) for p in model.parameters()]
    return sum(n for n, _ in parts) / sum(n for _, n in parts)
