"""`regard demo`: the first look."""

from __future__ import annotations

from regard.cli._options import Jobs, Json, ResultsFolder, RunsFolder
from regard.cli.reproduce import reproduce

EXAMPLE = "regard demo"


def demo(
    jobs: Jobs = None,
    runs: RunsFolder = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Train a fixed-vector model and an attention model, show the difference in a report."""
    reproduce("demo", jobs=jobs, runs=runs, out=out, json=json)
