from __future__ import annotations

import pytest

from regard.errors import RegardError
from regard.papers.framework.claims import ledger
from regard.papers.framework.experiment import EXPERIMENTS
from regard.papers.framework.rules import holds, names_in
from regard.statistics import Estimate

MEASURES = {"a": Estimate.of([0.4, 0.6]), "b": Estimate.of([2.0])}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("a > 0.4", True),
        ("low(a) > 0.4", False),
        ("high(a) > 0.6", True),
        ("a + 1 < b and b >= 2", True),
        ("a > 1 or b * 2 >= 4", True),
        ("a == b", None),
        ("0.4 <= a <= 0.6", True),
        ("a - b > -2", True),
    ],
)
def test_rules(rule: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(RegardError):
            holds(rule, MEASURES)
    else:
        assert holds(rule, MEASURES) is expected


@pytest.mark.parametrize("rule", ["__import__('os')", "a.mean", "[a][0]", "a if b else a", "a >"])
def test_rules_can_say_nothing_else(rule: str) -> None:
    with pytest.raises(RegardError):
        holds(rule, MEASURES)


def test_one_seed_has_no_ends() -> None:
    assert not holds("low(b) > 0", MEASURES)
    assert not holds("high(b) < 100", MEASURES)


def test_unknown_measures_are_named() -> None:
    with pytest.raises(RegardError, match="no measure 'c'"):
        holds("c > 1", MEASURES)


def test_ledger_and_experiments_agree() -> None:
    for claim in ledger().values():
        assert claim.id in EXPERIMENTS[claim.experiment].claims
        assert claim.experiment.split("/")[0] == claim.paper
        assert names_in(claim.reproduced)
        assert names_in(claim.partly)
    for name, experiment in EXPERIMENTS.items():
        for claim in experiment.claims:
            assert ledger()[claim].experiment == name


def test_verdicts_follow_the_rule() -> None:
    claim = ledger()["c36.loss"]
    good = {"below_point_one": Estimate.of([900.0]), "final_loss": Estimate.of([0.05])}
    slow = {"below_point_one": Estimate.of([1900.0]), "final_loss": Estimate.of([0.05])}
    bad = {"below_point_one": Estimate.of([2000.0]), "final_loss": Estimate.of([0.9])}
    assert [claim.verdict(m) for m in (good, slow, bad)] == [
        "reproduced", "partly", "not reproduced",
    ]  # fmt: skip
    assert claim.row(None, None)["verdict"] == "not run"
