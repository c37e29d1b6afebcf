"""What `swap` and `prune` share: a model changed by hand, and runs that train it further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.display import Bars, Figure, Panel, Table
from regard.errors import RegardError, together
from regard.instruments.instrument import Measured, Result, Runs, opened
from regard.models import Seq2Seq
from regard.runs import Run, RunConfig, run_all
from regard.runs.files import packed, write_whole
from regard.runs.run import final_metrics
from regard.tasks.corpus import CorpusTask
from regard.training.evaluation import UNBOUNDED

Trainer = Callable[[Sequence[RunConfig], Path], list[Run]]  # how runs are made


def side_by_side(configs: Sequence[RunConfig], root: Path) -> list[Run]:
    """All runs of some configurations, one process a core."""
    return run_all(configs, root)


@dataclass(frozen=True)
class Changed:
    """A run's model with its weights changed by hand, and how its training would go on."""

    run: Run
    weights: dict[str, Tensor]
    origin: dict[str, Any]  # what was done to which runs
    training: dict[str, Any]  # the settings that differ from the run's own

    def model(self) -> Seq2Seq:
        """The model as changed, before anything is trained."""
        model = self.run.model()
        model.load_state_dict(self.weights)
        return model.eval()

    def metrics(self) -> dict[str, float]:
        """The changed model on every split."""
        told = self.run.config.training.guidance_by == "force"
        return shares(final_metrics(self.model(), self.run.task(), told))

    def going_on(self, **training: Any) -> Changed:
        """The same with further settings."""
        return replace(self, training={**self.training, **training})

    def config(self, root: Path) -> RunConfig:
        """The run that trains it further, with a fresh optimiser and the settings it had.

        The weights go to a file beside the runs, `starts/HASH.safetensors`.
        """
        content = packed(self.weights, self.origin)
        path = root.resolve() / "starts" / f"{sha256(content).hexdigest()[:12]}.safetensors"
        if not path.is_file():
            write_whole(path, content)
        data = self.run.config.to_json()
        data["training"] = {**data["training"], **self.training, "start": str(path)}
        return RunConfig.from_json(data)


def finished(runs: Runs) -> list[Run]:
    """One run or many that came to their end; what is wrong with any of them comes at once."""
    many = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    return together(map(partial(partial, _finished), many)) if many else opened(many)


def _finished(run: Run | str | Path) -> Run:
    (found,) = opened(run)
    _ = found.metrics  # which only a finished run has
    return found


def retrained(changed: Sequence[Changed], out: str | Path | None, train: Trainer) -> list[Run]:
    """The runs that train changed models further, beside the first one's unless told where."""
    if not changed:
        return []
    root = changed[0].run.folder.parent if out is None else Path(out)
    return train([one.config(root) for one in changed], root)


def duration(
    run: Run, updates: int | None, epochs: int | None, share: float = 1.0
) -> dict[str, int]:
    """How long to train further, as settings: a share of the run's own time unless told."""
    if updates is not None and epochs is not None:
        raise RegardError("Give updates or epochs, not both.")
    if epochs is not None:
        task = run.task()
        if not isinstance(task, CorpusTask):
            raise RegardError(
                f"The task {run.config.task_name} draws its examples and has no epochs."
                " Give updates."
            )
        updates = round(epochs * len(task.rows["train"]) / run.config.training.batch)
    if updates is None:
        updates = round(share * run.config.training.updates)
    return {"updates": updates}


def shares(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are shares, by name: not the loss and its like."""
    return {name: float(value) for name, value in metrics.items() if name not in UNBOUNDED}


@dataclass(frozen=True)
class Stages(Measured):
    """One model's accuracies, stage by stage: as it was, changed, retrained."""

    stages: dict[str, dict[str, float]]  # stage -> split -> accuracy
    runs: dict[str, str]  # stage -> the folder of the run that was made for it

    def values(self) -> dict[str, float]:
        """`NC retrained` and so on."""
        return {
            f"{split} {stage}": value
            for stage, splits in self.stages.items()
            for split, value in splits.items()
        }


@dataclass(frozen=True)
class StagesResult(Result[Stages]):
    """Accuracies over models, stage by stage."""

    within = (0.0, 1.0)

    def to_json(self) -> dict[str, Any]:
        """The estimates, and where the retrained runs are."""
        return {**super().to_json(), "runs": [seed.runs for seed in self.seeds]}

    def by_stage(self, title: str) -> Table:
        """A row per split, a column per stage."""
        found, stages = self.estimates(), self.first.stages
        rows = tuple(
            (split, *(found.get(f"{split} {stage}") for stage in stages))
            for split in next(iter(stages.values()))
        )
        return Table(title, ("accuracy", *stages), rows)

    def bars(self, caption: str) -> Figure:
        """Sequence accuracies as bars over splits, a colour per stage."""
        found = self.estimates()
        bars = []
        for colour, (stage, splits) in enumerate(self.first.stages.items()):
            values = {
                "test" if split == "accuracy" else split.replace("_", " "): found[
                    f"{split} {stage}"
                ]
                for split in splits
                if not split.endswith("token_accuracy") and f"{split} {stage}" in found
            }
            bars.append(Bars.of(stage, values, colour))
        panel = Panel("By split", "split", "sequence accuracy", tuple(bars), (0, 1.05))
        return Figure(self.name, caption, (panel,))


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}{'s' * (number != 1)}"
