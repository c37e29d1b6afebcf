"""What is recorded of a run unless told otherwise: the weights whose metrics the run reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regard


@pytest.mark.parametrize("report", ["last", "best"])
def test_the_reported_weights_are_recorded(report: str, tmp_path: Path) -> None:
    run = regard.train(
        "lookup", model="baan", out=tmp_path, hidden=12, decoder_embedding=8, batch=16,
        updates=40, evaluate_every=4, checkpoint_every=40, report=report,
        best_by="accuracy",  # nothing is right, so the first evaluation is the best
    )  # fmt: skip
    recorded = regard.record(run, n=20)
    assert recorded.metadata.origin["weights"] == run.weights(report)
    other = "last" if report == "best" else "best"
    assert run.weights("last") != run.weights("best")
    states = regard.record(run, n=20, checkpoint=other)["encoder.states"]
    assert not np.array_equal(recorded["encoder.states"], states)
