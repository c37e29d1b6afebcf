"""The small things that are tortured: a run, a run that was cut, a recording, a corpus."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.recordings import Recording
from regard.runs import Run, RunConfig, assemble, execute
from regard.training import loop

SMALL = {"hidden": 6, "batch": 4, "held_out": 10, "evaluate_every": 5, "checkpoint_every": 10}
# The same in a twentieth of a second: what is killed ten thousand times has to be short.
TINY = {"hidden": 2, "batch": 1, "held_out": 2, "shortest": 1, "longest": 2, "updates": 4,
        "evaluate_every": 2, "checkpoint_every": 1}  # fmt: skip
ROWS, SOURCE, TARGET, HIDDEN, WORDS = 40, 5, 4, 6, 7
VOCABULARIES: dict[str, Any] = {
    side: [f"{side}{number}" for number in range(WORDS)]
    for side in ("source_words", "target_words")
}


def small_config(seed: int = 0, **settings: Any) -> RunConfig:
    """A run of a moment."""
    return assemble("reversal", "chapter36", seed, {**SMALL, "updates": 20, **settings})


def tiny_config(seed: int = 0, **settings: Any) -> RunConfig:
    """A run of less than a moment, with five checkpoints."""
    return assemble("reversal", "chapter36", seed, {**TINY, **settings})


def cut_run(root: Path, at: int = 12) -> Path:
    """The folder of a run that was interrupted before an update."""
    real = loop.Trainer.step

    def step(self: loop.Trainer) -> float:
        if self.update == at:
            raise KeyboardInterrupt
        return real(self)

    loop.Trainer.step = step  # type: ignore[method-assign]
    try:
        execute(small_config(), root)
    except KeyboardInterrupt:
        pass
    finally:
        loop.Trainer.step = real  # type: ignore[method-assign]
    return root / small_config().name


def small_arrays(rows: int = ROWS) -> dict[str, Any]:
    """States and words of both sides, some source steps masked, and a readout."""
    rng = np.random.default_rng(0)
    return {
        "encoder.states": rng.normal(size=(rows, SOURCE, HIDDEN)),
        "encoder.words": rng.integers(0, WORDS, (rows, SOURCE)),
        "encoder.mask": np.arange(SOURCE)[None] < rng.integers(2, SOURCE + 1, rows)[:, None],
        "decoder.states": rng.normal(size=(rows, TARGET, HIDDEN)),
        "decoder.words": rng.integers(0, WORDS, (rows, TARGET)),
        "readout": rng.normal(size=(WORDS, HIDDEN)),
    }


def small_recording(path: Path) -> Recording:
    """A recording in a file."""
    return regard.record(small_arrays(), out=path, **VOCABULARIES)


def read_recording(path: Path) -> dict[str, Any]:
    """All that an instrument could read of a recording."""
    recording = regard.load_recording(path)
    found: dict[str, Any] = {name: recording[name].tobytes() for name in recording.names()}
    return {**found, "metadata": recording.metadata}


def hash_run(run: Run) -> dict[str, str]:
    """The hash of everything that the same configuration gives again to the bit."""
    paths = [run.folder / "config.json", run.folder / "metrics.jsonl"]
    paths += sorted(run.folder.glob("checkpoints/*.safetensors"))
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in paths}
    return {**found, "metrics": repr(run.metrics)}
