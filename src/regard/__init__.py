"""Regard: a laboratory for understanding how encoder-decoder networks attend, learn, generalise.

>>> import regard
>>> run = regard.train("reversal", model="chapter36", seed=0)   # doctest: +SKIP
>>> run.metrics["accuracy"]                                     # doctest: +SKIP
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.instruments import (
    Decomposition,
    Scores,
    ablate,
    activations,
    aer,
    agreement,
    agreements,
    alignment_error_rate,
    breakdown,
    clusters,
    connectivity,
    contextualised,
    cooccurrence,
    decompose,
    gates,
    groups,
    ibm1,
    inputs,
    instruments,
    lean,
    lexical_probe,
    offset,
    optimal_attention,
    orthogonality,
    paths,
    polarity,
    probe,
    proxy_probe,
    prune,
    read_alignments,
    readouts,
    saliency,
    simplex,
    strength,
    swap,
    timelapse,
    variance,
    weights,
)
from regard.papers import claims, reproduce
from regard.recordings import Recording, load_published, load_recording, record
from regard.runs import Run, assemble, execute, list_runs
from regard.statistics import Estimate
from regard.training import evaluate, predict

__version__ = version("regard")


def train(
    task: str,
    model: str = "chapter36",
    seed: int = 0,
    out: str | Path | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a task, or take the run from disk if it is there.

    `task` and `model` are names (`regard ls tasks`, `regard ls models`); `settings` are the same
    keys as on the command line, e.g. `hidden=64`. Runs go to `out`, $REGARD_RUNS or ./runs.

    >>> run = regard.train("addition", model="chapter36", seed=1, updates=500)  # doctest: +SKIP
    """
    config = assemble(task, model, seed, settings)
    return execute(config, None if out is None else Path(out), preset=model)


def load_run(folder: str | Path) -> Run:
    """The run in a folder that `train` or `regard train` wrote."""
    return Run.open(folder)


__all__ = [
    "Decomposition",
    "Estimate",
    "Recording",
    "RegardError",
    "Run",
    "Scores",
    "__version__",
    "ablate",
    "activations",
    "aer",
    "agreement",
    "agreements",
    "alignment_error_rate",
    "breakdown",
    "claims",
    "clusters",
    "connectivity",
    "contextualised",
    "cooccurrence",
    "decompose",
    "evaluate",
    "gates",
    "groups",
    "ibm1",
    "inputs",
    "instruments",
    "lean",
    "lexical_probe",
    "list_runs",
    "load_published",
    "load_recording",
    "load_run",
    "offset",
    "optimal_attention",
    "orthogonality",
    "paths",
    "polarity",
    "predict",
    "probe",
    "proxy_probe",
    "prune",
    "read_alignments",
    "readouts",
    "record",
    "reproduce",
    "saliency",
    "simplex",
    "strength",
    "swap",
    "timelapse",
    "train",
    "variance",
    "weights",
]
