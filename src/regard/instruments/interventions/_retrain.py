"""What `swap` and `prune` share: a model changed by hand, and runs that train it further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.display import Bars, Figure, Panel
from regard.errors import RegardError, together
from regard.instruments.result import SHARE, Measured, Result
from regard.instruments.sources import Runs
from regard.models.seq2seq import Seq2Seq
from regard.runs import Run, RunConfig
from regard.runs.files import packed, write_whole
from regard.runs.run import final_metrics
from regard.tasks.corpus import CorpusTask
from regard.training.evaluation import UNBOUNDED

Trainer = Callable[[Sequence[RunConfig], Path], list[Run]]  # how runs are made


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
        forced = self.run.config.training.guidance_by == "force"
        return keep_shares(final_metrics(self.model(), self.run.task(), forced))

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


def require_finished(runs: Sequence[Run]) -> None:
    """Refuse runs that did not come to their end; all of them at once."""
    together([partial(getattr, run, "metrics") for run in runs])  # which only a finished run has


def open_finished(runs: Any) -> list[Run]:
    """One run or many that came to their end; what is wrong with any of them comes at once."""
    takes = Runs()
    many = together([partial(takes.open, thing, {}, {}) for thing in takes.gather(runs)])
    require_finished(many)
    return many


def retrain(changed: Sequence[Changed], out: str | Path | None, train: Trainer) -> list[Run]:
    """The runs that train changed models further, beside the first one's by default."""
    if not changed:
        return []
    root = changed[0].run.folder.parent if out is None else Path(out)
    return train([one.config(root) for one in changed], root)


def choose_duration(
    run: Run, updates: int | None, epochs: int | None, share: float = 1.0
) -> dict[str, int]:
    """How long to train further, as settings: a share of the run's own time by default."""
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


def keep_shares(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are shares, by name: not the loss and its like."""
    return {name: float(value) for name, value in metrics.items() if name not in UNBOUNDED}


@dataclass(frozen=True)
class Stages(Measured):
    """One model's accuracies, stage by stage: as it was, changed, retrained."""

    stages: dict[str, dict[str, float]]  # stage -> split -> accuracy
    runs: dict[str, str]  # stage -> the folder of the run that was made for it

    def values(self) -> dict[tuple[str, str], float]:
        """By split and stage."""
        return {
            (split, stage): value
            for stage, splits in self.stages.items()
            for split, value in splits.items()
        }


class StagesResult(Result[Stages]):
    """Accuracies over models, stage by stage."""

    columns = ("accuracy",)
    within = SHARE

    def to_json(self) -> dict[str, Any]:
        """The estimates, and where the retrained runs are."""
        return {**super().to_json(), "runs": [seed.runs for seed in self.seeds]}

    def draw_stages(self, caption: str) -> Figure:
        """Sequence accuracies as bars over splits, a colour per stage."""
        found = self.by_key()
        bars = []
        for colour, (stage, splits) in enumerate(self.first.stages.items()):
            values = {
                "test" if split == "accuracy" else split.replace("_", " "): found[split, stage]
                for split in splits
                if not split.endswith("token_accuracy") and (split, stage) in found
            }
            bars.append(Bars.of(stage, values, colour))
        panel = Panel("By split", "split", "sequence accuracy", tuple(bars), (0, 1.05))
        return Figure(self.name, caption, (panel,))
