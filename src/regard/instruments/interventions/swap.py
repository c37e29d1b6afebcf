"""`swap`: a component of one model put into another, frozen, and the rest trained anew."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator
from torch import Tensor

from regard.display import Figure
from regard.errors import RegardError, together
from regard.instruments.interventions._retrain import (
    Changed,
    Stages,
    StagesResult,
    Trainer,
    choose_duration,
    keep_shares,
    open_finished,
    retrain,
)
from regard.instruments.registry import instrument
from regard.instruments.result import count_nouns
from regard.instruments.sources import Runs
from regard.runs import Run, run_all

# Settings that give equal shapes another meaning, and a part of the names that they are about.
MEANING = {"cell": ("weight_ih", "weight_hh"), "heads": ("attention.",)}


class SwapResult(StagesResult):
    """Accuracies over pairs of runs: as it was, with the other's component, and retrained."""

    @property
    def component(self) -> str:
        """What was swapped."""
        return str(self.settings["component"])

    def heading(self) -> str:
        """What was swapped, and how often."""
        return f"{self.component} swapped, {count_nouns(self.n, 'pair')}"

    def figure(self) -> Figure:
        """The same as bars."""
        return self.draw_stages(
            f"Sequence accuracy of the receiving model as it was, with the donor's"
            f" {self.component} in the place of its own, and after training the rest with that"
            f" frozen; {count_nouns(self.n, 'pair')}."
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, the runs, and what was swapped."""
        return {**super().to_json(), "component": self.component}


@instrument(SwapResult, Runs(alike=False), at_once=True)
def swap(
    runs: Sequence[Run],
    donors: Annotated[Any, PlainValidator(open_finished)],
    component: str,
    updates: int | None = None,
    epochs: int | None = None,
    out: str | Path | None = None,
    train: Trainer = run_all,
) -> tuple[Stages, ...]:
    """Put a donor's component into a run's model, freeze it, train the rest (baan2019, 5.1).

    Pairs are made in order: the first run with the first donor. The receiving model is trained
    with the settings it had (guidance included) and a fresh optimiser, for as long as it was, or
    for `updates` or `epochs`; its best checkpoint counts where the run's own did. The new runs go
    beside the first receiving one, or to `out`. Components: encoder, decoder (with attention,
    focus and output), encoder.embedding, decoder.embedding, attention, output; of a recurrent
    model encoder.W_ih, encoder.W_hh, decoder.W_ih, decoder.W_hh, focus; of a Transformer
    encoder.attention, encoder.feedforward, decoder.attention, decoder.feedforward.

    >>> regard.swap(guided, baseline, "decoder.embedding", epochs=100)  # doctest: +SKIP
    """
    (found,) = swaps(runs, donors, [component], updates, epochs, out, train)
    return found.seeds


def swaps(
    runs: Any,
    donors: Any,
    components: Sequence[str],
    updates: int | None = None,
    epochs: int | None = None,
    out: str | Path | None = None,
    train: Trainer = run_all,
) -> list[SwapResult]:
    """`swap` for several components, each by itself; all are trained side by side."""
    into, given = together([partial(open_finished, runs), partial(open_finished, donors)])
    if len(into) != len(given):
        both = f"{count_nouns(len(into), 'receiving run')} and {count_nouns(len(given), 'donor')}"
        raise RegardError(f"{both} do not make pairs. Give as many of the ones as of the others.")
    wanted = [
        (component, *pair)
        for component in dict.fromkeys(components)
        for pair in zip(into, given, strict=True)
    ]
    changed = together(
        partial(exchange, run, donor, component, updates, epochs)
        for component, run, donor in wanted
    )
    found: dict[str, list[Stages]] = {}
    after = retrain(changed, out, train)
    for (component, run, _), one, new in zip(wanted, changed, after, strict=True):
        stages = {
            "as it was": keep_shares(run.metrics),
            "swapped": one.metrics(),
            "retrained": keep_shares(new.metrics),
        }
        made = Stages(stages, {"retrained": str(new.folder)})
        found.setdefault(component, []).append(made)
    return [
        SwapResult(tuple(seeds), {"component": component}) for component, seeds in found.items()
    ]


def exchange(
    into: Run,
    donor: Run,
    component: str,
    updates: int | None = None,
    epochs: int | None = None,
) -> Changed:
    """One model with a component of another, to be trained with that component frozen.

    Both must have it, with the same shapes; all that differ are in the message.
    """
    receiving, giving = into.model(), donor.model()
    names, theirs = (model.parameters_of([component]) for model in (receiving, giving))
    own, other = receiving.state_dict(), giving.state_dict()
    both = f"{into.folder.name} and {donor.folder.name}"
    faults = [
        f"{component} cannot go from one to the other: '{name}' is {_shape(own, name)} and"
        f" {_shape(other, name)} in {both}."
        for name in dict.fromkeys([*names, *theirs])
        if _shape(own, name) != _shape(other, name)
    ]
    for setting, marks in MEANING.items():
        values = [getattr(run.config.model, setting, None) for run in (into, donor)]
        if values[0] != values[1] and any(mark in name for name in names for mark in marks):
            faults.append(
                f"{component} cannot go from one to the other: model.{setting} is {values[0]} and"
                f" {values[1]} in {both}."
            )
    if faults:
        raise RegardError(*faults)
    frozen = tuple(dict.fromkeys([*into.config.training.freeze, component]))
    return Changed(
        into,
        {**own, **{name: other[name] for name in names}},
        {"by": "swap", "into": into.folder.name, "from": donor.folder.name, "component": component},
        {"freeze": frozen, **choose_duration(into, updates, epochs)},
    )


def _shape(state: dict[str, Tensor], name: str) -> str:
    return " x ".join(map(str, state[name].shape)) if name in state else "missing"
