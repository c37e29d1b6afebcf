"""snell2021, section 4: a bag of words first learns a table of counts (Figs. 1, 4, 5 and 8)."""

from __future__ import annotations

from itertools import islice, permutations
from pathlib import Path

import numpy as np

from regard.display import Figure, Heat, Panel, Table
from regard.instruments.result import to_floats
from regard.instruments.words._pairs import Pair, training_pairs
from regard.instruments.words.cooccurrence import Cooccurrence, cooccurrence
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, join_panels, measure_each
from regard.papers.snell2021._data_sets import SETS, find_sets
from regard.papers.snell2021._identity import IdentityResult, identity
from regard.recordings.storage import Array
from regard.runs import assemble
from regard.statistics import Estimate

REAL = "multi30k"
LONGEST, COMMON = 20, 300  # words of a sentence, and kept words of each side, of the real corpus
SIZES = (64, 256, 1024, 4096, 16384)
MADE = (2000, 60)  # sentences and words of the made corpus
# Two words of a language and what they mean, as in Fig. 1; then sentences with their polarity.
TOY = (
    ("der Film ist neu", "the movie is new"),
    ("das Buch ist neu", "the book is new"),
    ("der Film war gut", "the movie was good"),
    ("das Buch war alt", "the book was old"),
)
POLARITY = (
    ("a good movie", "positive"),
    ("a bad movie", "negative"),
    ("good and new", "positive"),
    ("bad and old", "negative"),
)


def draw_zipf(sentences: int, vocabulary: int, length: int = 8, seed: int = 0) -> list[Pair]:
    """A corpus of two languages, word for word, in which few words are frequent.

    Words are drawn by Zipf's law, and a target sentence has the partners of its source words in
    random order: a bag of words can see who belongs to whom, and nothing else is there to see.
    """
    rng = np.random.default_rng([seed, sentences, vocabulary])
    chances = 1 / np.arange(1, vocabulary + 1)
    drawn = rng.choice(vocabulary, size=(sentences, length), p=chances / chances.sum())
    return [
        ([f"s{word}" for word in row], [f"t{word}" for word in rng.permutation(row)])
        for row in drawn
    ]


def count_copied(n: int, **settings: object) -> Cooccurrence:
    """C of `n` sentences of the copying task."""
    config = assemble("copying", "snell-copying", 0, settings)
    return cooccurrence(config.make_task(), n=n).first


def measure_peak(counts: Cooccurrence) -> float:
    """How far a word with itself stands out of the others: mean over mean, less 1."""
    names = [word for word in counts.sources if word in counts.columns]
    table: Array = counts.dense(names, names)
    own = np.eye(len(names), dtype=np.bool_)
    return float(table[own].mean() / table[~own].mean() - 1)


@EXPERIMENTS.register("snell2021/ibm")
class IBMExperiment(Experiment):
    """The first movement of the proxy and the count table of IBM model 1. Nothing is trained."""

    title = "A bag of words begins as IBM model 1"
    about = (
        "How near the proxy's first movement is to 2(C − mean of C) as its embedding grows"
        " (eqs. 13-16, taken of the logits), and which data make C flat."
    )
    claims = ("snell.ibm",)
    wants = (SETS[REAL].folder,)
    partial = True

    def reads(self, scale: Scale) -> list[Path]:
        """Multi30k, where it is at hand."""
        return [Path(path) for path in self._find_paths().values()]

    def _find_paths(self) -> dict[str, str]:
        folder = find_sets(self.data).get(REAL)
        task = SETS[REAL].fill_settings(folder) if folder else {}
        return {key: task[key] for key in ("source", "target") if task}

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str:
        """What is counted, since nothing is trained."""
        corpora = "a made corpus and Multi30k" if self._find_paths() else "a made corpus"
        return f"{corpora}, and what three copying tasks say; nothing is trained"

    def plan(self, scale: Scale) -> Plan:
        """No runs: the derivative is exact and C is counted."""
        return {}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The approach on a made corpus (and a real one), and C of what models copy."""
        full = scale == "full"
        seeds = range(count_seeds(scale))
        sizes = (*SIZES, 65536) if full else SIZES
        found = {"made corpus": identity(draw_zipf(*MADE), sizes, seeds)}
        if real := self._read_real(scale):
            found["Multi30k"] = identity(real, sizes, seeds)
        n = 10_000 if full else 2000
        tables = {
            "40 of 40": count_copied(n, vocabulary=40),
            "mixture": count_copied(n, vocabulary=40, sets=2),
            "40 of 60": count_copied(n, vocabulary=60),
        }
        made = found["made corpus"]
        measures = {
            "slope": _fit_slope(made),
            "correlation": made.at("θ̂ correlation", sizes[-1]),
            "flat_permutation": Estimate.of([tables["40 of 40"].spread]),
            "flat_mixture": Estimate.of([tables["mixture"].spread]),
            "peak_control": Estimate.of([measure_peak(tables["40 of 60"])]),
            "probability_slope": _fit_slope(made, "θ"),
        }
        if real:
            measures["multi30k_slope"] = _fit_slope(found["Multi30k"])
            measures["multi30k_correlation"] = found["Multi30k"].at("θ̂ correlation", sizes[-1])
        columns = {
            "spread of C along rows": {name: one.spread for name, one in tables.items()},
            "a word with itself over others, less 1": {
                name: measure_peak(one) for name, one in tables.items()
            },
        }
        drawn = {name: result.figure() for name, result in found.items()}
        panels = {f"{p.title}, {name}": p for name, figure in drawn.items() for p in figure.panels}
        short = (
            f"Of Multi30k, sentences of at most {LONGEST} words; words that are not among the"
            f" {COMMON} most frequent of their side count as one."
        )
        return Findings.of(
            {"snell.ibm": measures},
            _list_errors(found),
            Table.of_columns("What the count table says about copying", "words", columns),
            join_panels("snell-ibm", drawn["made corpus"].caption, panels),
            _draw_tables(tables),
            "The movement is that of the logits. That of the probabilities has a factor 1/|O| more,"
            " which eq. 15 leaves out; it falls towards its own limit just as fast.",
            *([short] if real else []),
        )

    def _read_real(self, scale: Scale) -> list[Pair]:
        """Sentences of Multi30k in words, of which only the common ones are kept."""
        paths = self._find_paths()
        if not paths:
            return []
        config = assemble("parallel", "snell-proxy", 0, {**paths, "vocabulary": COMMON,
                                                         "longest": LONGEST})  # fmt: skip
        pairs = training_pairs(config.make_task(), 5000 if scale == "full" else 1000)
        return [(source, target) for source, target in pairs if source and target]


def _fit_slope(found: IdentityResult, what: str = "θ̂") -> Estimate:
    """Of log error over log d, seed by seed."""
    return measure_each(found.seeds, lambda seed: seed.slope_of(what))


def _list_errors(found: dict[str, IdentityResult]) -> Table:
    rows = tuple(
        (name, d, *(result.at(f"θ̂ {what}", d) for what in ("error", "correlation")))
        for name, result in found.items()
        for d in result.first.by_size
    )
    title = "First movement of the proxy's logits and 2(C − mean of C)"
    return Table(title, ("corpus", "d", "relative error", "correlation"), rows)


def _draw_tables(tables: dict[str, Cooccurrence]) -> Figure:
    toys: dict[str, list[Pair]] = {
        "Translation (Fig. 1)": [(a.split(), b.split()) for a, b in TOY],
        "Permutations (Fig. 4)": _permute("ABCD"),
        "Polarity (Fig. 5)": [(a.split(), [b]) for a, b in POLARITY],
        "Two sets (Fig. 8)": _permute("ABCD") + _permute("EFGH"),
    }
    small = [cooccurrence(pairs).heat(title, "C(i, o)") for title, pairs in toys.items()]
    large = [_draw_in_order(f"Copying {name}", found) for name, found in tables.items()]
    return Figure(
        "snell-count-tables",
        "Count tables C of made sentences, and of the sentences that models copy. Where all words"
        " of a set occur in every sentence of it, C is flat inside the set; with 40 of 60 words"
        " the diagonal stands out.",
        (*small, *large),
    )


def _draw_in_order(title: str, counts: Cooccurrence) -> Panel:
    """C of all words that are copied, by their numbers."""
    names = sorted(counts.sources, key=int)
    table = counts.dense(names, names)
    words, rows = tuple(map(str, names)), tuple(to_floats(row) for row in np.round(table, 4))
    marks = Heat(words, words, rows, "C(i, o)", 0.0, float(table.max()), numbers=False)
    return Panel(title, "target word", "source word", (marks,))


def _permute(letters: str, n: int = 24) -> list[Pair]:
    """Sentences that are permutations of a set of words, and copies of them."""
    orders = islice(permutations(letters), n)
    return [(list(order), [letter + "′" for letter in order]) for order in orders]
