"""The two experiments of the demo, on models that were hardly trained: what is told is theirs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.papers import EXPERIMENTS
from regard.papers.demo import first_look
from regard.papers.framework import Findings
from regard.runs import Run, execute
from regard.training import predict

SHORT = {"updates": 3, "evaluate_every": 3, "batch": 8}


def train(name: str, folder: Path) -> dict[str, list[Run]]:
    plan = EXPERIMENTS[name]({}).plan("quick")
    return {
        key: [
            execute(replace(c, training=c.training.model_copy(update=SHORT)), folder) for c in own
        ]
        for key, own in plan.items()
    }


def check_figures(findings: Findings) -> None:
    for figure in findings.figures:
        assert figure.caption and "<svg" in figure.svg() and figure.interactive()["data"]


def test_a_first_look(tmp_path: Path) -> None:
    runs = train("demo/first-look", tmp_path)
    findings = EXPERIMENTS["demo/first-look"]({}).measure(runs, "quick")
    check_figures(findings)
    by_span, written = findings.tables
    assert [row[0] for row in by_span.rows] == ["5-10", "11-15", "16-20", "21-25", "26-30"]
    assert by_span.columns[1:] == ("fixed vector", "attention")
    words = ["attention", "encoderdecoder", "abcdefghijklmnopqrstuvwxy"]
    assert [row[0] for row in written.rows] == words
    for column, name in ((1, "fixed"), (2, "attention")):
        (run,) = runs[name]
        task, model = run.task(), run.model()
        for word, row in zip(words, written.rows, strict=True):
            said = predict(model, first_look._batch(task, word))[0].tolist()
            text = "".join(task.target_vocabulary.decode(said))
            assert row[column] == f"{text} ✗"
    assert "fixed vector reverses 0" in findings.found[0] and "26-30" in findings.found[1]


def test_what_the_model_is_asked_and_how_it_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = train("demo/first-look", tmp_path)["attention"]
    task = run.task()
    batch = first_look._batch(task, "abc")
    assert task.source_vocabulary.decode(batch.source[0].tolist())[:3] == ["a", "b", "c"]
    assert batch.target[0].tolist() == [*batch.source[0, :3].flip(0).tolist(), 2]

    asked: list[object] = []

    def say(model: object, given: object) -> torch.Tensor:
        asked.append(model)
        return batch.target

    monkeypatch.setattr(first_look, "predict", say)
    assert first_look._write("the model", task, "abc") == "cba ✓"  # type: ignore[arg-type]
    assert first_look._write("the model", task, "abd") == "cba ✗"  # type: ignore[arg-type]
    assert asked == ["the model"] * 2


def test_an_alignment_taken_apart(tmp_path: Path) -> None:
    runs = train("demo/taken-apart", tmp_path)
    findings = EXPERIMENTS["demo/taken-apart"]({}).measure(runs, "quick")
    check_figures(findings)
    apart = findings.figures[0]
    assert [p.title for p in apart.panels] == ["All nine terms", "Time alone: μ·μ",
                                               "Everything but time"]  # fmt: skip
    share = runs["aed"][0].record(n=500).inspect("breakdown").shares["temporal-temporal"]
    assert f"{100 * share:.0f}" in findings.found[0]
