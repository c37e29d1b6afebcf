"""A worker process: takes configurations on standard input, trains, tells on standard output.

One JSON object a line in both directions. It ends when its input ends or nobody listens.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, TextIO

from regard.errors import RegardError, in_words, out_of_memory
from regard.plugins import PluginWarning
from regard.runs.config import RunConfig
from regard.runs.execution import execute

SECONDS_BETWEEN_NEWS = 0.5


def main() -> None:
    """Serve until the input ends."""
    warnings.simplefilter("ignore", PluginWarning)  # who started us has said so
    news = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not get between the lines
    for line in sys.stdin:
        _serve(json.loads(line), news)


def _serve(order: dict[str, Any], news: TextIO) -> None:
    last = 0.0

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=news, flush=True)

    def watch(update: int, total: int, loss: float, accuracy: float | None) -> None:
        nonlocal last
        if update == total or time.monotonic() - last > SECONDS_BETWEEN_NEWS:
            last = time.monotonic()
            tell(event="progress", numbers=[update, total, loss, accuracy])

    try:
        config = RunConfig.from_json(order["config"])
        run = execute(config, Path(order["root"]), watch, order["preset"])
        tell(event="done", folder=str(run.folder))
    except RegardError as error:
        tell(event="failed", faults=list(error.faults))
    except BrokenPipeError:
        raise
    except OSError as error:
        tell(event="failed", faults=[in_words(error)])
    except Exception as error:
        unexpected = f"A run ended unexpectedly.\n{traceback.format_exc()}"
        tell(event="failed", faults=[out_of_memory(error) or unexpected])


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr = None  # nobody is there to read it
        sys.exit(1)
