"""How a run learns to attend: what is read of its checkpoints is what each of them says."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard import contextualised
from regard.instruments.scores import agreement
from regard.papers.snell2021._course import count_right, follow, read_scores
from regard.recordings.samples import draw_samples
from regard.runs import assemble, execute
from regard.training import evaluate

SETTINGS = {"vocabulary": 6, "length": 5, "hidden": 8, "embedding": 6, "batch": 8, "updates": 3}


def test_a_course_is_what_its_checkpoints_say(tmp_path: Path) -> None:
    run = execute(assemble("keyword", "snell-classifier", 0, SETTINGS), tmp_path)
    batches = list(draw_samples(run.task(), 9))
    alpha = read_scores(run, batches, "attention", "last")
    found = follow(run, [alpha, alpha], batches, count_right)
    assert found.updates == run.checkpoints()
    early = read_scores(run, batches, "attention", 0)
    assert found.agreements[0] == [float(agreement(alpha, early))] * 2
    assert found.agreements[found.updates[-1]] == [1.0, 1.0]
    whole = evaluate(run.model("last"), run.task(), batches[0])
    assert found.performances[found.updates[-1]] == pytest.approx(whole["forced_token_accuracy"])
    steps = found.updates
    rises = [found.agreements[at][0] for at in steps], [found.performances[at] for at in steps]
    assert contextualised(2.0, *rises) == (found.performances[steps[-1]], False)
