"""What experiments of several papers measure and draw alike."""

from __future__ import annotations

import pytest

from regard.display import Bars, Figure, Line, Panel, Table
from regard.papers.framework.measures import (
    CHANGE,
    count_seeds,
    draw_shares,
    join_figures,
    join_panels,
    measure_each,
    plan_seeds,
    subtract,
    to_percent,
)
from regard.statistics import Estimate

A, B = Estimate.share([0.5, 0.7]), Estimate.share([0.1, 0.9])


def test_seeds_are_planned_by_scale() -> None:
    assert (count_seeds("quick"), count_seeds("full"), count_seeds("full", 1, 3)) == (2, 5, 3)
    configs = plan_seeds(2, "reversal", "chapter36", hidden=8, training__batch=4)
    assert [config.seed for config in configs] == [0, 1]
    assert {config.training.batch for config in configs} == {4}


def test_differences_are_taken_seed_by_seed() -> None:
    found = subtract(A, B)
    assert found.values == pytest.approx((0.4, -0.2)) and found.within is None
    assert subtract(A, B, CHANGE).low == -1
    with pytest.raises(ValueError, match="zip"):
        subtract(A, Estimate.of([1.0]))


def test_one_number_of_each() -> None:
    assert measure_each(["a", "bcd"], len) == Estimate.of([1.0, 3.0])
    assert to_percent(A) == "60 %"


def panel(title: str) -> Panel:
    return Panel(title, "x", "y", (Line("", (0.0,), (1.0,)),))


def test_figures_are_joined_under_titles() -> None:
    two, one = (
        Figure("a", "A.", (panel("First"), panel("Second"))),
        Figure("b", "B.", (panel("C"),)),
    )
    named = join_figures("both", "Both.", {"AED": two, "AO": one})
    assert (named.name, named.caption) == ("both", "Both.")
    assert [p.title for p in named.panels] == ["AED: first", "AED: second", "AO: c"]
    other = join_panels("x", "X.", {"one": two.panels[0]})
    assert other.panels[0].title == "one" and other.panels[0].marks == two.panels[0].marks


def test_estimates_are_drawn_and_listed() -> None:
    line = Line.of("a", (1, 2), (A, B), 3)
    assert (line.x, line.y, line.colour) == ((1.0, 2.0), (A.mean, B.mean), 3)
    assert (line.low, line.high) == ((A.low, B.low), (A.high, B.high))
    bars = Bars.of("a", {3: A, 4: B})
    assert (bars.x, bars.y, bars.low) == ((3.0, 4.0), line.y, line.low)
    assert Bars.of("", {"n": A}).x == ("n",)
    table = Table.of("T", {"n": A, "m": B}, "digits")
    assert table == Table("T", ("digits", "measured"), (("n", A), ("m", B)))
    drawn = draw_shares("t", "x", "y", line, bars)
    assert drawn.marks == (line, bars) and drawn.y_range == (0, 1.05)


def test_panels_are_labelled_as_they_are_told() -> None:
    from regard.papers.framework.measures import draw_shares, join_panels

    panel = draw_shares("title", "along", "up", wide=True)
    assert (panel.title, panel.x, panel.y, panel.y_range) == ("title", "along", "up", (0, 1.05))
    assert panel.wide and not panel.marks
    figure = join_panels("name", "caption", {"new": panel})
    assert (figure.name, figure.caption) == ("name", "caption")
    assert (figure.panels[0].title, figure.panels[0].x) == ("new", "along")
