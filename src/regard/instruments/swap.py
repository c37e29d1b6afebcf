"""`swap`: a component of one model put into another, frozen, and the rest trained anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

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
from regard.models.components import parameters_of
from regard.runs import Run


@dataclass(frozen=True)
class SwapResult(Result[Stages]):
    """Accuracies over pairs of runs."""

    component: str = ""
    name = "swap"
    within = (0.0, 1.0)

    def table(self) -> Table:
        """A row per split: as it was, with the other's component, and after retraining."""
        title = f"{self.component} swapped, {self.n} pair{'s' * (self.n > 1)}"
        return stage_table(title, self.seeds, self.estimates())

    def figure(self) -> Figure:
        """The same as bars."""
        caption = (
            f"Sequence accuracy of the receiving model as it was, with the donor's"
            f" {self.component} in the place of its own, and after training the rest with that"
            f" frozen; {self.n} pairs."
        )
        return stage_figure("swap", caption, self.seeds, self.estimates())

    def to_json(self) -> dict[str, Any]:
        """The estimates, and what was swapped."""
        return {**super().to_json(), "component": self.component}


def swapped(
    into: Run,
    donor: Run,
    component: str,
    updates: int | None = None,
    epochs: int | None = None,
) -> Changed:
    """One model with a component of another, to be trained with that component frozen.

    Shapes must agree; where they do not, all that differ are in the message.
    """
    receiving, giving = into.model(), donor.model()
    names = parameters_of(receiving, [component])
    theirs = parameters_of(giving, [component])
    own, other = receiving.state_dict(), giving.state_dict()
    faults = [
        f"'{name}' is {_shape(own, name)} in {into.folder.name} and {_shape(other, name)} in"
        f" {donor.folder.name}: {component} cannot go from one to the other."
        for name in dict.fromkeys([*names, *theirs])
        if _shape(own, name) != _shape(other, name)
    ]
    if faults:
        raise RegardError(*faults)
    weights = {**own, **{name: other[name] for name in names}}
    settings = {"freeze": (component,), **updates_of(into, updates, epochs)}
    return Changed(into, weights, settings)


def swap(
    runs: Runs,
    donors: Runs,
    component: str,
    updates: int | None = None,
    epochs: int | None = None,
    train: Trainer = side_by_side,
) -> SwapResult:
    """Put a donor's component into a run's model, freeze it, train the rest (baan2019, 5.1).

    Pairs are made in order: the first run with the first donor. The receiving model is trained
    as it was before (guidance included) with a fresh optimiser, for as long as it was, or for
    `updates` or `epochs`; its best checkpoint counts where the run's own did. Components:
    encoder, decoder (with attention, focus, embedding and output), encoder.embedding,
    encoder.W_ih, encoder.W_hh, the same of the decoder, attention, focus, output.

    >>> regard.swap(guided, baseline, "decoder.embedding", epochs=100)  # doctest: +SKIP
    """
    into, given = opened(runs), opened(donors)
    if len(into) != len(given):
        raise RegardError(f"{len(into)} runs and {len(given)} donors do not make pairs.")
    changed = [swapped(a, b, component, updates, epochs) for a, b in zip(into, given, strict=True)]
    after = train([one.config() for one in changed], into[0].folder.parent)
    return SwapResult(
        tuple(
            Stages(
                {
                    "as it was": shares(one.run.metrics),
                    "swapped": one.metrics(),
                    "retrained": shares(run.metrics),
                }
            )
            for one, run in zip(changed, after, strict=True)
        ),
        component,
    )


def swaps(runs: Runs, donors: Runs, components: Sequence[str], **options: Any) -> list[SwapResult]:
    """`swap` for several components."""
    return [swap(runs, donors, component, **options) for component in components]


def _shape(state: dict[str, Tensor], name: str) -> str:
    return " x ".join(map(str, state[name].shape)) if name in state else "missing"
