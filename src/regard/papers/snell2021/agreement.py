"""snell2021, section 3 and appendices A.4, A.6 and A.7: who agrees with whom (Tables 2 to 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from regard.display import Figure, Line, Table
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Runs, Scale
from regard.papers.framework.measures import draw_shares, subtract
from regard.papers.snell2021._data_sets import COLUMNS, EVERY_XI, OF_TAU, SETS, name_differences
from regard.papers.snell2021._row import Row, draw_level
from regard.papers.snell2021._with_sets import TRAINED, BySet
from regard.statistics import Estimate

NAMES = dict(zip(COLUMNS, ("alpha_uniform", "uniform_proxy", "saliency_uniform", "alpha_beta"),
                 strict=True))  # fmt: skip
SHORT = ("xi_uniform", "xi_proxy", "xi_saliency", "xi_beta", "xi_best")  # of every ξ


@EXPERIMENTS.register("snell2021/agreement")
class AgreementExperiment(BySet):
    """Attention, lexical knowledge, a bag of words and saliency: who agrees with whom."""

    title = "Agreement of attention and lexical knowledge"
    about = (
        "Tables 2, 3, 5, 7 and 10, and A.7. Every run with attention takes its turn as run A;"
        " intervals are over these turns."
    )
    claims = ("snell.table2", "snell.kendall", "snell.train-set", "snell.frozen",
              "snell.uniform-trend")  # fmt: skip

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """All cells on held-out and on training sentences."""
        rows, parts = self.gather(runs, scale)
        held, trained = rows["held out"], rows["trained"]
        title = f"Agreement on {TRAINED} training sentences (Table 7)"
        found = Findings.of(
            {
                "snell.table2": _measure_agreements(held, "held_out"),
                "snell.kendall": _measure_taus(held),
                "snell.train-set": _measure_agreements(trained, "trained"),
                "snell.frozen": _measure_frozen(held),
                "snell.uniform-trend": _measure_trend(held),
            },
            _list_agreements("Agreement on held-out sentences (Table 2)", held, "held_out"),
            _list_taus("Kendall's τ on held-out sentences (Table 3)", held),
            _list_agreements(title, trained, "trained"),
            _draw_trends(held),
            _draw_courses(held),
            *name_differences(parts),
        )
        return self.keep(found, parts, scale)

    def measure_set(self, name: str, runs: Runs, scale: Scale) -> dict[str, Row]:
        """Its cells on held-out and on training sentences."""
        held_out = Row.of(name, self.compare(name, runs, scale))
        trained = Row.of(name, self.compare(name, runs, scale, "train"), held_out=False)
        return {"held out": held_out, "trained": trained}


def _least(values: Sequence[Estimate]) -> Estimate:
    """The least of several numbers: the one whose mean is lowest."""
    return min(values, key=lambda value: value.mean)


def _farthest(cells: Mapping[tuple[str, str], Estimate], paper: str) -> Measures:
    """The largest distance to one of the paper's cells; nothing where it has none."""
    distances = [
        abs(cell.mean - said)
        for (name, column), cell in cells.items()
        if (said := getattr(SETS[name], paper).get(column)) is not None
    ]
    return {"farthest": Estimate.of([max(distances)])} if distances else {}


def _measure_agreements(rows: dict[str, Row], paper: str) -> Measures:
    cells = {(name, c): row.cell(c) for name, row in rows.items() for c in COLUMNS}
    found = {f"{name}_{NAMES[column]}": value for (name, column), value in cells.items()}
    for name, row in rows.items():
        found[f"{name}_shuffled"] = row.shuffled
        for column, short in zip(EVERY_XI, SHORT, strict=True):
            found[f"{name}_{short}"] = row.xi(column)
    least = _least([row.ratio(column) for row in rows.values() for column in COLUMNS])
    return {"least_over_shuffled": least, **_farthest(cells, paper), **found}


def _measure_taus(rows: dict[str, Row]) -> Measures:
    cells = {(name, c): row.tau(c) for name, row in rows.items() for c in COLUMNS[:3]}
    named = {f"{name}_{NAMES[column]}": value for (name, column), value in cells.items()}
    for name, row in rows.items():
        for column, short in zip(EVERY_XI, SHORT, strict=True):
            if column in OF_TAU:
                named[f"{name}_{short}"] = row.xi(column, by_rank=True)
    return {"least_tau": _least(list(cells.values())), **_farthest(cells, "kendall"), **named}


def _measure_frozen(rows: dict[str, Row]) -> Measures:
    found: Measures = {}
    differences = []
    for name, row in rows.items():
        if row.frozen:
            found[f"{name}_frozen"] = Estimate.share(row.frozen)
            differences.append(subtract(row.cell(COLUMNS[0]), found[f"{name}_frozen"]))
    return {"least_difference": _least(differences), **found} if differences else {}


def _measure_trend(rows: dict[str, Row]) -> Measures:
    rises, falls = (
        [Estimate.of(ends[which] for ends in row.ends) for row in rows.values()] for which in (0, 1)
    )
    return {"least_rise": _least(rises), "least_fall": _least(falls)}


def _list_agreements(title: str, rows: dict[str, Row], paper: str) -> Table:
    lines = []
    for row in rows.values():
        cells = map(row.cell, COLUMNS)
        lines.append((row.data.title, *cells, row.shuffled, *map(row.show_xi, EVERY_XI)))
        if said := getattr(row.data, paper):
            lines.append(("  paper", *(said.get(c) for c in (*COLUMNS, "shuffled", *EVERY_XI))))
    return Table(title, ("data", *COLUMNS, "shuffled", *EVERY_XI), tuple(lines))


def _list_taus(title: str, rows: dict[str, Row]) -> Table:
    lines: list[tuple[Any, ...]] = []
    for row in rows.values():
        xis = (row.show_xi(column, by_rank=True) for column in OF_TAU)
        lines.append((row.data.title, *map(row.tau, COLUMNS), *xis))
        if said := row.data.kendall:
            lines.append(("  paper", *(said.get(column) for column in (*COLUMNS, *OF_TAU))))
    names = (*(column.replace("A(", "τ(") for column in COLUMNS), *OF_TAU)
    return Table(title, ("data", *names), tuple(lines))


def _draw_trends(rows: dict[str, Row]) -> Figure:
    panels = []
    for row in rows.values():
        updates = sorted(row.trends[0])
        found = (Estimate.share(trend[at] for trend in row.trends) for at in updates)
        chance = draw_level("shuffled", updates, row.shuffled, 7)
        line = Line.of(COLUMNS[0], updates, found)
        axis = "update under uniform attention"
        panels.append(draw_shares(row.data.title, axis, COLUMNS[0], line, chance))
    return Figure.of(
        "snell-uniform-trend",
        "Agreement of learned attention with the lexical probe of a model that is trained under"
        " uniform attention, over its training; means and 95 % intervals over the runs that"
        " attend.",
        *panels,
    )


def _draw_courses(rows: dict[str, Row]) -> Figure:
    panels = []
    for row in rows.values():
        lines = row.draw_agreement(), row.draw_performance("performance"), *row.draw_levels()
        panels.append(draw_shares(row.data.title, "update", "agreement, performance", *lines))
    return Figure.of(
        "snell-agreement",
        "Agreement of attention with that of another run while this one learns, and its"
        " performance: ξ is the performance where the first line crosses a dashed one (Fig. 2).",
        *panels,
    )
