"""baan2019, section 3: heat maps, connectivity and polarity of the weights."""

from __future__ import annotations

import numpy as np

from regard.display import Table
from regard.instruments.weights import connectivity, heatmaps, polarity
from regard.instruments.weights.connectivity import ConnectivityResult
from regard.papers.baan2019._lookup import MODELS, Lookup
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Runs, Scale
from regard.papers.framework.measures import SHARE, SIZE, join_panels, measure_each, subtract
from regard.recordings.recording import as_array
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks.vocabulary import SOS, SPECIAL

EMBEDDING = "decoder.embedding"
# The blocks of Fig. 2, the end at which the paper finds hubs, and its thresholds.
GRAPHS = {
    "encoder": ("encoder.0.W_hh.update", "in", 0.2),
    "decoder": ("decoder.0.W_ih.update", "out", 0.17),
}
# The matrices that the paper names when it speaks of both gates.
POLAR = ("encoder.0.W_hh", "decoder.0.W_ih")


def measure_rows(run: Run) -> tuple[float, float]:
    """Mean |w| of the decoder embedding's rows of words, and of its row of the start token."""
    sizes = np.abs(as_array(run.model().blocks()[EMBEDDING])).mean(axis=1)
    return float(sizes[len(SPECIAL) :].mean()), float(sizes[SOS])


def share_strong(run: Run) -> float:
    """The share of weights over the paper's thresholds, mean of its two blocks."""
    blocks = run.model().blocks()
    kept = [np.abs(as_array(blocks[block])) > limit for block, _, limit in GRAPHS.values()]
    return float(np.mean([one.mean() for one in kept]))


@EXPERIMENTS.register("baan2019/weights")
class WeightsExperiment(Lookup):
    """What guidance does to the weights."""

    title = "Weights of guided models and baselines"
    about = (
        "Heat maps of the decoder's embedding (Fig. 1), the graphs of the strongest 1 % of the"
        " update gates' weights (Fig. 2), and update against reset gates."
    )
    claims = ("baan.embedding-heatmap", "baan.graph", "baan.polarity")

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Sizes of rows, inequality of degrees, correlation of gates."""
        rows = {name: np.array([measure_rows(run) for run in runs[name]]) for name in MODELS}
        ratios = rows["guided"] / rows["baseline"]  # (seed, of words and of the start)
        sizes = {
            what: {name: Estimate.of(rows[name][:, column], SIZE) for name in MODELS}
            for column, what in enumerate(("words", "start"))
        }
        embedding: Measures = {
            "ratio_words": Estimate.of(ratios[:, 0], SIZE),
            "ratio_start": Estimate.of(ratios[:, 1], SIZE),
            **{f"{what}_{name}": sizes[what][name] for what in sizes for name in MODELS},
        }
        graphs = {
            (side, name): connectivity(runs[name], block=block)
            for side, (block, _, _) in GRAPHS.items()
            for name in MODELS
        }
        every = [run for name in MODELS for run in runs[name]]
        graph: Measures = {"over": measure_each(every, share_strong, SHARE)}
        for side, (_, end, _) in GRAPHS.items():
            found = {name: graphs[side, name].estimates() for name in MODELS}
            graph[f"gini_{side}_more"] = subtract(
                found["guided"][f"gini {end}"], found["baseline"][f"gini {end}"]
            )
            for name in MODELS:
                graph[f"gini_{side}_{name}"] = found[name][f"gini {end}"]
                graph[f"polar_{side}_{name}"] = found[name][f"polarity {end}"]
                graph[f"modularity_{side}_{name}"] = found[name]["modularity"]
        gates = {name: polarity(runs[name]) for name in MODELS}
        polar = {
            name: Estimate.of(
                (
                    float(np.mean([seed.values()[m, "strong pearson"] for m in POLAR]))
                    for seed in gates[name].seeds
                ),
                (-1.0, 1.0),
            )
            for name in MODELS
        }
        maps = {name: heatmaps(runs[name], block=EMBEDDING) for name in MODELS}
        return Findings.of(
            {"baan.embedding-heatmap": embedding, "baan.graph": graph, "baan.polarity": polar},
            Table.of_columns(
                "Mean |w| of the decoder embedding's rows",
                "model",
                {"words": sizes["words"], "start token": sizes["start"]},
            ),
            _list_graphs(graphs),
            *(gates[name].table() for name in MODELS),
            join_panels(
                "baan-embedding",
                "The decoder's embedding, clipped to ±1; a row per word (Fig. 1)."
                " The first seed of each is shown.",
                {name: maps[name].figure().panels[0] for name in MODELS},
            ),
            join_panels(
                "baan-graph",
                "The strongest 1 % of the update gates' weights, from units at the bottom to"
                " units at the top; red positive, blue negative (Fig. 2). First seeds.",
                {
                    f"{name}, {side}": graph.figure().panels[0]
                    for (side, name), graph in graphs.items()
                },
            ),
            join_panels(
                "baan-polarity",
                "Mean weight of each unit in the update gate against the reset gate. First seeds.",
                {
                    f"{name}, {panel.title}": panel
                    for name in MODELS
                    for panel in gates[name].figure().panels
                    if any(matrix in panel.title for matrix in POLAR)
                },
            ),
        )


def _list_graphs(graphs: dict[tuple[str, str], ConnectivityResult]) -> Table:
    shown = ("threshold", "gini in", "gini out", "held in", "held out", "polarity in",
             "polarity out", "modularity", "modularity by chance")  # fmt: skip
    rows = tuple(
        (f"{side} ({name})", *(result.estimates()[what] for what in shown))
        for (side, name), result in graphs.items()
    )
    return Table("The strongest 1 % of the update gates' weights", ("block", *shown), rows)
