"""A run: a folder that explains itself."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.display import Table
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.runs.checksums import read_checked
from regard.runs.config import RunConfig, sizes_of
from regard.runs.files import MISSING, read_json, read_tensors
from regard.runs.names import check_name, known_data
from regard.runs.weights import Sizes, fill_model, infer_sizes
from regard.tasks.task import Task
from regard.training.bleu import Spoken, bleu
from regard.training.evaluation import evaluate

if TYPE_CHECKING:
    from regard.instruments.result import Result
    from regard.instruments.timelapse import TimelapseResult
    from regard.recordings.recording import Recording

SIZES = "sizes.json"  # of the vocabularies, so that a model can be built without its task


def runs_folder() -> Path:
    """Where runs go by default: $REGARD_RUNS, or `runs` here."""
    return Path(os.environ.get("REGARD_RUNS", "runs"))


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk.

    >>> run = regard.train("reversal", model="chapter36", seed=0)   # doctest: +SKIP
    >>> run.metrics["accuracy"], run.curve("loss")                  # doctest: +SKIP
    """

    folder: Path
    config: RunConfig

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """The run in a folder, which may still be unfinished."""
        folder = Path(folder)
        path = folder / "config.json"
        if not path.is_file():
            raise RegardError(
                f"{folder} is not a run: it has no config.json."
                " `regard ls runs` lists the runs there are."
            )
        data = read_json(path)
        try:
            config = RunConfig.from_json(data)
        except RegardError as error:
            faults = (f"{path}: {fault}" for fault in error.faults)
            raise RegardError(*faults, *_name_plugins(folder)) from None
        check_name(folder, config, data)
        return cls(folder, config)

    def __repr__(self) -> str:
        state = "done" if self.done else "unfinished"
        return f"<Run {self.folder}: {state}>"

    def _repr_html_(self) -> str:
        about = {"folder": self.folder, "task": self.config.task_name, "seed": self.config.seed}
        found = self.metrics if self.done else {"state": "unfinished"}
        return Table.of(f"Run {self.folder.name}", {**about, **found}).html()

    @property
    def done(self) -> bool:
        """Whether training came to its end."""
        return (self.folder / "DONE").is_file()

    @property
    def summary(self) -> dict[str, Any]:
        """Final metrics, updates and seconds, as written at the end."""
        if not self.done:
            raise RegardError(f"{self.folder} is not finished; ask for it again and it goes on.")
        summary: dict[str, Any] = read_json(self.folder / "DONE")
        if not isinstance(summary, dict) or not isinstance(summary.get("metrics"), dict):
            raise RegardError(f"{self.folder / 'DONE'} is damaged. Delete the run and ask again.")
        return summary

    @property
    def metrics(self) -> dict[str, Any]:
        """The final metrics."""
        metrics: dict[str, Any] = self.summary["metrics"]
        return metrics

    def rows(self) -> list[dict[str, Any]]:
        """Every row of `metrics.jsonl`: one per update, and one per evaluation."""
        path = self.folder / "metrics.jsonl"
        content = read_checked(path) if self.done else path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # a run under way may be amid a line
        try:
            return [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise RegardError(
                f"{path} is damaged ({error}). Restore it, or delete {self.folder} and ask again."
            ) from None

    def curve(self, name: str, split: str | None = None) -> tuple[list[int], list[float]]:
        """One metric over updates; without a split, the training loss."""
        rows = [row for row in self.rows() if row.get("split") == split]
        return [row["update"] for row in rows], [row[name] for row in rows]

    def task(self) -> Task:
        """The task that the run learned."""
        self._check_data()
        return self.config.make_task()

    def model(self, checkpoint: str | int = "reported") -> Seq2Seq:
        """The model at a checkpoint: `last`, `best`, or the number of an update that was kept.

        `reported` is the one whose metrics the run gives, the last or the best.
        """
        path = self._checkpoint(checkpoint)
        tensors = read_tensors(path)
        model = self.config.blank_model(self._sizes(tensors))
        fill_model(model, tensors, path)
        return model.eval()

    def _sizes(self, tensors: Mapping[str, Tensor]) -> Sizes:
        """As noted when training began; runs of before have no note, but shapes of weights."""
        path = self.folder / SIZES
        if path.is_file():
            sizes = read_json(path)
            try:
                return int(sizes["source"]), int(sizes["target"])
            except (KeyError, TypeError, ValueError):
                raise RegardError(f"{path} is damaged. Delete it: the weights tell, too.") from None
        return infer_sizes(tensors, self.config.blank_model) or sizes_of(self.task())

    def weights(self, checkpoint: str | int = "reported") -> str:
        """The hash of the weights at a checkpoint."""
        return sha256(read_checked(self._checkpoint(checkpoint))).hexdigest()

    def checkpoints(self) -> list[int]:
        """The updates whose weights were kept, in order."""
        names = (path.name for path in (self.folder / "checkpoints").glob("*.safetensors"))
        return sorted(int(name[:-12]) for name in names if re.fullmatch(r"\d{8,}\.\w+", name))

    def _check_data(self) -> None:
        """Refuse to go on with files that have changed since the run was trained on them."""
        then = known_data(self.folder)
        for key, digest in self.config.task_data().items():
            if then.get(key, digest) != digest != MISSING:
                raise RegardError(
                    f"A file that {self.folder.name} was trained on has changed since: the"
                    f" task's file number {int(key) + 1}. Put it back, or train a new run on it."
                )

    def record(self, **options: Any) -> Recording:
        """What the model does with some samples; options as for `regard.record`."""
        from regard.recordings.record import record

        return record(self, **options)

    def inspect(self, instrument: str, **settings: Any) -> Result[Any]:
        """Put an instrument on this run; it is recorded first where a recording is wanted."""
        from regard.instruments import inspect

        return inspect(self, instrument, **settings)

    def timelapse(self, instrument: str, **settings: Any) -> TimelapseResult:
        """Put an instrument on every checkpoint of this run; see `regard.timelapse`."""
        from regard.instruments.timelapse import timelapse

        return timelapse(self, instrument, **settings)

    def _checkpoint(self, which: str | int) -> Path:
        kept = self.checkpoints()
        if isinstance(which, str) and which.isdigit():  # as the command line has it
            which = int(which)
        if which == "reported":
            which = self.config.training.report if self.config.training.updates else "last"
        if which == "last" and kept:
            which = kept[-1]
        name = which if isinstance(which, str) else f"{which:08d}"
        path = self.folder / "checkpoints" / f"{name}.safetensors"
        if not path.is_file():
            best = ["best"] if (path.parent / "best.safetensors").is_file() else []
            names = [*(["last"] if kept else []), *best, *map(str, kept)]
            others = f"Kept: {', '.join(names)}." if names else "None was kept yet: train it first."
            raise RegardError(f"{self.folder} has no checkpoint '{which}'. {others}")
        return path


def load_run(folder: str | Path) -> Run:
    """The run in a folder that `train` or `regard train` wrote."""
    return Run.open(folder)


def list_runs(root: str | Path | None = None) -> list[Run]:
    """All runs in a folder, by name; folders that are no readable runs are passed over.

    `regard ls runs` and `regard doctor` say which those are, and why.
    """
    found = []
    for path in sorted(Path(root or runs_folder()).glob("*/config.json")):
        with suppress(RegardError, OSError):
            found.append(Run.open(path.parent))
    return found


def final_metrics(model: Seq2Seq, task: Task, forced: bool = False) -> dict[str, Any]:
    """Everything about the test split, and the accuracy on each further split by its name.

    Tasks of text are also scored by BLEU.
    """
    metrics: dict[str, Any] = {}
    for split in task.splits:
        if split != "validation":
            found = evaluate(model, task, task.split(split), forced_alignment=forced)
            metrics |= found if split == "test" else {split: found["accuracy"]}
    if isinstance(task, Spoken):
        metrics["bleu"] = bleu(model, task, "test")
    return metrics


def _name_plugins(folder: Path) -> list[str]:
    """The modules of a user's own that made a run and are not loaded now, and how to load them."""
    path = folder / "provenance.json"
    made_by = read_json(path).get("code") or {} if path.is_file() else {}
    own = [name for name in made_by if name.split(".")[0] != "regard" and name not in sys.modules]
    if not own:
        return []
    named = ",".join(own)
    return [
        f"It was made with {' and '.join(own)}: `regard --plugin {named} …`, REGARD_PLUGINS={named}"
        " or an import knows what is in there."
    ]
