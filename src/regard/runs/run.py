"""A run: a folder that explains itself, and the way to fill it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from regard.errors import RegardError
from regard.models import Seq2Seq
from regard.runs.config import RunConfig, there
from regard.runs.files import (
    locked,
    read_json,
    read_origin,
    read_tensors,
    write_json,
    write_tensors,
)
from regard.runs.provenance import provenance
from regard.tasks import Task
from regard.training import Trainer, evaluate, fit, missing_device, one_thread
from regard.training.bleu import Spoken, bleu, scorer
from regard.training.loop import under

# Called with (updates done, updates in all, loss, validation accuracy or None).
Watch = Callable[[int, int, float, float | None], None]


def runs_folder() -> Path:
    """Where runs go unless told otherwise: $REGARD_RUNS, or `runs` here."""
    return Path(os.environ.get("REGARD_RUNS", "runs"))


@dataclass(frozen=True)
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
        try:
            return cls(folder, RunConfig.from_json(read_json(path)))
        except RegardError as error:
            raise RegardError(*(f"{path}: {fault}" for fault in error.faults)) from None

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
        if not isinstance(summary, dict) or "metrics" not in summary:
            raise RegardError(f"{self.folder / 'DONE'} is damaged. Delete the run and ask again.")
        return summary

    @property
    def metrics(self) -> dict[str, Any]:
        """The final metrics."""
        metrics: dict[str, Any] = self.summary["metrics"]
        return metrics

    def rows(self) -> list[dict[str, Any]]:
        """Every row of `metrics.jsonl`: one per update, and one per evaluation."""
        text = (self.folder / "metrics.jsonl").read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a run under way may be in the middle of a line
        return [json.loads(line) for line in whole.splitlines()]

    def curve(self, name: str, split: str | None = None) -> tuple[list[int], list[float]]:
        """One metric over updates; without a split, the training loss."""
        rows = [row for row in self.rows() if row.get("split") == split]
        return [row["update"] for row in rows], [row[name] for row in rows]

    def task(self) -> Task:
        """The task that the run learned."""
        return self.config.make_task()

    def model(self, checkpoint: str | int = "reported") -> Seq2Seq:
        """The model at a checkpoint: `last`, `best`, or the number of an update that was kept.

        `reported` is the one whose metrics the run gives, the last or the best.
        """
        model = self.config.blank_model(self.task())
        model.load_state_dict(read_tensors(self._checkpoint(checkpoint)))
        return model.eval()

    def weights(self, checkpoint: str | int = "reported") -> str:
        """The hash of the weights at a checkpoint."""
        return sha256(self._checkpoint(checkpoint).read_bytes()).hexdigest()

    def checkpoints(self) -> list[int]:
        """The updates whose weights were kept, in order."""
        return sorted(int(path.stem) for path in (self.folder / "checkpoints").glob("[0-9]*"))

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
            there = f"Kept: {', '.join(names)}." if names else "None was kept yet: train it first."
            raise RegardError(f"{self.folder} has no checkpoint '{which}'. {there}")
        return path


class Folder:
    """The keeper of one run: metrics are appended, checkpoints replaced, each in whole pieces."""

    def __init__(self, folder: Path, watch: Watch | None):
        self.folder, self.watch = folder, watch
        self.metrics = (folder / "metrics.jsonl").open("ab")
        self.accuracy: float | None = None
        self.total = 0

    def log(self, row: dict[str, Any]) -> None:
        """Append a row; a reader sees it at the next checkpoint at the latest."""
        self.metrics.write((json.dumps(row) + "\n").encode())
        if "split" in row:
            self.accuracy = row["accuracy"]
        elif self.watch:
            self.watch(row["update"], self.total, row["loss"], self.accuracy)

    def checkpoint(self, trainer: Trainer, keep: bool, best: bool) -> None:
        """Metrics first, then weights, then the state that says how much of both is valid."""
        self.metrics.flush()
        os.fsync(self.metrics.fileno())
        state = trainer.state()
        weights = under(state, "model.")
        for wanted, name in ((keep, f"{trainer.update:08d}"), (best, "best")):
            if wanted:
                write_tensors(self.folder / "checkpoints" / f"{name}.safetensors", weights)
        state["metrics_size"] = torch.tensor(self.metrics.tell())
        write_tensors(self.folder / "state.safetensors", state)

    def resume(self, trainer: Trainer) -> None:
        """Go back to the last state that was written whole, if there is one."""
        path = self.folder / "state.safetensors"
        size = 0
        if path.is_file():
            state = read_tensors(path)
            size = int(state.pop("metrics_size"))
            trainer.load_state(state)
        self.metrics.truncate(size)
        self.metrics.seek(size)

    def close(self) -> None:
        """Let go of the metrics file."""
        self.metrics.close()


def execute(
    config: RunConfig, root: Path | None = None, watch: Watch | None = None, preset: str = ""
) -> Run:
    """The run of a configuration: taken from disk if it is there, gone on with if it was cut."""
    folder = (root or runs_folder()) / config.name
    run = Run(folder, config)
    if run.done:
        return run
    if fault := missing_device(config.training.device):
        raise RegardError(fault)
    start = config.training.start
    if start is not None:
        there(Path(start))
    with locked(folder), one_thread():
        if run.done:  # somebody finished it while we waited for nothing
            return run
        if not (folder / "provenance.json").is_file():
            about = provenance(preset=preset, data=config.data())
            if start is not None:
                about["start"] = read_origin(Path(start))
            write_json(folder / "provenance.json", about)
        write_json(folder / "config.json", config.to_json())
        _train(run, watch)
    return run


def _train(run: Run, watch: Watch | None) -> None:
    config, started = run.config, time.perf_counter()
    task = config.make_task()
    if isinstance(task, Spoken):
        scorer()  # better to miss it now than after the training
    trainer = Trainer(config.make_model(task), task, config.training, config.seed)
    keeper = Folder(run.folder, watch)
    try:
        keeper.resume(trainer)
        keeper.total = config.training.updates
        fit(trainer, keeper)
    finally:
        keeper.close()
    model = run.model() if config.training.updates else trainer.model
    write_json(
        run.folder / "DONE",
        {
            "metrics": final_metrics(
                model.to(config.training.device), task, config.training.guidance_by == "force"
            ),
            "updates": trainer.update,
            "parameters": model.parameter_count,
            "seconds": round(time.perf_counter() - started, 2),
            "weights": run.weights(),
        },
    )
    (run.folder / "state.safetensors").unlink(missing_ok=True)


def final_metrics(model: Seq2Seq, task: Task, told: bool = False) -> dict[str, Any]:
    """Everything about the test split, and the accuracy on each further split by its name.

    Tasks of text are also scored by BLEU.
    """
    metrics: dict[str, Any] = {}
    for split in task.splits:
        if split != "validation":
            found = evaluate(model, task, task.split(split), told=told)
            metrics |= found if split == "test" else {split: found["accuracy"]}
    if isinstance(task, Spoken):
        metrics["bleu"] = bleu(model, task, "test")
    return metrics


def list_runs(root: Path | None = None) -> Iterator[Run]:
    """All runs in a folder, by name; folders that are no readable runs are passed over."""
    root = root or runs_folder()
    for path in sorted(root.glob("*/config.json")):
        with suppress(RegardError):
            yield Run.open(path.parent)
