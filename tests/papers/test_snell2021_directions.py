"""The direction of every measure of snell2021: made runs whose verdict is known, both ways."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made import measure

from regard.display import Figure, Panel
from regard.instruments.words.links import Alignment
from regard.papers import EXPERIMENTS, ledger
from regard.papers.snell2021 import _compared, _learning, _with_sets, aer, heads, ibm, keyword
from regard.papers.snell2021 import agreement as tables
from regard.papers.snell2021 import bleu as in_bleu
from regard.papers.snell2021 import optimal as best
from regard.papers.snell2021._aligned_text import Aligned
from regard.papers.snell2021._compared import Cell, Models
from regard.papers.snell2021._course import Course, count_right
from regard.papers.snell2021._data_sets import COLUMNS, MORE_XI, SETS, XI, DataSet
from regard.papers.snell2021._identity import Approach
from regard.papers.snell2021._row import Row
from regard.statistics import Estimate

Patch = pytest.MonkeyPatch


def same(found: Estimate, wanted: Any) -> None:
    assert list(found.values) == pytest.approx(list(np.atleast_1d(wanted)), abs=1e-9)


def verdict(claim: str, measures: Any) -> str:
    return ledger()[claim].verdict(measures)


# Who learns to copy.


class Learner:
    """A run that is known by its word accuracy on held-out rows every ten updates."""

    def __init__(self, *accuracy: float, updates: int = 100):
        self.accuracy = accuracy
        self.config = SimpleNamespace(training=SimpleNamespace(updates=updates))

    def curve(self, name: str, split: str) -> tuple[list[int], list[float]]:
        assert (name, split) == ("forced_token_accuracy", "validation")
        return [10 * (k + 1) for k in range(len(self.accuracy))], list(self.accuracy)


NEVER, LATE, SOON = (0.1, 0.2, 0.3), (0.1, 0.5, 0.96), (0.2, 0.99, 1.0)


def test_learned_means_above_the_mark() -> None:
    at: Any = Learner(0.2, 0.95, 0.951)
    assert _learning.find_solved(at) == 30
    assert _learning.find_solved(Learner(0.95)) is None  # type: ignore[arg-type]
    some: Any = [Learner(*NEVER, updates=70), Learner(*LATE), Learner(*SOON)]
    same(_learning.share_solved(some), [0.0, 1.0, 1.0])
    same(_learning.count_steps(some), [70, 30, 20])
    same(_learning.read_last(some), [0.3, 0.96, 1.0])
    same(_learning.compare_steps(some, some[::-1]), [50, 0, -50])


def copiers(slow: tuple[float, ...], fast: tuple[float, ...]) -> Any:
    return {
        "40 of 40": [Learner(*slow), Learner(*LATE)], "40 of 60": [Learner(*fast)] * 2,
        "mixture": [Learner(*slow)] * 2, "40 of 80": [Learner(*fast), Learner(*SOON)],
        "fixed order": [Learner(*slow), Learner(0.1, 0.4)],
    }  # fmt: skip


def test_who_copies_decides() -> None:
    found = measure("snell2021/copying", copiers(NEVER, SOON)).measures
    copy, two, order = (found[f"snell.{n}"] for n in ("copy", "mixture", "fixed-permutation"))
    same(copy["hard_solved"], [0, 1])
    same(copy["easy_solved"], [1, 1])
    same(copy["hard_updates"], [100, 30])
    same(copy["easy_updates"], [20, 20])
    same(copy["delay"], [80, 10])
    same(two["mixture_solved"], [0, 0])
    same(two["control_solved"], [1, 1])
    same(two["mixture_accuracy"], [0.3, 0.3])
    same(two["delay"], [80, 80])
    same(order["copying_solved"], [1, 1])
    same(order["copying_updates"], [20, 20])
    same(order["permuted_solved"], [0, 0])
    same(order["permuted_accuracy"], [0.3, 0.4])
    assert verdict("snell.mixture", two) == verdict("snell.fixed-permutation", order)
    assert verdict("snell.fixed-permutation", order) == "reproduced"
    turned = measure("snell2021/copying", copiers(SOON, NEVER)).measures
    for claim in ("snell.copy", "snell.mixture", "snell.fixed-permutation"):
        assert verdict(claim, turned[claim]) == "not reproduced"


def test_a_run_that_stopped_is_drawn_on_at_its_level() -> None:
    group: Any = [Learner(*LATE), Learner(*NEVER)]
    panel = _learning.draw_runs("x", {"a": group}, 50)
    first, second = panel.marks
    assert first.x == (10, 20, 30, 50) and first.y == (0.1, 0.5, 0.96, 0.96)  # type: ignore[union-attr]
    assert (first.label, second.label) == ("a", "")  # type: ignore[union-attr]
    whole = _learning.draw_runs("x", {"a": group}, 30)
    assert whole.marks[0].x == (10, 20, 30)  # type: ignore[union-attr]


def test_eight_heads() -> None:
    many: Any = {
        "all bad": [Learner(*NEVER), Learner(*NEVER)], "one good": [Learner(*SOON), Learner(*LATE)],
        "random": [Learner(*NEVER), Learner(*SOON)],
        "all bad, summed": [Learner(*NEVER)] * 2, "one good, summed": [Learner(*SOON)] * 2,
    }  # fmt: skip
    found = heads._measure_many(many)
    same(found["bad_solved"], [0, 0])
    same(found["good_solved"], [1, 1])
    same(found["random_solved"], [0, 1])
    same(found["good_over_bad"], [0.7, 0.66])
    same(found["one_good_summed_solved"], [1, 1])
    same(found["all_bad_summed_solved"], [0, 0])
    turned = heads._measure_many({**many, "all bad": many["one good"], "one good": many["all bad"]})
    assert verdict("snell.heads", turned) == "not reproduced"


def test_a_head_is_good_or_bad_for_every_seed() -> None:
    at_the_mark: Any = [Learner(0.6), Learner(0.1)]
    assert heads.name_kind(at_the_mark) == "neither"
    assert heads.name_kind([Learner(0.59), Learner(0.1)]) == "bad"  # type: ignore[list-item]
    assert heads.name_kind([Learner(*SOON), Learner(*LATE)]) == "good"  # type: ignore[list-item]
    drawn = heads.draw_heads([3, 5, 8], 3, seed=1)
    assert sorted(drawn) == [3, 5, 8]  # none twice while there are enough
    assert set(heads.draw_heads([3, 5], 7, seed=1)) <= {3, 5}


# The keyword.

EARLY = {"keyword": 5.0, "next": 3.0, "mean": 1.0, "last": 0.5}
LATER = {"keyword": 1.25, "next": 2.0, "mean": 1.0, "last": 6.0}
SECOND = {"keyword": 9.0, "next": 7.0, "mean": 4.0, "last": 5.0}
FIRST = {"keyword": 0.5, "next": 0.25, "mean": 0.125, "last": 0.0}


class Seeing:
    """A classifier with checkpoints at 0, 10, 20 and 30, of which the third has begun."""

    def checkpoints(self) -> list[int]:
        return [0, 10, 20, 30]

    def curve(self, name: str, split: str) -> tuple[list[int], list[float]]:
        assert (name, split) == ("accuracy", "validation")
        return [10, 15, 20, 30], [0.75, 0.9, 0.8, 0.9]


def test_where_the_keyword_is_known(monkeypatch: Patch) -> None:
    course = {0: FIRST, 10: SECOND, 20: EARLY, 30: LATER}
    monkeypatch.setattr(keyword, "measure_places", lambda run, at: course[at])
    runs: Any = {"one direction": [Seeing(), Seeing()], "both directions": [Seeing()]}
    assert keyword.find_begun(runs["one direction"][0]) == 20  # 10 is at the mark, 15 is not kept
    found = measure("snell2021/keyword", runs).measures["snell.keyword"]
    wanted = {
        "early_key_over_next": 2.0, "early_next_over_mean": 2.0, "early_last_share": 0.5 / 4,
        "late_last_over_next": 4.0, "late_next_over_mean": 1.0, "late_key_share": 0.25 / 5,
        "first_key_over_next": 2.0, "first_next_over_mean": 3.0, "first_last_share": 1 / 5,
        "begun_at": 20.0,
    }  # fmt: skip
    for name, value in wanted.items():
        same(found[name], [value, value])
    assert verdict("snell.keyword", found) == "reproduced"
    course[20], course[30] = LATER, EARLY
    turned = measure("snell2021/keyword", runs).measures["snell.keyword"]
    assert verdict("snell.keyword", turned) == "not reproduced"


def test_a_model_that_never_begins_counts_at_its_end(monkeypatch: Patch) -> None:
    monkeypatch.setattr(keyword, "BEGUN", 0.9)
    assert keyword.find_begun(Seeing()) == 30  # type: ignore[arg-type]


def test_places_of_the_log_odds_by_hand(monkeypatch: Patch) -> None:
    """Sentences without the keyword, or with it at one of the last two places, do not count."""
    gamma = np.arange(20.0).reshape(4, 5) ** 2
    kept = {"alignment": np.array([[1], [-1], [3], [0]]), "log_odds": gamma[:, None]}
    asked: dict[str, Any] = {}

    def record(run: Any, n: int, **more: Any) -> Any:
        asked.update(more)
        return kept

    monkeypatch.setattr(keyword, "record", record)
    task = SimpleNamespace(target_vocabulary=SimpleNamespace(numbers={"positive": 7}))
    run: Any = SimpleNamespace(task=lambda: task)
    found = keyword.measure_places(run, 30)
    assert found == {
        "keyword": (1 + 225) / 2, "next": (4 + 256) / 2, "last": (16 + 361) / 2,
        "mean": (sum(k**2 for k in (0, 1, 2, 3, 4, 15, 16, 17, 18, 19))) / 10,
    }  # fmt: skip
    assert asked["also"] == {"log_odds": {"word": 7}} and asked["checkpoint"] == 30
    assert asked["inputs"] == "teacher"


# A bag of words and the count table.


def test_slopes_are_those_of_powers() -> None:
    rows = {d: {"θ̂ error": 3 * d**-0.5, "θ error": d**-0.25} for d in (16, 64, 1024)}
    one = Approach(rows)
    assert one.slope == pytest.approx(-0.5) and one.slope_of("θ") == pytest.approx(-0.25)
    assert one.values()["slope"] == one.slope
    assert one.values()["θ error d=64"] == rows[64]["θ error"]
    assert "slope" not in Approach({16: rows[16]}).values()  # one point has none


def test_the_count_table_decides(monkeypatch: Patch) -> None:
    def of(spread: float) -> Any:
        return SimpleNamespace(spread=spread)

    counted = {(40, None): of(0.001), (40, 2): of(0.002), (60, None): of(0.9)}
    asked: list[int] = []

    def count(n: int, vocabulary: int, sets: int | None = None) -> Any:
        asked.append(n)
        return counted[vocabulary, sets]

    class Made:
        seeds = tuple(
            Approach({d: {"θ̂ error": d**power, "θ error": d**-0.1} for d in (4, 16)})
            for power in (-0.5, -0.6)
        )
        first = seeds[0]

        def at(self, what: str, d: int) -> Estimate:
            return Estimate.of([0.995 + d / 1e8, 0.996 + len(what) / 1e6])

        def figure(self) -> Figure:
            return Figure("x", "caption", (Panel("p", "x", "y", ()),))

    monkeypatch.setattr(ibm, "identity", lambda pairs, sizes, seeds: Made())
    monkeypatch.setattr(ibm, "count_copied", count)
    monkeypatch.setattr(ibm, "measure_peak", lambda counts: counts.spread / 2)
    monkeypatch.setattr(ibm, "_draw_tables", lambda found: Made().figure())
    monkeypatch.setattr(ibm, "find_sets", lambda named: {})
    found = measure("snell2021/ibm", {}).measures["snell.ibm"]
    same(found["slope"], [-0.5, -0.6])
    same(found["probability_slope"], [-0.1, -0.1])
    same(found["correlation"], [0.995 + 16384 / 1e8, 0.996 + len("θ̂ correlation") / 1e6])
    same(found["flat_permutation"], [0.001])
    same(found["flat_mixture"], [0.002])
    same(found["peak_control"], [0.45])
    assert asked == [2000] * 3 and verdict("snell.ibm", found) == "reproduced"
    measure("snell2021/ibm", {}, "full")
    assert asked[3:] == [10_000] * 3
    counted[40, None], counted[60, None] = counted[60, None], counted[40, None]
    assert verdict("snell.ibm", measure("snell2021/ibm", {}).measures["snell.ibm"]) == "partly"


# The best attention.


def test_the_best_attention(monkeypatch: Patch) -> None:
    shares = {"A(α^opt, β)": 0.53, "A(α, α^opt)": 0.4, "A(α, β)": 0.3, "largest β passed over": 0.2}

    class Found:
        seeds = tuple(SimpleNamespace(found={"largest gap": gap}) for gap in (1e-7, 3e-7))

        def estimates(self) -> dict[str, Estimate]:
            return {name: Estimate.of([v, v + 0.01]) for name, v in shares.items()}

        def figure(self) -> Figure:
            return Figure("x", "caption", (Panel("p", "x", "y", ()),))

    asked: list[Any] = []

    def look(runs: Any, **more: Any) -> Found:
        asked.append((runs, more))
        return Found()

    monkeypatch.setattr(best, "optimal_attention", look)
    scores = {"standard": (30.0, 31.0), "additive": (33.0, 32.5)}
    runs: Any = {
        name: [SimpleNamespace(metrics={"bleu": score}) for score in two]
        for name, two in scores.items()
    }
    found = measure("snell2021/optimal", runs).measures["snell.optimal"]
    assert asked == [(runs["additive"], {"n": 30, "split": "validation"})]
    same(found["bleu_difference"], [3.0, 1.5])
    same(found["agreement"], [0.53, 0.54])
    same(found["alpha_best"], [0.4, 0.41])
    same(found["alpha_beta"], [0.3, 0.31])
    same(found["passed_over"], [0.2, 0.21])
    same(found["gap"], [3e-7])
    assert verdict("snell.optimal", found) == "reproduced"
    turned = measure(
        "snell2021/optimal", {"standard": runs["additive"], "additive": runs["standard"]}
    ).measures["snell.optimal"]
    assert verdict("snell.optimal", turned) == "partly"  # it translates worse by more than 2


# Alignments of people.


def test_who_finds_the_links_of_people(monkeypatch: Patch, tmp_path: Path) -> None:
    """Two sure links and a possible one; each finder has others, so every error is another."""
    gold = [Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))]
    pairs: Any = [(("a", "b", "c"), ("x", "y"))]
    links = {
        "attention": {(2, 0), (0, 1)}, "lexical": {(0, 0), (2, 1)}, "proxy": {(0, 0), (0, 1)},
        "ibm1": {(0, 0), (1, 1)}, "ibm1_both": {(0, 0)}, "giza": {(0, 0), (1, 1), (2, 1)},
        "fast_align": {(1, 1)},
    }  # fmt: skip
    made = {name: [Alignment.of(found)] for name, found in links.items()}
    programs = {name: made[name] for name in ("giza", "fast_align")}
    monkeypatch.setattr(aer, "find_folder", lambda name, named: tmp_path)
    monkeypatch.setattr(aer, "read_aligned", lambda folder, which: Aligned(pairs, gold, programs))
    monkeypatch.setattr(aer, "read_texts", lambda named, most: ([], ["a text"]))
    counted = {name: made[name] for name in ("ibm1", "ibm1_both")}
    monkeypatch.setattr(aer, "align_by_counts", lambda text, aligned: counted)
    asked: list[tuple[str, str, str]] = []

    def score(run: str, what: str, given: Any, pool: str) -> str:
        asked.append((run, what, pool))
        return what

    monkeypatch.setattr(aer, "score_words", score)
    monkeypatch.setattr(aer, "link_best", lambda what: made[what])
    runs: Any = {"translation": ["translator"], "proxy": ["bag"]}
    findings = measure("snell2021/aer", runs)
    found = findings.measures["snell.aer"]
    sure, possible = gold[0].sure, gold[0].possible
    for name, given in links.items():
        right = len(given & sure) + len(given & possible)
        same(found[name], [1 - right / (len(given) + len(sure))])
    assert asked == [
        ("translator", "attention", "sum"),
        ("translator", "lexical", "max"),
        ("bag", "proxy", "max"),
    ]
    assert verdict("snell.aer", found) == "partly"  # nothing of attention's is right at all
    table = findings.tables[0]
    columns = {name: k for k, name in enumerate(table.columns)}
    (row,) = [row for row in table.rows if row[0] == "GIZA++, both directions"]
    same(row[columns["precision"]], [1.0])
    (row,) = [row for row in table.rows if row[0] == "fast_align, both directions"]
    same(row[columns["recall"]], [0.5])


def test_counts_link_each_target_word_and_then_both_ways() -> None:
    """One source word stands for two target words: only one of the two ways finds both links."""
    text: Any = [(("a", "b"), ("x", "y", "z")), (("a", "c"), ("x", "y", "w"))] * 20
    text += [(("b", "c"), ("z", "w")), (("b",), ("z",)), (("c",), ("w",)), (("a",), ("x", "y"))] * 9
    found = aer.align_by_counts(text, [(("a", "b"), ("x", "y", "z"))])
    assert found["ibm1"][0].sure == {(0, 0), (0, 1), (1, 2)}
    assert found["ibm1_both"][0].sure >= {(1, 2)}
    assert found["ibm1_both"][0].sure <= found["ibm1"][0].sure


# Who agrees with whom.


class Table2:
    """Two turns; every number is another."""

    turns = range(2)
    models = SimpleNamespace(frozen=True)
    cells = {
        COLUMNS[0]: [Cell(0.30, 0.10, 0.11), Cell(0.34, 0.20, 0.13)],
        COLUMNS[1]: [Cell(0.50, 0.05, 0.31)],
        COLUMNS[2]: [Cell(0.25, 0.08, 0.07), Cell(0.21, 0.07, 0.05)],
        COLUMNS[3]: [Cell(0.45, 0.15, 0.41), Cell(0.47, 0.16, 0.43)],
    }
    courses = [
        Course({0: [0.1, 0.2], 10: [0.3, 0.4]}, {0: 0.5, 10: 0.75}),
        Course({0: [0.15, 0.25], 10: [0.35, 0.45]}, {0: 0.55, 10: 0.85}),
    ]

    def xi(self, turn: int) -> dict[str, tuple[float, bool]]:
        return {
            XI[0]: (0.6 + turn / 100, True),
            XI[1]: (0.7 + turn / 100, turn == 0),
            XI[2]: (0.8, True),
            **{name: (0.62 + k / 50 + turn / 100, True) for k, name in enumerate(MORE_XI)},
        }

    def xi_by_rank(self, turn: int) -> dict[str, tuple[float, bool]]:
        names = (XI[0], *MORE_XI, XI[2])
        return {name: (0.4 + k / 50 + turn / 100, True) for k, name in enumerate(names)}

    def trend(self, turn: int) -> dict[int, float]:
        return {0: 0.1 + turn, 10: 0.3 + turn}

    def ends(self, turn: int) -> tuple[float, float]:
        return 0.2 + turn / 10, 0.05 + turn / 10

    def compare_frozen(self) -> list[float]:
        return [0.12, 0.18]


@pytest.fixture
def tiny(monkeypatch: Patch) -> DataSet:
    said = dict(zip(COLUMNS, (0.32, 0.40, 0.23, 0.40), strict=True))
    data = DataSet("Tiny", "tiny", "classification", {}, {}, said, {COLUMNS[0]: 0.5},
                   {COLUMNS[0]: 0.02})  # fmt: skip
    monkeypatch.setitem(SETS, "tiny", data)
    return data


def test_cells_of_a_row(tiny: DataSet) -> None:
    row = Row.of("tiny", Table2())  # type: ignore[arg-type]
    same(row.cell(COLUMNS[0]), [0.30, 0.34])
    same(row.tau(COLUMNS[2]), [0.07, 0.05])
    same(row.ratio(COLUMNS[0]), [3.0, 1.7])
    same(row.shuffled, [0.15, 0.05, 0.075, 0.155])
    same(row.xi(XI[1]), [0.7, 0.71])
    assert row.show_xi(XI[1]).endswith("*") and not row.show_xi(XI[0]).endswith("*")
    assert row.frozen == [0.12, 0.18] and row.updates == [0, 10]
    # The first run's attention against the second's course, and the other way round.
    assert row.draw_agreement().y == pytest.approx(((0.2 + 0.15) / 2, (0.4 + 0.35) / 2))
    assert row.draw_performance("x").y == pytest.approx((0.525, 0.8))
    levels = {line.label: line.y for line in row.draw_levels()}
    assert levels[COLUMNS[0]] == pytest.approx((0.32, 0.32))
    assert levels[COLUMNS[3]] == pytest.approx((0.46, 0.46))


def test_measures_of_agreement(tiny: DataSet) -> None:
    rows = {"tiny": Row.of("tiny", Table2())}  # type: ignore[arg-type]
    found = tables._measure_agreements(rows, "held_out")
    same(found["tiny_alpha_uniform"], [0.30, 0.34])
    same(found["tiny_uniform_proxy"], [0.50])
    same(found["tiny_saliency_uniform"], [0.25, 0.21])
    same(found["tiny_alpha_beta"], [0.45, 0.47])
    for short, column in zip(("xi_uniform", "xi_beta", "xi_best"), XI, strict=True):
        same(found[f"tiny_{short}"], [turn[column][0] for turn in map(Table2().xi, range(2))])
    same(found["tiny_xi_proxy"], [0.62, 0.63])
    same(found["tiny_xi_saliency"], [0.64, 0.65])
    same(found["least_over_shuffled"], [3.0, 1.7])
    same(found["farthest"], [0.10])  # |.50 − .40|
    same(tables._measure_agreements(rows, "trained")["farthest"], [0.18])  # |.32 − .50|
    taus = tables._measure_taus(rows)
    same(taus["least_tau"], [0.07, 0.05])
    same(taus["farthest"], [0.10])
    assert f"tiny_{tables.NAMES[COLUMNS[3]]}" not in taus and "tiny_xi_beta" not in taus
    for k, short in enumerate(("xi_uniform", "xi_proxy", "xi_saliency", "xi_best")):
        same(taus[f"tiny_{short}"], [0.4 + k / 50, 0.41 + k / 50])
    frozen = tables._measure_frozen(rows)
    same(frozen["tiny_frozen"], [0.12, 0.18])
    same(frozen["least_difference"], [0.18, 0.16])
    trend = tables._measure_trend(rows)
    same(trend["least_rise"], [0.2, 0.3])
    same(trend["least_fall"], [0.05, 0.15])
    assert tables._measure_frozen({}) == {}


def test_claims_of_agreement_turn(monkeypatch: Patch, tiny: DataSet) -> None:
    asked: list[tuple[str, str, str]] = []

    def compare(self: Any, name: str, runs: Any, scale: str, part: str = "validation") -> Any:
        asked.append((name, scale, part))
        return Table2()

    monkeypatch.setattr(_with_sets.WithSets, "find_sets", lambda self, scale: {"tiny": Path()})
    monkeypatch.setattr(_with_sets.WithSets, "compare", compare)
    found = measure("snell2021/agreement", {}, "full").measures
    assert asked == [("tiny", "full", "validation"), ("tiny", "full", "train")]
    same(found["snell.table2"]["farthest"], [0.10])
    same(found["snell.train-set"]["farthest"], [0.18])
    assert verdict("snell.table2", found["snell.table2"]) == "reproduced"
    assert verdict("snell.train-set", found["snell.train-set"]) == "partly"
    assert verdict("snell.frozen", found["snell.frozen"]) == "reproduced"
    monkeypatch.setattr(Table2, "compare_frozen", lambda self: [0.5, 0.6])
    monkeypatch.setattr(Table2, "ends", lambda self, turn: (-0.2, 0.3))
    turned = measure("snell2021/agreement", {}, "full").measures
    assert verdict("snell.frozen", turned["snell.frozen"]) == "not reproduced"
    assert verdict("snell.uniform-trend", turned["snell.uniform-trend"]) == "not reproduced"


def test_xi_in_bleu(monkeypatch: Patch) -> None:
    monkeypatch.setitem(SETS, "multi30k", DataSet("Tiny", "tiny", "translation", {}))
    asked: list[Any] = []

    class Trained(Table2):
        """On sentences of training every ξ is another: no measure may come from here."""

        def xi(self, turn: int) -> dict[str, tuple[float, bool]]:
            return dict.fromkeys(levels, (1.0 + turn, True))

    def compare(self: Any, name: str, runs: Any, scale: str, *part: Any, **more: Any) -> Any:
        asked.append((name, part[:1]))
        return Trained() if part else Table2()

    levels = {XI[0]: 11.0, XI[1]: 16.0, XI[2]: 38.0, MORE_XI[0]: 12.5, MORE_XI[1]: 13.5}
    monkeypatch.setattr(Table2, "xi", lambda self, k: {n: (v + k, True) for n, v in levels.items()})
    monkeypatch.setattr(_with_sets.WithSets, "find_sets", lambda self, scale: {"multi30k": Path()})
    monkeypatch.setattr(_with_sets.WithSets, "compare", compare)
    monkeypatch.setattr(in_bleu, "draw_sentences", lambda task, split, most: (task, split))
    about = {"folder": Path("one"), "summary": {"seconds": 1.0}}
    runs: Any = {"multi30k attention": [SimpleNamespace(task=lambda: "its task", **about)]}
    found = measure("snell2021/bleu", runs).measures["snell.bleu"]
    assert asked == [("multi30k", ()), ("multi30k", ("train",))]
    same(found["multi30k_xi_uniform"], [11, 12])
    same(found["multi30k_xi_beta"], [16, 17])
    same(found["multi30k_xi_proxy"], [12.5, 13.5])
    same(found["multi30k_xi_saliency"], [13.5, 14.5])
    same(found["multi30k_xi_best"], [38, 39])
    assert verdict("snell.bleu", found) == "reproduced"
    levels[XI[0]], levels[XI[1]] = levels[XI[1]], levels[XI[0]]
    turned = measure("snell2021/bleu", runs).measures["snell.bleu"]
    assert verdict("snell.bleu", turned) == "not reproduced"


@pytest.mark.parametrize(
    ("name", "scale", "part", "most"),
    [("sst2", "quick", "validation", 120), ("sst2", "quick", "train", 120),
     ("sst2", "full", "validation", 4000), ("sst2", "full", "train", 500),
     ("iwslt14", "full", "validation", 1000), ("iwslt14", "quick", "validation", 120)],
)  # fmt: skip
def test_which_runs_are_compared_on_which_sentences(
    name: str, scale: Any, part: str, most: int, monkeypatch: Patch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(_with_sets, "draw_sentences", lambda task, *about: asked.append(about))
    monkeypatch.setattr(_with_sets, "Compared", lambda *about: about)
    attending = [SimpleNamespace(task=lambda: "task"), SimpleNamespace(task=lambda: "other")]
    runs: Any = {f"{name} attention": attending, f"{name} uniform": ["u"], f"{name} proxy": ["p"],
                 f"{name} frozen": ["f"]}  # fmt: skip
    experiment: Any = EXPERIMENTS["snell2021/agreement"]({})
    models, _, performs, whole = experiment.compare(name, runs, scale, part)
    assert models == Models(attending, "u", "p", "f")  # type: ignore[arg-type]
    assert asked == [(part, most)] and performs is count_right and whole is True
    runs.pop(f"{name} frozen")
    assert experiment.compare(name, runs, scale, part)[0].frozen is None


def test_xi_takes_the_other_runs_and_the_agreement_of_this_one(monkeypatch: Patch) -> None:
    """Three runs. Seen from run 0, the others agree .2 → .5 → .8 on average, at .3, .6 and .7."""
    courses = [
        Course({0: [9, 9, 9], 10: [9, 9, 9], 20: [9, 9, 9]}, {0: 9, 10: 9, 20: 9}),
        Course({0: [0.1, 8, 8], 10: [0.4, 8, 8], 20: [0.7, 8, 8]}, {0: 0.2, 10: 0.7, 20: 0.6}),
        Course({0: [0.3, 8, 8], 10: [0.6, 8, 8], 20: [0.9, 8, 8]}, {0: 0.4, 10: 0.5, 20: 0.8}),
    ]
    made: Any = object.__new__(_compared.Compared)
    made.__dict__.update(
        columns=COLUMNS[:1],
        courses=courses,
        cells={COLUMNS[0]: [Cell(0.45, 0, 0)], COLUMNS[3]: [Cell(0.95, 0, 0)]},
    )
    found = made.xi(0)
    assert found[XI[0]] == (pytest.approx(0.6), True)
    assert found[XI[2]] == (pytest.approx((0.7 + 0.8) / 2), True)
    assert found[XI[1]] == (pytest.approx((0.7 + 0.8) / 2), False)


def test_words_that_are_right_are_counted_inside_the_mask() -> None:
    made: Any = {
        "decoder.mask": np.array([[True, True, False], [True, False, False]]),
        "predictions": np.array([[1, 2, 3], [4, 5, 6]]),
        "targets": np.array([[1, 0, 3], [4, 5, 6]]),
    }
    assert count_right(None, 0, made) == pytest.approx(2 / 3)  # type: ignore[arg-type]
