"""Wrong input in Python is answered with one clear sentence, and the obvious works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard import RegardError
from regard.papers.framework.claims import Claim
from regard.recordings import Recording
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks.aligned_rows import read_rows

SMALL = {"updates": 0, "held_out": 10, "hidden": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return regard.train("one-to-one", "aed", 0, tmp_path_factory.mktemp("runs"), **SMALL)


@pytest.fixture(scope="module")
def rec(run: Run) -> Recording:
    return run.record(n=20)


Make = Callable[[Run, Recording], Any]


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda run, rec: run.record(inputs="onw"), r"'onw'. Did you mean 'own'"),
        (lambda run, rec: run.record(n=2.5), r"n=2.5 does not fit"),
        (lambda run, rec: run.record(n=0), r"n=0 does not fit"),
        (lambda run, rec: run.record(n=5, seed=0.5), r"seed=0.5 does not fit"),
        (lambda run, rec: run.record(n=5, checkpoint=None), "checkpoint=None does not fit"),
        (lambda run, rec: run.record(n=5, split="tset"), "no split 'tset'"),
        (lambda run, rec: run.record(n=5, gate=True), "Did you mean 'gates'"),
        (lambda run, rec: run.record(n=5, out=run.folder), "is a folder. Give the path of a file"),
        (lambda run, rec: regard.record({"a": np.ones(3)}, n=5), "n= says how a run is recorded"),
        (lambda run, rec: regard.record(nn.Linear(2, 2), split="test"), "split= says how a run"),
        (lambda run, rec: regard.record(None), "None cannot be recorded"),
        (lambda run, rec: regard.train("reversal", seed=0.5), "seed=0.5 does not fit"),
        (lambda run, rec: regard.train("reversal", seed=True), "seed=True does not fit"),
        (lambda run, rec: regard.inspect([rec, rec], "breakdown"), "is given twice"),
        (lambda run, rec: regard.inspect(rec, "breakdown", n=3), "A recording was given, but n="),
        (lambda run, rec: regard.ablate(rec), "needs the model itself"),
        (lambda run, rec: regard.breakdown(None), "None cannot be inspected"),
        (lambda run, rec: regard.evaluate(rec), "Recording is not a run or a model"),
        (lambda run, rec: regard.evaluate(run.model()), "does not know what is right"),
        (lambda run, rec: regard.evaluate(run, split="x"), "no split 'x'"),
        (lambda run, rec: regard.predict(run, "abc"), "str is not a batch"),
        (lambda run, rec: regard.predict(None), "None is not a run"),
        (lambda run, rec: regard.decompose(run), "Run is not a recording"),
        (lambda run, rec: regard.decompose("nowhere"), "There is no recording nowhere"),
        (lambda run, rec: regard.claims("chapter63"), "Did you mean 'chapter36'"),
    ],
)
def test_one_clear_sentence(make: Make, fault: str, run: Run, rec: Recording) -> None:
    with pytest.raises(RegardError, match=fault) as caught:
        make(run, rec)
    assert len(caught.value.faults) == 1


def test_the_obvious_works(run: Run, rec: Recording, tmp_path: Path) -> None:
    path = tmp_path / "rec.safetensors"
    run.record(n=20, out=path)
    assert regard.decompose(path).encoder.steps == rec.decomposition.encoder.steps
    assert regard.breakdown(run, n=20).n == regard.breakdown(str(path)).n == 1
    assert regard.evaluate(run)["accuracy"] == run.metrics["accuracy"]
    batch, task = run.task().split("test"), run.task()
    assert regard.evaluate(run.model(), task, batch) == regard.evaluate(run)
    with torch.no_grad():
        ours, theirs = regard.predict(run), regard.predict(run.model(), batch, task.ends)
    assert torch.equal(ours, theirs)
    assert isinstance(regard.claims(), list) and isinstance(regard.list_runs(), list)
    assert regard.list_runs(str(run.folder.parent)) == [run]


@pytest.mark.parametrize(
    ("words", "count", "fault"),
    [
        (("revresal", "chapter36", {"digits": 2}), 1, "no task 'revresal'. Did you mean 'rev"),
        (("revresal", "chapter36", {"max_lenth": 5}), 2, "no key 'max_lenth'"),
        (("reversal", "chapter63", {"hidden": 5}), 1, "no model 'chapter63'"),
        (
            ("reversal", "chapter36", {"hiden": 5}),
            1,
            r"Did you mean 'hidden'.*`regard ls settings r",
        ),
        (("reversal", "chapter36", {"zzzz": 5}), 1, r"'zzzz'\. `regard ls settings reversal chap"),
    ],
)
def test_no_false_second_fault(words: Any, count: int, fault: str) -> None:
    task, model, settings = words
    with pytest.raises(RegardError, match=fault) as caught:
        regard.train(task, model, **settings)
    assert len(caught.value.faults) == count
    assert not any("Known:" in text and "no key" in text for text in caught.value.faults)


def claim(**more: str) -> Claim:
    texts = {"id": "a.b", "paper": "a", "experiment": "a/b", "statement": "s", "expected": "e",
             "headline": "gain", "reproduced": "gain > 0", "partly": "gain > -1",
             "figure": "f"}  # fmt: skip
    return Claim(**{**texts, **more})


def test_a_ledger_that_speaks_of_what_is_not_measured() -> None:
    measures = {"gain": Estimate.of([1.0])}
    claim().check_measures(measures, partial=False)
    for typo in ({"headline": "gian"}, {"reproduced": "gian > 0"}, {"partly": "low(gian) > 0"}):
        with pytest.raises(RegardError, match=r"'a\.b' speaks of 'gian'.*Did you mean 'gain'"):
            claim(**typo).check_measures(measures, partial=True)
    with pytest.raises(RegardError, match="speaks of 'other'"):
        claim(headline="other").check_measures(measures, partial=False)
    claim(headline="other").check_measures(measures, partial=True)


def test_official_lookup_files_have_one_target_more(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("000 t1 .\t000 101\t0 1\n001 t1 .\t001 111\t0 1 2\n")
    found = read_rows(tmp_path, ["train"], [], ends=False)["train"]
    assert [row.alignment for row in found] == [(0, 1), (0, 1)]
    (tmp_path / "train.tsv").write_text("000 t1 .\t000 101\t0 1 2 2\n")
    with pytest.raises(RegardError, match="4 attention targets for 2 words"):
        read_rows(tmp_path, ["train"], [], ends=False)
