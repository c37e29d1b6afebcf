"""`lexical_probe` and `proxy_probe`: what a model knows of translating single words.

snell2021, sections 2.2 to 2.4: the probe β is the probability of the right word if attention
were all at one source position. Before attention is learned, it is learned already.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.display import Figure
from regard.errors import RegardError
from regard.instruments import looked
from regard.instruments.instrument import Measured, Result, Runs, instruments, opened
from regard.instruments.positions import drawn
from regard.instruments.scores import Scores
from regard.models.reader import Reader
from regard.runs import Run


@dataclass(frozen=True)
class Probed(Measured):
    """β of one model beside something to compare it with."""

    scores: Scores  # log β
    beside: Scores | None  # α, or what was asked to be compared
    words: tuple[list[str], list[str]]
    found: dict[str, float]

    def values(self) -> dict[str, float]:
        """Mean β, and agreements."""
        return self.found

    @property
    def beta(self) -> Scores:
        """β itself."""
        return Scores(np.exp(self.scores.values) * self.scores.mask, self.scores.mask)


@dataclass(frozen=True)
class LexicalResult(Result[Probed]):
    """The lexical probe over seeds."""

    name = "lexical_probe"
    title = "β, the lexical probe"
    compared = "attention α"

    def bounds(self, name: str) -> tuple[float, float] | None:
        """Probabilities and shares, but for a correlation."""
        return (-1.0, 1.0) if name.startswith("Kendall") else (0.0, 1.0)

    def figure(self) -> Figure:
        """β for one sentence, and what it is compared with."""
        panels = {self.title: self.first.beta}
        if self.first.beside is not None:
            panels[self.compared] = self.first.beside
        return drawn(
            self.name,
            "Probability of each target word if all attention were at one source word, for one"
            f" sentence. {self.n} seed{'s' * (self.n > 1)}; the first is shown.",
            panels,
            self.first.words,
        )


@dataclass(frozen=True)
class ProxyResult(LexicalResult):
    """The probe of a bag of words over seeds."""

    name = "proxy_probe"
    title = "β^px, the probe of a bag of words"
    compared = "β of the other model"


@instruments.register("lexical_probe")
def lexical_probe(
    runs: Runs,
    n: int = 200,
    checkpoint: str | int = "reported",
    split: str | None = None,
    top: float = 0.05,
) -> LexicalResult:
    """How likely each target word is, were all attention at one source word (β), against α.

    Works for recurrent encoder-decoders whose output reads a context, and for readers
    (classifiers). At any checkpoint; the cost is one pass of the output network over all pairs
    of source and target words.
    """
    return LexicalResult(tuple(_measure(run, n, checkpoint, split, top) for run in opened(runs)))


def _measure(run: Run, n: int, checkpoint: str | int, split: str | None, top: float) -> Probed:
    task, model = run.task(), run.model(checkpoint)
    batches = looked.batches_of(task, n, split)
    scores = looked.looked(model, batches, looked.lexical)
    weights = looked.looked(model, batches, looked.attention)
    found = described(scores)
    if not looked.flat(weights):  # uniform attention has no favourite to agree with
        rows, mask = scores.rows()
        chosen = np.where(mask, weights.rows()[0], -1).argmax(axis=1)
        best = rows[np.arange(len(rows)), chosen]
        found["mean β where α is highest"] = float(np.exp(best).mean())
        found |= looked.compared(weights, scores, "A(α, β)", "Kendall τ of α and β", top)
    return Probed(scores, weights, looked.first_words(task, batches), found)


@instruments.register("proxy_probe")
def proxy_probe(
    runs: Runs,
    n: int = 200,
    checkpoint: str | int = "reported",
    split: str | None = None,
    against: str | None = None,
    top: float = 0.05,
) -> ProxyResult:
    """β^px: what a bag of words (model snell-proxy) knows of translating single words.

    With `against`, the folder of a run on the same task, also how well its β agrees.
    """
    other = None if against is None else Run.open(Path(against))
    found = (_proxy(run, n, checkpoint, split, other, top) for run in opened(runs))
    return ProxyResult(tuple(found))


def _proxy(
    run: Run,
    n: int,
    checkpoint: str | int,
    split: str | None,
    other: Run | None,
    top: float,
) -> Probed:
    task, model = run.task(), run.model(checkpoint)
    if not (isinstance(model, Reader) and model.encoder is None):
        raise RegardError(
            f"{run.folder} is no bag of words. Train one: `regard train"
            f" {run.config.task_name} --model snell-proxy`, with the same task settings."
        )
    batches = looked.batches_of(task, n, split)
    scores = looked.looked(model, batches, looked.proxy)
    found, beside = described(scores), None
    if other is not None:
        same = (task.source_vocabulary, task.target_vocabulary)
        theirs = other.task()
        if same != (theirs.source_vocabulary, theirs.target_vocabulary):
            raise RegardError(
                f"{other.folder} has other words than {run.folder}. Compare runs of one task."
            )
        beside = looked.looked(other.model(), batches, looked.lexical)
        # As in the paper's program, the position is the proxy's and the top is the other's.
        found |= looked.compared(scores, beside, "A(β, β^px)", "Kendall τ of β and β^px", top)
    return Probed(scores, beside, looked.first_words(task, batches), found)


def described(scores: Scores) -> dict[str, float]:
    """Mean β, and mean β at each target word's best position."""
    rows, mask = scores.rows()
    beta = np.where(mask, np.exp(rows), 0.0)
    return {
        "mean β": float(beta.sum() / max(int(mask.sum()), 1)),
        "mean of the highest β": float(beta.max(axis=1).mean()),
    }
