"""What every experiment has to give, whatever its runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regard.papers import EXPERIMENTS
from regard.papers.framework import Experiment, Findings

Check = Callable[[Experiment, Findings], None]


@pytest.fixture(scope="session")
def check_findings() -> Check:
    """What every rule needs is there, and figures can be drawn."""

    def check(experiment: Experiment, findings: Findings) -> None:
        for row in experiment.rows():
            measures = findings.measures[row.id]
            assert EXPERIMENTS[row.experiment] is type(experiment)
            assert row.names <= set(measures), row.id
            assert row.verdict(measures) in ("reproduced", "partly", "not reproduced")
        assert findings.figures
        for figure in findings.figures:
            assert figure.caption
            assert "<svg" in figure.svg()
            assert figure.interactive()["data"]

    return check
