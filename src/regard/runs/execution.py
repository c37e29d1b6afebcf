"""How a run's folder is filled: trained from the start, or gone on with where it was cut."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load

from regard.display.progress import make_bar
from regard.errors import RegardError
from regard.runs.checksums import SUMS, final_list, note
from regard.runs.config import RunConfig, assemble, sizes_of
from regard.runs.files import (
    as_json,
    locked,
    packed,
    read_origin,
    read_tensors,
    write_noted,
    write_tensors,
    write_whole,
)
from regard.runs.members import code_of, warn_of_changes
from regard.runs.places import naming, require_regular
from regard.runs.processes import is_first, join, launch, team_size
from regard.runs.provenance import provenance
from regard.runs.run import SIZES, Run, final_metrics, runs_folder
from regard.runs.weights import require_file
from regard.training.bleu import Spoken, scorer
from regard.training.config import missing_device
from regard.training.loop import Trainer, fit, one_thread, select_prefix
from regard.training.ranks import Ranks

# Called with (updates done, updates in all, loss, validation accuracy or None).
Watch = Callable[[int, int, float, float | None], None]


def train(
    task: str,
    model: str = "chapter36",
    seed: int = 0,
    out: str | Path | None = None,
    again: bool = False,
    progress: bool | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a task, or take the run from disk if it is there.

    `task` and `model` are names (`regard ls tasks`, `regard ls models`); `settings` are the same
    keys as on the command line, e.g. `hidden=64`. Runs go to `out`, $REGARD_RUNS or ./runs. With
    `again`, a run that is there is trained anew. A notebook shows how far it is; a script does
    with `progress=True`. `processes=2` shares every batch between two processes.

    >>> run = regard.train("addition", model="chapter36", seed=1, updates=500)  # doctest: +SKIP
    """
    config = assemble(task, model, seed, as_team(settings))
    root = None if out is None else Path(out)
    if again and is_first():
        forget(config, root)
    bar = make_bar("update", progress)

    def watch(update: int, total: int, loss: float, accuracy: float | None) -> None:
        known = "" if accuracy is None else f", accuracy {accuracy:.3f}"
        if bar:
            bar(update, total, f"loss {loss:.3f}{known}")

    return execute(config, root, watch if bar else None, preset=model)


def as_team(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run that all processes make together, where torchrun started several."""
    said = {"processes", "training.processes"} & set(settings)
    together = {"training.processes": team_size()} if team_size() > 1 and not said else {}
    return {**settings, **together}


class Silent:
    """The keeper of a process that is not the first: it writes nothing."""

    def log(self, row: dict[str, Any]) -> None:
        """The first one does."""

    def checkpoint(self, trainer: Trainer, keep: bool, best: bool) -> None:
        """The first one does."""


class Folder:
    """The keeper of one run: metrics are appended, checkpoints replaced, each in whole pieces."""

    def __init__(self, folder: Path, watch: Watch | None, began: float):
        self.folder, self.watch = folder, watch
        self.path = require_regular(folder / "metrics.jsonl")
        self.metrics = self.path.open("ab+")
        self.digest = sha256()  # of the metrics so far
        self.accuracy: float | None = None
        self.total = 0
        self.before, self.began = 0.0, began  # seconds of those who were cut; when we began
        self.worked, self.since = 0.0, time.process_time()  # the same, of the processor

    @property
    def seconds(self) -> float:
        """The time that the run has taken so far, up to its checkpoints where it was cut."""
        return self.before + time.perf_counter() - self.began

    @property
    def core_seconds(self) -> float:
        """The time that a processor was at it: waiting for others does not count."""
        return self.worked + time.process_time() - self.since

    def log(self, row: dict[str, Any]) -> None:
        """Append a row; a reader sees it at the next checkpoint at the latest."""
        line = (json.dumps(row) + "\n").encode()
        self.digest.update(line)
        with naming(self.path):
            self.metrics.write(line)
        if "split" in row:
            self.accuracy = row["accuracy"]
        elif self.watch:
            self.watch(row["update"], self.total, row["loss"], self.accuracy)

    def checkpoint(self, trainer: Trainer, keep: bool, best: bool) -> None:
        """Metrics first, then weights, then the state that says how much of both is valid."""
        with naming(self.path):
            self.metrics.flush()
            os.fsync(self.metrics.fileno())
        state = trainer.state()
        weights = packed(select_prefix(state, "model."))
        for wanted, name in ((keep, f"{trainer.update:08d}"), (best, "best")):
            if wanted:
                path = self.folder / "checkpoints" / f"{name}.safetensors"
                write_noted(self.folder, path, weights)
        state["metrics_size"] = torch.tensor(self.metrics.tell())
        state["metrics_hash"] = torch.tensor(list(self.digest.digest()), dtype=torch.uint8)
        state["seconds"] = torch.tensor(self.seconds, dtype=torch.float64)
        state["core_seconds"] = torch.tensor(self.core_seconds, dtype=torch.float64)
        write_tensors(self.folder / "state.safetensors", state)

    def resume(self, trainer: Trainer) -> None:
        """Go back to the last state that was written whole, if there is one."""
        path = self.folder / "state.safetensors"
        size = 0
        if path.is_file():
            state = read_tensors(path)
            size = self._check_metrics(state)
            self.before = float(state.pop("seconds", 0.0))
            self.worked = float(state.pop("core_seconds", self.before))
            try:
                trainer.load_state(state)
            except (KeyError, ValueError, RuntimeError) as error:
                raise RegardError(
                    f"{path} is no state of this run ({error}). Delete it, and the run begins anew."
                ) from None
        self.metrics.truncate(size)
        self.metrics.seek(size)

    def _check_metrics(self, state: dict[str, torch.Tensor]) -> int:
        """How many bytes of the metrics belong to a state, if they are the ones it was made with.

        States of before have no hash.
        """
        size, wanted = int(state.pop("metrics_size", 0)), state.pop("metrics_hash", None)
        self.metrics.seek(0)
        kept = self.metrics.read(size)
        self.digest = sha256(kept)
        known = None if wanted is None else bytes(wanted.tolist())
        if len(kept) < size or known not in (None, self.digest.digest()):
            raise RegardError(
                f"{self.path} is damaged: its first {size} bytes are not the metrics of the last"
                f" checkpoint. Restore it, or delete {self.folder} and ask again: it is trained"
                " anew."
            )
        return size

    def close(self) -> None:
        """Let go of the metrics file."""
        self.metrics.close()

    def finish(self, summary: dict[str, Any]) -> None:
        """Write down that the run is at its end; what its files hold is settled before."""
        folder, done = self.folder, as_json(summary)
        for path, digest in ((self.path, self.digest), (folder / "DONE", sha256(done))):
            note(folder, path, digest.hexdigest())
        write_whole(folder / SUMS, final_list(folder))
        write_whole(folder / "DONE", done)
        (folder / "state.safetensors").unlink(missing_ok=True)


def execute(
    config: RunConfig, root: Path | None = None, watch: Watch | None = None, preset: str = ""
) -> Run:
    """The run of a configuration: taken from disk if it is there, gone on with if it was cut."""
    root = root or runs_folder()
    run = Run(root / config.name, config)
    if config.training.processes > team_size() == 1:
        if run.done:
            warn_of_changes([run])
        else:
            launch(config, root, watch, preset)
        return run
    with join(config) as ranks:
        if ranks.rank:
            _follow(run, ranks)
        else:
            _lead(run, watch, preset, ranks)
            ranks.tell(0)  # it is all written: the others may look
    return run


def _lead(run: Run, watch: Watch | None, preset: str, ranks: Ranks) -> None:
    """Train as the one that writes; what is done already, the others are told by no state."""
    config, folder = run.config, run.folder
    if folder.is_dir():
        warn_of_changes([run])
    if run.done:
        ranks.tell_bytes(b"")
        return
    if fault := missing_device(config.training.device):
        raise RegardError(fault)
    start = config.training.start
    if start is not None:
        require_file(Path(start))
    if not folder.is_dir():
        config.make_model(config.make_task())  # what is wrong with its files leaves no run behind
    with locked(folder), one_thread():
        if run.done:  # somebody finished it while we waited for nothing
            ranks.tell_bytes(b"")
            return
        if not (folder / "provenance.json").is_file():
            about = provenance(preset=preset, data=config.data(), code=code_of(config))
            if start is not None:
                about["start"] = read_origin(Path(start))
            write_noted(folder, folder / "provenance.json", as_json(about))
        write_noted(folder, folder / "config.json", as_json(config.to_json()))
        _train(run, watch, ranks)


def _follow(run: Run, ranks: Ranks) -> None:
    """Train as one that writes nothing, from the state that the first one has."""
    trainer = None if run.done else _make_trainer(run.config, ranks)
    state = ranks.tell_bytes(b"")
    if state:
        trainer = trainer or _make_trainer(run.config, ranks)
        trainer.load_state(load(state))
        with one_thread():
            fit(trainer, Silent())
    ranks.tell(0)


def _make_trainer(config: RunConfig, ranks: Ranks) -> Trainer:
    task = config.make_task()
    return Trainer(config.make_model(task), task, config.training, config.seed, ranks)


def forget(config: RunConfig, root: Path | None = None) -> None:
    """Remove what there is of a run, so that it is trained anew."""
    folder = (root or runs_folder()) / config.name
    if folder.is_dir():
        with locked(folder):
            shutil.rmtree(folder)


def _train(run: Run, watch: Watch | None, ranks: Ranks) -> None:
    config, began = run.config, time.perf_counter()
    task = config.make_task()
    sizes = dict(zip(("source", "target"), sizes_of(task), strict=True))
    write_noted(run.folder, run.folder / SIZES, as_json(sizes))
    if isinstance(task, Spoken):
        scorer()  # better to miss it now than after the training
    trainer = _make_trainer(config, ranks)
    keeper = Folder(run.folder, watch, began)
    try:
        keeper.resume(trainer)
        if ranks.size > 1:
            ranks.tell_bytes(packed(trainer.state()))
        keeper.total = config.training.updates
        fit(trainer, keeper)
    finally:
        keeper.close()
    model = run.model() if config.training.updates else trainer.model
    model = model.to(config.training.device)
    metrics = final_metrics(model, task, config.training.guidance_by == "force")
    if not all(math.isfinite(value) for value in metrics.values()):
        raise RegardError(
            f"The run {run.folder} ends with metrics that are not numbers ({metrics}), so it is"
            f" not done. Lower training.learning_rate (now {config.training.learning_rate:g})."
        )
    keeper.finish(
        {
            "metrics": metrics,
            "updates": trainer.update,
            "parameters": model.parameter_count,
            "seconds": round(keeper.seconds, 2),
            "core_seconds": round(keeper.core_seconds * config.training.processes, 2),
            "weights": run.weights(),
        }
    )
