"""A worker process: takes configurations on standard input, trains, tells on standard output.

One JSON object a line in both directions. It ends when its input ends or nobody listens.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from regard.errors import RegardError, in_words, out_of_memory
from regard.plugins import PluginWarning
from regard.runs.config import RunConfig
from regard.runs.execution import execute

SECONDS_BETWEEN_NEWS = 0.5
Order = Mapping[str, Any]
Watch = Callable[..., None]  # (done, total, …)
Work = Callable[[Order, Watch], dict[str, Any]]  # what it returns is told when it is done


def serve(work: Work) -> None:
    """Do what is ordered until the input ends."""
    warnings.simplefilter("ignore", PluginWarning)  # who started us has said so
    news = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not get between the lines
    try:
        for line in sys.stdin:
            _serve(work, json.loads(line), news)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr = None  # nobody is there to read it
        sys.exit(1)


def _serve(work: Work, order: Order, news: TextIO) -> None:
    last = 0.0

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=news, flush=True)

    def watch(done: int, total: int, *more: Any) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > SECONDS_BETWEEN_NEWS:
            last = time.monotonic()
            tell(event="progress", numbers=[done, total, *more])

    try:
        tell(event="done", **work(order, watch))
    except RegardError as error:
        tell(event="failed", faults=list(error.faults))
    except BrokenPipeError:
        raise
    except OSError as error:
        tell(event="failed", faults=[in_words(error)])
    except Exception as error:
        unexpected = f"A run ended unexpectedly.\n{traceback.format_exc()}"
        tell(event="failed", faults=[out_of_memory(error) or unexpected])


def train(order: Order, watch: Watch) -> dict[str, Any]:
    """One run."""
    config = RunConfig.from_json(order["config"])
    return {"folder": str(execute(config, Path(order["root"]), watch, order["preset"]).folder)}


if __name__ == "__main__":
    serve(train)
