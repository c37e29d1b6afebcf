"""Reproducing: runs are shared, results kept, claims judged, an interruption costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from regard.display import Figure, Line, Panel, Table
from regard.errors import RegardError
from regard.papers import EXPERIMENTS, claims, ledger, reproduce
from regard.papers.chapter36._lengths import average_lengths, measure_by_length
from regard.papers.chapter36._runs import find_first_below
from regard.papers.chapter36.addition import compare_places, measure_digits, measure_places
from regard.papers.chapter36.attention import fit_growth, time_steps
from regard.papers.framework.claims import Claim
from regard.papers.framework.experiment import Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import plan_each, plan_seeds
from regard.papers.framework.reproduce import names_of
from regard.papers.framework.result import load, load_folder
from regard.runs import Run, execute
from regard.runs.files import locked, read_json, write_json
from regard.statistics import Estimate

TINY = {"hidden": 12, "batch": 8, "held_out": 20, "updates": 20, "evaluate_every": 10}


@pytest.fixture
def tiny() -> Iterator[list[str]]:
    """A paper of two experiments that share a run."""
    calls: list[str] = []

    def make(name: str, claim: str) -> type[Experiment]:
        class Tiny(Experiment):
            title, about, claims = f"Title of {name}", "About <it>.", (claim,)

            def plan(self, scale: Scale) -> Plan:
                return {"only": plan_seeds(2, "reversal", "chapter36", **TINY)}

            def measure(self, runs: Runs, scale: Scale) -> Findings:
                calls.append(name)
                values = Estimate.of(run.metrics["loss"] for run in runs["only"])
                line = Line("", (0.0, 1.0), (0.0, values.mean))
                return Findings(
                    {claim: {"loss": values}},
                    (Table("T", ("a",), ((values,),)),),
                    (Figure(f"fig-{name}", "caption", (Panel("p", "x", "y", (line,)),)),),
                    ("Found.",),
                )

        return Tiny

    for name in ("one", "two"):
        EXPERIMENTS.register(f"tiny/{name}")(make(name, f"t.{name}"))
        ledger()[f"t.{name}"] = Claim(
            f"t.{name}",
            "tiny",
            f"tiny/{name}",
            "says",
            "low",
            "loss",
            "loss < 100",
            "loss < 200",
            "F",
        )
    yield calls
    for name in ("one", "two"):
        del EXPERIMENTS._members[f"tiny/{name}"]
        del ledger()[f"t.{name}"]


def test_a_paper_from_end_to_end(tiny: list[str], tmp_path: Path) -> None:
    assert [row["verdict"] for row in claims("tiny")] == ["not run", "not run"]
    results = reproduce("tiny", jobs=1)
    assert [r.experiment for r in results] == ["tiny/one", "tiny/two"]
    assert len(list((tmp_path / "runs").glob("*/DONE"))) == 2, "both experiments use the same runs"
    row = next(iter(claims("tiny")))
    assert row["verdict"] == "reproduced"
    assert row["seeds"] == 2
    assert row["interval"][0] <= row["measured"] <= row["interval"][1]
    for key in ("id", "paper", "statement", "expected", "scale", "rule"):
        assert row[key], key
    assert (tmp_path / "results" / "tiny" / "quick" / "figures" / "fig-one.svg").is_file()


def test_what_is_there_is_not_done_again(tiny: list[str], tmp_path: Path) -> None:
    reproduce("tiny/one", jobs=1)
    assert tiny == ["one"]
    reproduce("tiny", jobs=1)
    assert tiny == ["one", "two"]
    kept = load(tmp_path / "results", "tiny/one", "quick")
    assert kept is not None
    assert kept.settings["only"]["seeds"] == [0, 1]
    assert [r.experiment for r in load_folder(tmp_path / "results")] == ["tiny/one", "tiny/two"]


def test_what_follows_is_asked_for_until_nothing_is_new(
    tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round sees the runs of the one before, and what it measures is all of them."""
    asked: list[list[str]] = []

    def then(self: Experiment, runs: Runs, scale: Scale) -> Plan:
        assert all(run.done for group in runs.values() for run in group)
        asked.append(list(runs))
        if len(runs) == 3:
            return {}
        return {f"round {len(runs)}": plan_each([10 + len(runs)], "reversal", "chapter36", **TINY)}

    monkeypatch.setattr(EXPERIMENTS["tiny/one"], "then", then)
    (result,) = reproduce("tiny/one", jobs=1)
    assert asked == [["only"], ["only", "round 1"], ["only", "round 1", "round 2"]]
    assert list(result.settings) == asked[-1]
    assert result.settings["round 2"]["seeds"] == [12]
    assert len(list((tmp_path / "runs").glob("*/DONE"))) == 4


def test_what_failed_is_not_gone_on_with(tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A further run that cannot be trained ends its experiment, and no other."""

    def then(self: Experiment, runs: Runs, scale: Scale) -> Plan:
        assert list(runs) == ["only"]
        broken = {**TINY, "start": "nowhere.safetensors"}
        return {"broken": plan_each([0], "reversal", "chapter36", **broken)}

    monkeypatch.setattr(EXPERIMENTS["tiny/one"], "then", then)
    with pytest.raises(RegardError, match="nowhere"):
        reproduce("tiny", jobs=1)
    assert tiny == ["two"]


def test_an_interruption_costs_nothing(tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Experiment, runs: Runs, scale: Scale) -> Findings:
        raise KeyboardInterrupt

    second = EXPERIMENTS["tiny/two"]
    real = second.measure
    monkeypatch.setattr(second, "measure", stop)
    with pytest.raises(KeyboardInterrupt):
        reproduce("tiny", jobs=1)
    monkeypatch.setattr(second, "measure", real)
    reproduce("tiny", jobs=1)
    assert tiny == ["one", "two"]


def test_what_can_be_measured_is_measured(tiny: list[str], tmp_path: Path) -> None:
    """A run that fails takes its own experiment with it, and no other."""
    other = plan_seeds(1, "reversal", "chapter36", **{**TINY, "hidden": 13})

    class Broken(EXPERIMENTS["tiny/two"]):  # type: ignore[misc]
        def plan(self, scale: Scale) -> Plan:
            return {"only": other}

    EXPERIMENTS._members["tiny/two"] = Broken
    with locked(tmp_path / "runs" / other[0].name), pytest.raises(RegardError, match="another"):
        reproduce("tiny", jobs=1)
    assert tiny == ["one"]
    assert load(tmp_path / "results", "tiny/one", "quick") is not None


def test_results_of_another_version(tiny: list[str], tmp_path: Path) -> None:
    reproduce("tiny", jobs=1)
    path = tmp_path / "results" / "tiny" / "quick" / "one.json"
    path.write_text('{"experiment": "tiny/one"}')
    (path.parent / "SHA256SUMS").unlink()  # which older versions did not write
    for ask in (lambda: list(claims("tiny")), lambda: load_folder(tmp_path / "results")):
        with pytest.raises(RegardError, match=r"one\.json is not a result"):
            ask()
    reproduce("tiny", jobs=1)
    assert tiny == ["one", "two", "one"], "it is measured again"


def test_verdicts_follow_the_ledger_as_it_is_now(tiny: list[str]) -> None:
    reproduce("tiny", jobs=1)
    ledger()["t.one"] = replace(ledger()["t.one"], reproduced="loss < 0", partly="loss < 0")
    assert [row["verdict"] for row in claims("tiny")] == ["not reproduced", "reproduced"]


def test_names() -> None:
    assert names_of("chapter36/addition") == ["chapter36/addition"]
    assert len(names_of("chapter36")) == 10
    with pytest.raises(RegardError, match="Did you mean 'chapter36/addition'"):
        names_of("chapter36/adition")
    with pytest.raises(RegardError, match="Did you mean 'chapter36'"):
        list(claims("chapter63"))


def test_every_experiment_has_a_plan_for_both_scales() -> None:
    for name in names_of("chapter36"):
        quick, full = (EXPERIMENTS[name]().plan(scale) for scale in ("quick", "full"))
        assert set(quick) <= set(full) or name.endswith("capacity")
        assert all(len(group) >= 5 for group in full.values()), name
        assert all(len(group) >= 2 for group in quick.values()), name


@pytest.fixture(scope="module")
def addition(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = plan_seeds(1, "addition", "chapter36", hidden=16, updates=30, held_out=20)[0]
    return execute(config, tmp_path_factory.mktemp("runs"))


def test_digits_are_scored_from_the_right(addition: Run) -> None:
    assert compare_places("762", "762") == [True, True, True, True]
    assert compare_places("62", "762") == [True, True, False, False]
    assert compare_places("1762", "762") == [True, True, True, False]
    assert compare_places("", "762") == compare_places("7+2", "762") == [False] * 4
    found = measure_places([addition])
    assert list(found) == ["units", "tens", "hundreds", "exact match"]
    sizes = measure_digits([addition], ((1, 4), (2, 2)))
    assert list(sizes) == ["1+4", "2+2"]
    assert all(0 <= value.mean <= 1 for value in sizes.values())


def test_measuring_a_run(tmp_path: Path) -> None:
    run = execute(plan_seeds(1, "reversal", "chapter36", padding="read", **TINY)[0], tmp_path)
    curve = measure_by_length([run], (1, 2, 3))
    assert average_lengths(curve, (1, 3)).mean == pytest.approx((curve[1].mean + curve[3].mean) / 2)
    assert find_first_below(run, 100.0) == 20  # the first smoothed value
    assert find_first_below(run, 0.0) == 40


def test_growth_is_a_power() -> None:
    assert fit_growth((5, 10, 20, 40), (9.0, 1.0, 4.0, 16.0)) == pytest.approx(2.0)
    assert all(time > 0 for name in ("fixed", "attention", "transformer")
               for times in time_steps(name, (4, 8, 16), batch=2) for time in times)  # fmt: skip


def test_a_result_without_a_measure_that_its_rule_needs_is_measured_again(
    tiny: list[str], tmp_path: Path
) -> None:
    reproduce("tiny/one", jobs=1)
    path = tmp_path / "results" / "tiny" / "quick" / "one.json"
    data = read_json(path)
    data["claims"][0]["measures"] = {}
    write_json(path, data)
    (result,) = reproduce("tiny/one", jobs=1)
    assert tiny == ["one", "one"]
    assert result.claims[0]["verdict"] == "reproduced"
