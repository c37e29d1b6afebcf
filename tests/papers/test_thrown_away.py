"""Results that should be thrown away are: other rules, plans, code or files make another result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.papers import EXPERIMENTS, ledger, reproduce
from regard.papers.framework import Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework import reproduce as module
from regard.papers.framework import result as results
from regard.papers.framework.claims import Claim
from regard.papers.framework.measures import plan_seeds
from regard.papers.framework.result import load, result_path
from regard.runs.files import read_json
from regard.statistics import Estimate


class Counted(Experiment):
    """Nothing is trained; every measurement is another number."""

    title, about, claims = "Counted", "About it.", ("counted.one",)
    file: Path
    times = 0

    def plan(self, scale: Scale) -> Plan:
        return {}

    def reads(self, scale: Scale) -> list[Path]:
        return [self.file]

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        type(self).times += 1
        return Findings({"counted.one": {"times": Estimate.of([float(self.times)])}})


RULE = Claim("counted.one", "counted", "counted/one", "says", "low", "times", "times < 100",
             "times < 200", "F")  # fmt: skip


@pytest.fixture(autouse=True)
def counted(tmp_path: Path) -> Iterator[None]:
    Counted.times, Counted.file = 0, tmp_path / "text"
    Counted.file.write_text("a")
    EXPERIMENTS.register("counted/one")(Counted)
    ledger()["counted.one"] = RULE
    yield
    del EXPERIMENTS._members["counted/one"]
    del ledger()["counted.one"]


def measured() -> float:
    """What the result says after it was asked for once more."""
    (result,) = reproduce("counted", jobs=1)
    return float(result.claims[0]["measures"]["times"]["mean"])


def test_what_rests_on_the_same_is_kept() -> None:
    assert [measured() for _ in range(3)] == [1, 1, 1]


def test_a_file_that_changed() -> None:
    measured()
    Counted.file.write_text("b")
    assert [measured(), measured()] == [2, 2]


def test_a_rule_that_changed() -> None:
    measured()
    ledger()["counted.one"] = replace(RULE, reproduced="times < 50")
    assert [measured(), measured()] == [2, 2]


def test_other_ways_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    measured()
    monkeypatch.setattr(module, "MEASURING", module.MEASURING + 1)
    assert [measured(), measured()] == [2, 2]
    monkeypatch.setattr(module, "_code_of", lambda experiment: {"x": "other code"})
    assert [measured(), measured()] == [3, 3]


def test_asked_for_again() -> None:
    measured()
    reproduce("counted", jobs=1, again=True)
    assert measured() == 2


def test_scales_are_kept_apart(tmp_path: Path) -> None:
    measured()
    reproduce("counted", "full", jobs=1)
    assert Counted.times == 2
    results = tmp_path / "results"
    found = [load(results, "counted/one", scale) for scale in ("quick", "full")]
    assert [one and one.claims[0]["measures"]["times"]["mean"] for one in found] == [1, 2]
    assert read_json(result_path(results, "counted/one", "full"))["scale"] == "full"


def test_another_plan_is_another_result(tmp_path: Path) -> None:
    small = {"hidden": 4, "updates": 1, "held_out": 4}
    plan = {"x": plan_seeds(2, "reversal", "chapter36", **small)}
    experiment = Counted()
    known = module._hash(experiment, plan, "quick", tmp_path)
    assert known == module._hash(Counted(), plan, "quick", tmp_path)
    others: list[Plan] = [
        {},
        {"x": plan["x"][:1]},
        {"x": plan["x"][::-1]},
        {"x": plan_seeds(2, "reversal", "chapter36", **{**small, "hidden": 5})},
    ]
    hashes = {module._hash(experiment, other, "quick", tmp_path) for other in others}
    assert len(hashes) == 4 and known not in hashes


class Lacking(Experiment):
    """Needs what is not there."""

    title, about = "Lacking", "About it."

    def lacks(self, scale: Scale) -> str | None:
        return "a file"

    def plan(self, scale: Scale) -> Plan:
        return {}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        return Findings()


def test_what_cannot_be_run_is_told_of_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by itself, or where nothing else is left, it is refused; else it is told of."""
    made = {"p/a": Counted(), "p/b": Lacking(), "q/c": Lacking(), "q/d": Lacking()}
    monkeypatch.setattr(module, "_make", lambda names, data: {name: made[name] for name in names})
    monkeypatch.setattr(
        module, "names_of", lambda target: [n for n in made if target in (n, n.split("/")[0])]
    )
    said: list[str] = []
    kept = module.make_possible("p", "quick", {}, said.append)
    assert list(kept) == ["p/a"] and said == ["not run: p/b needs a file"]
    with pytest.raises(RegardError, match="p/b needs a file"):
        module.make_possible("p/b", "quick", {}, said.append)
    with pytest.raises(RegardError) as error:
        module.make_possible("q", "quick", {}, said.append)
    assert error.value.faults == ("q/c needs a file", "q/d needs a file")
    assert list(module.make_possible("p/a", "quick", {}, said.append)) == ["p/a"]
    assert len(said) == 1


def test_what_data_sets_gave_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, dict[str, int]]] = []

    def measure(self: Counted, runs: Runs, scale: Scale) -> Findings:
        seen.append(self.earlier)
        found = Findings({"counted.one": {"times": Estimate.of([1.0])}}, hours_before=3.0)
        return replace(found, parts={**self.earlier, f"set {len(seen)}": {"value": len(seen)}})

    monkeypatch.setattr(Counted, "measure", measure)
    (first,) = reproduce("counted", jobs=1)
    assert seen == [{}] and first.parts == {"set 1": {"value": 1}}
    assert first.core_hours == pytest.approx(3.0, abs=0.01)
    (kept,) = reproduce("counted", jobs=1)
    assert kept.parts == first.parts and len(seen) == 1
    reproduce("counted", jobs=1, again=True)
    assert seen[1] == first.parts
    reproduce("counted", "full", jobs=1)
    assert seen[2] == {}, "another scale is another result"
    folder = tmp_path / "published"
    path = results.parts_path("counted/one", folder)
    path.parent.mkdir(parents=True)
    path.write_text('{"theirs": {"value": 7}, "set 3": {"value": 0}}')
    found = results.read_parts(tmp_path / "results", "counted/one", "full", folder)
    assert found == {"theirs": {"value": 7}, "set 3": {"value": 3}}, "ours first"
    assert results.read_parts(tmp_path / "results", "counted/one", "quick", folder) == {
        "set 1": {"value": 1}, "set 2": {"value": 2},
    }  # fmt: skip
    result_path(tmp_path / "results", "counted/one", "full").write_text("{")
    assert set(results.read_parts(tmp_path / "results", "counted/one", "full", folder)) == {
        "theirs", "set 3",
    }  # fmt: skip
