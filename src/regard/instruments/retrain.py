"""What `swap` and `prune` share: a model changed by hand, and runs that train it further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from regard.display import Bars, Figure, Panel, Table
from regard.errors import RegardError
from regard.instruments.instrument import Measured
from regard.models import Seq2Seq
from regard.runs import Run, RunConfig, run_all
from regard.runs.files import write_whole
from regard.runs.run import final_metrics
from regard.statistics import Estimate

Trainer = Callable[[Sequence[RunConfig], Path], list[Run]]  # how runs are made


def side_by_side(configs: Sequence[RunConfig], root: Path) -> list[Run]:
    """All runs of some configurations, one process a core."""
    return run_all(configs, root)


@dataclass(frozen=True)
class Changed:
    """A run whose weights were changed by hand, and how its training would go on."""

    run: Run
    weights: dict[str, Tensor]
    training: dict[str, Any] = field(default_factory=dict)

    def model(self) -> Seq2Seq:
        """The model as changed, before anything is trained."""
        model = self.run.model()
        model.load_state_dict(self.weights)
        return model.eval()

    def metrics(self) -> dict[str, float]:
        """The changed model on every split."""
        told = self.run.config.training.guidance_by == "force"
        return shares(final_metrics(self.model(), self.run.task(), told))

    def config(self) -> RunConfig:
        """The run that trains it further, with a fresh optimiser and the settings it had.

        The weights go to a file beside the runs, `starts/HASH.safetensors`.
        """
        content = save({name: t.detach().contiguous() for name, t in self.weights.items()})
        folder = self.run.folder.parent / "starts"
        path = folder / f"{sha256(content).hexdigest()[:12]}.safetensors"
        if not path.is_file():
            write_whole(path, content)
        data = self.run.config.to_json()
        data["training"] = {**data["training"], **self.training, "start": str(path)}
        return RunConfig.from_json(data)


def shares(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are shares, by name."""
    return {name: float(value) for name, value in metrics.items() if name != "loss"}


@dataclass(frozen=True)
class Stages(Measured):
    """Accuracies by stage: as it was, changed, retrained."""

    stages: dict[str, dict[str, float]]  # stage -> split -> sequence accuracy

    def values(self) -> dict[str, float]:
        """`NC retrained` and so on."""
        return {
            f"{split} {stage}": value
            for stage, splits in self.stages.items()
            for split, value in splits.items()
        }


def stage_table(title: str, seeds: Sequence[Stages], found: Mapping[str, Estimate]) -> Table:
    """A row per split, a column per stage."""
    stages = seeds[0].stages
    splits = list(next(iter(stages.values())))
    rows = tuple(
        (split, *(found.get(f"{split} {stage}", "") for stage in stages)) for split in splits
    )
    return Table(title, ("accuracy", *stages), rows)


def stage_figure(
    name: str, caption: str, seeds: Sequence[Stages], found: Mapping[str, Estimate]
) -> Figure:
    """Bars over splits, a colour per stage."""
    hidden = {"token_accuracy", "forced_token_accuracy"}
    bars = [
        Bars.of(
            stage,
            {split: found[f"{split} {stage}"] for split in splits if split not in hidden},
            colour,
        )
        for colour, (stage, splits) in enumerate(seeds[0].stages.items())
    ]
    panel = Panel("By split", "split", "sequence accuracy", tuple(bars), (0, 1.05))
    return Figure(name, caption, (panel,))


def updates_of(run: Run, updates: int | None, epochs: int | None) -> dict[str, int]:
    """How long to train further, as settings: the run's own time unless told otherwise."""
    if updates is not None and epochs is not None:
        raise RegardError("Give updates or epochs, not both.")
    if epochs is not None:
        task = run.task()
        rows = getattr(task, "rows", None)
        if rows is None:
            raise RegardError("This task draws its examples, so it has no epochs. Give updates.")
        updates = max(1, round(epochs * len(rows["train"]) / run.config.training.batch))
    return {} if updates is None else {"updates": updates}
