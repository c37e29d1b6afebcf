"""What a bag of words learns first is the co-occurrence table (snell2021, section 4.1, A.2).

The proxy says p = softmax of the mean of W e_x. With `A = Xᵀ(Y − n P)`, X the share of each
source word in a sentence, Y the target words, n how many, gradient flow moves W by `Aᵀ e` and e by
`A W`, so the logits θ̂ = e Wᵀ move by `A W Wᵀ + e eᵀ A`, exactly, for any d. With W and e drawn
from N(0, I/d) both Gram matrices go to the identity and P to 1/|O|, so

    ∂θ̂/∂τ → 2 (C − mean over o of C)            ∂θ/∂τ → 2/|O| (C − mean over o of C):

the softmax has the derivative θ (1 − θ) → 1/|O| there, a factor that the paper's eqs. 15 and 55
leave out. It changes no order, so what follows from them stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Figure, Line, Panel, Rule, Table
from regard.errors import RegardError
from regard.instruments._geometry import softmax
from regard.instruments.result import CORRELATION, SIZE, Key, Measured, Range, Result, to_floats
from regard.instruments.words._pairs import Pairs, training_pairs
from regard.instruments.words.cooccurrence import Cooccurrence, cooccurrence, make_bags
from regard.recordings.storage import Array
from regard.statistics import Estimate

COLUMNS = 512  # of W and e, drawn at a time: memory does not grow with d
SENTENCES = 4096  # whose probabilities are in memory at a time
SIZES = (16, 64, 256, 1024, 4096, 16384)


@dataclass(frozen=True)
class InitialGradient:
    """∂θ/∂τ and ∂θ̂/∂τ at τ = 0, and what they go to as d grows. (source word, target word)"""

    d: int
    probabilities: Array  # ∂θ/∂τ
    logits: Array  # ∂θ̂/∂τ
    limit: dict[str, Array]  # of `probabilities` and of `logits`

    def error(self, what: str) -> float:
        """‖derivative − limit‖ / ‖limit‖; where the limit is 0 everywhere, there is none: NaN."""
        size = float(np.linalg.norm(self.limit[what]))
        apart = float(np.linalg.norm(getattr(self, what) - self.limit[what]))
        return apart / size if size else float("nan")

    def correlation(self, what: str) -> float:
        """Pearson's correlation of the derivative with its limit over all cells."""
        ours, theirs = getattr(self, what).ravel(), self.limit[what].ravel()
        if not ours.std() or not theirs.std():
            return float("nan")
        return float(np.corrcoef(ours, theirs)[0, 1])


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs as bags of words, and their co-occurrence table."""

    counts: Cooccurrence
    shares: Any  # X: sparse (sentence, source word), rows sum to 1
    outputs: Any  # Y: sparse (sentence, target word)

    @classmethod
    def of(cls, pairs: Pairs) -> Corpus:
        """Of an iterable, a task or a run."""
        given = list(training_pairs(pairs))
        counts = cooccurrence(given).first
        return cls(counts, *make_bags(given, counts.sources, counts.targets))

    def pull(self, logits: Array) -> Array:
        """A = Xᵀ (Y − n P): minus the gradient with respect to the words' logits θ̂."""
        found: Array = self.counts.matrix.toarray()  # XᵀY is C
        for start in range(0, self.shares.shape[0], SENTENCES):
            shares = self.shares[start : start + SENTENCES]
            said = np.asarray(self.outputs[start : start + SENTENCES].sum(axis=1)).ravel()
            found = found - shares.T @ (said[:, None] * softmax(shares @ logits))
        return found


def initial_gradient(pairs: Pairs | Corpus, d: int, seed: int = 0) -> InitialGradient:
    """How θ = softmax(W e_i) begins to move under gradient flow on eq. 14, exactly, in float64.

    W and e are drawn from N(0, I/d). Tables are dense: for thousands of words at most.
    """
    if d < 1:
        raise RegardError(f"d={d} does not fit: an embedding has 1 dimension or more.")
    corpus = pairs if isinstance(pairs, Corpus) else Corpus.of(pairs)
    ours, theirs = corpus.counts.matrix.shape
    logits, of_words, of_outputs = _draw_grams(ours, theirs, d, seed)
    pull = corpus.pull(logits)
    moved = pull @ of_outputs + of_words @ pull
    theta = softmax(logits)
    changed = theta * (moved - (theta * moved).sum(axis=1, keepdims=True))
    limit = 2 * corpus.counts.centred()
    return InitialGradient(d, changed, moved, {"logits": limit, "probabilities": limit / theirs})


@dataclass(frozen=True)
class Approach(Measured):
    """One seed's errors and correlations, for every d."""

    by_size: dict[int, dict[str, float]]

    def values(self) -> dict[str, float]:
        """`θ error d=16` and so on, and how fast errors fall."""
        found = {f"{k} d={d}": v for d, row in self.by_size.items() for k, v in row.items()}
        if len(self.by_size) > 1:
            found["slope"] = self.slope
        return found

    @property
    def slope(self) -> float:
        """Of log error of θ̂ over log d: −1/2 where Gram matrices go to the identity."""
        return self.slope_of("θ̂")

    def slope_of(self, what: str) -> float:
        """The same of the logits `θ̂` or of the probabilities `θ`."""
        errors = [row[f"{what} error"] for row in self.by_size.values()]
        return float(np.polyfit(np.log(list(self.by_size)), np.log(errors), 1)[0])


@dataclass(frozen=True)
class IdentityResult(Result[Approach]):
    """How near the first movement is to the co-occurrence table, as d grows."""

    name = "identity"

    def bounds(self, key: Key) -> Range:
        """Errors are sizes, correlations end at 1."""
        if "error" in key:
            return SIZE
        return CORRELATION if "correlation" in key else None

    def at(self, what: str, d: int) -> Estimate:
        """One number over seeds, such as `θ error`."""
        return self.estimates()[f"{what} d={d}"]

    def table(self) -> Table:
        """A row per d."""
        columns = ("θ̂ error", "θ̂ correlation", "θ error", "θ correlation")
        found = self.estimates()
        rows = tuple((d, *(found[f"{what} d={d}"] for what in columns)) for d in self.first.by_size)
        title = f"First movement of the proxy and its limit, {self.over_seeds}"
        return Table(title, ("d", *columns), rows)

    def figure(self) -> Figure:
        """Relative errors over d, both axes logarithmic, with a slope of −1/2 to compare."""
        sizes = list(self.first.by_size)
        found, x = self.estimates(), to_floats(self.first.by_size)
        lines = []
        for colour, what in enumerate(("θ̂", "θ")):
            here = [found[f"{what} error d={d}"] for d in sizes]
            low = tuple(max(e.low, e.mean / 10) for e in here)  # the axis has no zero
            means, high = tuple(e.mean for e in here), tuple(e.high for e in here)
            lines.append(Line(what, x, means, low, high, colour, points=True))
        guide = tuple(lines[0].y[-1] * (sizes[-1] / d) ** 0.5 for d in sizes)
        lines.append(Line("slope −1/2", x, guide, colour=7, dashed=True))
        near = [
            Line(what, x, tuple(found[f"{what} correlation d={d}"].mean for d in sizes), colour=c)
            for c, what in enumerate(("θ̂", "θ"))
        ]
        axis = "dimensions d of the embedding"
        return Figure(
            "identity",
            "How far the first movement of the bag-of-words proxy, of its logits θ̂ and of its"
            f" probabilities θ, is from its limit, the centred table C; {self.over_seeds}.",
            (
                Panel("Distance", axis, "relative error", tuple(lines), None, False, "log", "log"),
                Panel("Likeness", axis, "correlation", (*near, Rule("", y=1.0)), x_scale="log"),
            ),
        )


def identity(
    pairs: Pairs, sizes: Sequence[int] = SIZES, seeds: Sequence[int] = (0, 1, 2, 3, 4)
) -> IdentityResult:
    """Does the proxy's first movement go to the co-occurrence table (snell2021, eqs. 13-16)?

    For every d in `sizes` and every seed, the exact derivative at τ = 0 against its limit: the
    relative error and the correlation, of θ and of the logits θ̂. Where C is constant along rows,
    as with permutations, the limit is 0 and nothing can be compared: an error that says so.
    """
    corpus = Corpus.of(pairs)
    if not np.any(np.abs(corpus.counts.centred()) > 1e-9 * corpus.counts.matrix.max()):
        raise RegardError(
            "The co-occurrence table is constant along every row, so its centred form is 0 and"
            " there is no direction to compare with: these pairs teach a bag of words nothing."
        )
    if not sizes or not seeds:
        raise RegardError("identity needs one size and one seed at least.")
    return IdentityResult(tuple(Approach(_measure_sizes(corpus, sizes, seed)) for seed in seeds))


def _measure_sizes(corpus: Corpus, sizes: Sequence[int], seed: int) -> dict[int, dict[str, float]]:
    found = {}
    for d in sizes:
        made = initial_gradient(corpus, d, seed)
        found[d] = {
            f"{symbol} {what}": getattr(made, what)(part)
            for symbol, part in (("θ̂", "logits"), ("θ", "probabilities"))
            for what in ("error", "correlation")
        }
    return found


def _draw_grams(ours: int, theirs: int, d: int, seed: int) -> tuple[Array, Array, Array]:
    """e Wᵀ, e eᵀ and W Wᵀ, added up over some dimensions at a time."""
    rng = np.random.default_rng([seed, d])
    logits, of_words = np.zeros((ours, theirs)), np.zeros((ours, ours))
    of_outputs = np.zeros((theirs, theirs))
    for start in range(0, d, COLUMNS):
        columns = min(COLUMNS, d - start)
        e, w = (rng.normal(size=(rows, columns)) / np.sqrt(d) for rows in (ours, theirs))
        logits += e @ w.T
        of_words += e @ e.T
        of_outputs += w @ w.T
    return logits, of_words, of_outputs
