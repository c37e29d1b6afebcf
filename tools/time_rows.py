"""Say what rows of the ledger would take that were measured before costs were kept.

    python tools/time_rows.py

Some updates and an evaluation of every run are timed on this machine; what it takes to look at the
runs is not in it. Experiments whose further runs follow from the first ones are left out, and so
are those whose data are not at hand. The numbers go into docs/results/*.json, as `timed`;
`tools/publish.py` puts them on the pages.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.papers import EXPERIMENTS
from regard.papers.framework import Experiment
from regard.papers.framework.cost import time_runs, took
from regard.runs.files import write_json

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


def main() -> None:
    """Time every experiment that has rows without costs."""
    for page in sorted(RESULTS.glob("*.json")):
        rows = json.loads(page.read_text(encoding="utf-8"))
        names = dict.fromkeys(row["experiment"] for row in rows if lacks_hours(row))
        hours = {name: expect_hours(name) for name in names}
        for name, found in hours.items():
            print(
                f"{name}: {'left out' if found is None else f'{found:.2f} core hours'}", flush=True
            )
        write_json(page, [with_hours(row, hours) for row in rows])


def lacks_hours(row: Mapping[str, Any]) -> bool:
    """Whether a row was measured at full scale, and nobody knows at what cost."""
    return row["scale"] == "full" and not took(row)


def expect_hours(name: str) -> float | None:
    """The core hours of an experiment's runs; None where they cannot all be told."""
    experiment = EXPERIMENTS[name]()
    if experiment.lacks("full") or type(experiment).then is not Experiment.then:
        return None
    plan = experiment.plan("full")
    return time_runs({config.name: config for group in plan.values() for config in group})


def with_hours(row: Mapping[str, Any], hours: Mapping[str, float | None]) -> dict[str, Any]:
    """A row with the hours of its experiment, if it had none."""
    found = hours.get(row["experiment"]) if lacks_hours(row) else None
    known = {"core_hours": found, "core_hours_from": "timed"} if found else {}
    of_before = {"core_hours_from": "measured" if row["core_hours"] else None}
    return {**of_before, **row, **known}


if __name__ == "__main__":
    main()
