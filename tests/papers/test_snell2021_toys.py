"""The experiments of snell2021 on made data: count tables, and heads that begin well or badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.display import Figure
from regard.instruments.words.cooccurrence import cooccurrence
from regard.papers import EXPERIMENTS, ledger, reproduce
from regard.papers.framework.experiment import Findings, Plan
from regard.papers.snell2021 import heads as many
from regard.papers.snell2021 import ibm
from regard.papers.snell2021._learning import WORDS
from regard.runs import Run, RunConfig, execute


def drawn(figures: Sequence[Figure]) -> None:
    assert figures
    for figure in figures:
        assert figure.caption
        assert "<svg" in figure.svg()
        assert figure.interactive()["data"]


def test_partners_occur_together_and_stand_out_of_the_table() -> None:
    pairs = ibm.draw_zipf(300, 12, length=5)
    for source, target in pairs:
        assert sorted(word[1:] for word in source) == sorted(word[1:] for word in target)
    table = cooccurrence(pairs)
    best = [table.highest(word, 1)[0][0] for word in ("s0", "s1", "s2")]
    assert best == ["t0", "t1", "t2"]


def test_the_peak_is_the_diagonal_over_the_rest_counted_by_hand() -> None:
    counts = ibm.count_copied(50, vocabulary=6, length=4)
    table = np.array([[counts.value(i, o) for o in counts.sources] for i in counts.sources])
    assert len(counts.sources) == 6
    other = [table[i, j] for i in range(6) for j in range(6) if i != j]
    assert ibm.measure_peak(counts) == pytest.approx(np.diag(table).mean() / np.mean(other) - 1)
    assert ibm.measure_peak(ibm.count_copied(50, vocabulary=6, length=6)) == pytest.approx(0)


def test_nothing_is_trained_for_the_count_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.setattr(ibm, "SIZES", (64, 512, 4096))
    monkeypatch.setattr(ibm, "MADE", (300, 20))
    (result,) = reproduce("snell2021/ibm", results=tmp_path / "kept")
    (row,) = result.claims
    assert row["verdict"] == "reproduced", row["measures"]
    assert row["measures"]["flat_permutation"]["mean"] == 0
    assert row["measures"]["flat_mixture"]["mean"] == 0
    assert not (tmp_path / "runs").exists()
    drawn(result.figures)
    assert EXPERIMENTS["snell2021/ibm"]().plan("full") == {}


def fake(config: RunConfig, folder: Path, accuracy: Sequence[float]) -> Run:
    """A run of which only the curve is there."""
    run = Run(folder / config.name, config)
    run.folder.mkdir(parents=True, exist_ok=True)
    rows = (
        f'{{"update": {10 * (k + 1)}, "split": "validation", "{WORDS}": {value}}}\n'
        for k, value in enumerate(accuracy)
    )
    (run.folder / "metrics.jsonl").write_text("".join(rows))
    return run


def judged(folder: Path, curves: dict[int, Sequence[float]], eight: Sequence[float]) -> Findings:
    """What the experiment says when single heads, and then eight, learn like this."""
    experiment = EXPERIMENTS["snell2021/heads"]()
    plan = experiment.plan("quick")
    runs = {
        name: [fake(config, folder, curves.get(many.read_seed(name), (0.7,))) for config in configs]
        for name, configs in plan.items()
    }
    for name, configs in experiment.then(runs, "quick").items():
        ends = eight if name != "all bad" else (0.1, 0.2)
        runs[name] = [fake(config, folder, ends) for config in configs]
    return experiment.measure(runs, "quick")


def test_heads_are_sorted_by_all_seeds_of_the_data(tmp_path: Path) -> None:
    plan = EXPERIMENTS["snell2021/heads"]().plan("quick")
    ends = {"head 0": (0.97, 0.99, 0.96), "head 1": (0.97, 0.94, 0.99), "head 2": (0.1, 0.59, 0.3)}
    runs = {
        name: [fake(c, tmp_path, (0.2, e)) for c, e in zip(plan[name], ends[name], strict=True)]
        for name in ends
    }
    assert many.sort_heads(runs) == ([0], [2])


def test_eight_heads_are_of_the_kinds_that_were_found(tmp_path: Path) -> None:
    findings = judged(tmp_path, {0: (0.5, 0.99), 1: (0.1, 0.3), 2: (0.1, 0.5)}, (0.5, 0.98))
    measures = findings.measures["snell.heads"]
    assert ledger()["snell.heads"].names <= set(measures)
    assert measures["good_over_bad"].values == pytest.approx((0.78, 0.78))
    assert ledger()["snell.heads"].verdict(measures) == "reproduced"
    assert any("2 bad heads" in line for line in findings.found)
    drawn(findings.figures)


def test_without_bad_heads_the_claim_is_not_judged(tmp_path: Path) -> None:
    findings = judged(tmp_path, {0: (0.5, 0.99), 1: (0.1, 0.97)}, (0.5, 0.98))
    assert findings.measures["snell.heads"] == {}
    assert any("no bad head" in line for line in findings.found)
    drawn(findings.figures)


def test_the_good_head_begins_as_it_did_alone(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["snell2021/heads"]()
    plan = {"head 39": [], **experiment.plan_candidates(0, "full")}  # all have been tried
    curves = dict.fromkeys(plan, (0.7,)) | {"head 0": (0.99,), "head 1": (0.2,), "head 2": (0.3,)}
    runs = {n: [fake(c, tmp_path, curves[n]) for c in group] for n, group in plan.items()}
    runs["head 39"] = runs["head 3"]
    further = experiment.then(runs, "full")
    assert {name: len(group) for name, group in further.items()} == {
        "all bad": 20, "one good": 20, "random": 20,
        "all bad, summed": 5, "one good, summed": 5, "random, summed": 5,
    }  # fmt: skip
    assert {c.model.merge for c in further["one good, summed"]} == {"sum"}  # type: ignore[attr-defined]
    for config in further["one good"]:
        seeds = config.model.head_seeds  # type: ignore[attr-defined]
        assert seeds[0] == 0 and set(seeds[1:]) <= {1, 2} and len(seeds) == many.HEADS
    alone = plan["head 0"][0]
    eight = further["one good"][0]
    task = alone.make_task()
    one, all_ = (c.make_model(task).state_dict() for c in (alone, eight))
    rows = one["attention.query.weight"].shape[0]
    assert all_["attention.query.weight"][:rows].equal(one["attention.query.weight"])
    assert all_["source_embedding.weight"].equal(one["source_embedding.weight"])


def test_candidates_are_tried_until_there_are_enough_of_both_kinds(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["snell2021/heads"]()

    def learn(plan: Plan, good: int) -> dict[str, list[Run]]:
        """The first heads of a round learn, the others do not."""
        ends = [0.99] * good + [0.2] * (len(plan) - good)
        return {
            name: [fake(config, tmp_path, (end,)) for config in configs]
            for (name, configs), end in zip(plan.items(), ends, strict=True)
        }

    runs = learn(experiment.plan("full"), 3)
    second = experiment.then(runs, "full")
    assert list(second) == [f"head {n}" for n in range(8, 16)]  # 3 good and 5 bad ones
    runs |= learn(second, 0)
    assert list(experiment.then(runs, "full")) == [f"head {n}" for n in range(16, 24)]  # 3 and 13
    runs |= learn(experiment.then(runs, "full"), 1)
    assert "one good" in experiment.then(runs, "full")  # 4 and 20
    for first in (24, 32):
        runs |= learn(experiment.plan_candidates(first, "full"), 0)
    assert experiment.plan_candidates(40, "full") == {}


def test_a_trained_candidate_can_be_judged(tmp_path: Path) -> None:
    config = EXPERIMENTS["snell2021/heads"]().plan("quick")["head 0"][0]
    tiny = {"updates": 2, "evaluate_every": 1, "batch": 2}
    small = replace(
        config,
        task=config.task.model_copy(update={"vocabulary": 4, "length": 4, "held_out": 4}),
        model=config.model.model_copy(update={"hidden": 4, "embedding": 4}),
        training=config.training.model_copy(update=tiny),
    )
    assert many.is_bad([execute(small, tmp_path)])
