"""All agreements that Tables 2 to 10 of snell2021 give, of the models of one data set.

Scores of one checkpoint are taken, compared and let go: only those of the reported checkpoints are
kept, because sentences may be long and checkpoints many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from regard.instruments.scores import Scores, agreement, contextualised
from regard.papers.snell2021._course import Course, Performance, count_right, follow, read_scores
from regard.papers.snell2021._data_sets import COLUMNS, MORE_XI, XI
from regard.runs import Run
from regard.tasks import Batch, CorpusTask

AT_ONCE = 64  # sentences in a batch


@dataclass(frozen=True)
class Models:
    """The runs of one data set: several with attention, which take turns in being run A."""

    attending: Sequence[Run]
    uniform: Run
    proxy: Run
    frozen: Run | None = None


@dataclass(frozen=True)
class Cell:
    """A(u, v), its shuffled baseline, and Kendall's τ."""

    value: float
    shuffled: float
    tau: float

    @classmethod
    def of(cls, u: Scores, v: Scores) -> Cell:
        """What is measured of two scores."""
        found = agreement(u, v)
        return cls(float(found), found.shuffled, found.kendall)

    @classmethod
    def best(cls, cells: Sequence[Cell]) -> Cell:
        """Of several checkpoints the highest agreement, and the highest τ, each by itself."""
        top = max(cells, key=lambda cell: cell.value)
        taus = [cell.tau for cell in cells if np.isfinite(cell.tau)]
        return cls(top.value, top.shuffled, max(taus, default=float("nan")))


def draw_sentences(task: CorpusTask, part: str, n: int) -> list[Batch]:
    """Sentences of a part, the training part included, by a fixed draw, in pieces."""
    rows = task.rows[part]
    if n < len(rows):
        chosen = np.random.default_rng([n, len(rows)]).choice(len(rows), n, replace=False)
        rows = rows[torch.from_numpy(np.sort(chosen))]
    return list(rows.pieces(AT_ONCE))


class Compared:
    """Every agreement of one data set over some sentences, with each attending run as run A."""

    def __init__(
        self,
        models: Models,
        batches: Sequence[Batch],
        performs: Performance = count_right,
        whole: bool = True,
    ):
        """With `whole` false, saliency and the bag of words are left out."""
        self.models, self.batches, self.performs = models, batches, performs
        self.columns = COLUMNS[:3] if whole else COLUMNS[:1]
        self.alphas = [self._read(run, "attention") for run in models.attending]
        self.turns = range(len(self.alphas))

    def _read(self, run: Run, what: str, checkpoint: str | int = "reported") -> Scores:
        return read_scores(run, self.batches, what, checkpoint)

    @cached_property
    def _uniform(self) -> dict[int, dict[str, list[Cell]]]:
        """By checkpoint of the uniform run: what agrees with its probe, turn by turn."""
        whole = len(self.columns) > 1
        attending = self.models.attending if whole else []
        deltas = [self._read(run, "saliency") for run in attending]
        # As in the paper's program the position is the proxy's.
        proxies = [self._read(self.models.proxy, "proxy")] if whole else []
        found = {}
        for at in self.models.uniform.checkpoints():
            beta = self._read(self.models.uniform, "lexical", at)
            found[at] = {
                COLUMNS[0]: [Cell.of(alpha, beta) for alpha in self.alphas],
                COLUMNS[1]: [Cell.of(proxy, beta) for proxy in proxies],
                COLUMNS[2]: [Cell.of(delta, beta) for delta in deltas],
                "even": [_compare_half(alpha, beta, 0) for alpha in self.alphas],
                "odd": [_compare_half(alpha, beta, 1) for alpha in self.alphas],
            }
        return found

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """Table 2: a cell per turn; where no run has a turn (bag of words), one.

        The columns of the uniform run take the highest over its checkpoints. β comes from
        another run than α: the mean over all others.
        """
        found = {
            column: [
                Cell.best([at[column][turn] for at in self._uniform.values()])
                for turn in range(len(next(iter(self._uniform.values()))[column]))
            ]
            for column in self.columns
        }
        return {**found, COLUMNS[3]: self._compare_others()}

    def _compare_others(self) -> list[Cell]:
        betas = [self._read(run, "lexical") for run in self.models.attending]
        found = []
        for turn in self.turns:
            others = [Cell.of(self.alphas[turn], b) for k, b in enumerate(betas) if k != turn]
            parts = ([getattr(c, name) for c in others] for name in ("value", "shuffled", "tau"))
            found.append(Cell(*(float(np.mean(part)) for part in parts)))
        return found

    def trend(self, turn: int) -> dict[int, float]:
        """A(α, β^uf(τ)) over training."""
        return {at: found[COLUMNS[0]][turn].value for at, found in self._uniform.items()}

    def ends(self, turn: int) -> tuple[float, float]:
        """How much lower A(α, β^uf) is at the start and at the end than at its peak.

        The peak is found with one half of the sentences and measured with the other: the highest
        of many noisy numbers is always higher than the first and the last of them.
        """
        even, odd = (
            {at: found[half][turn].value for at, found in self._uniform.items()}
            for half in ("even", "odd")
        )
        peak = max(even, key=lambda at: even[at])
        return odd[peak] - odd[min(odd)], odd[peak] - odd[max(odd)]

    def compare_frozen(self) -> list[float]:
        """A(α, α^fr) at the checkpoint where it is highest (A.6), turn by turn."""
        run = self.models.frozen
        assert run is not None
        found = []
        for at in run.checkpoints():
            weights = self._read(run, "attention", at)
            found.append([float(agreement(alpha, weights)) for alpha in self.alphas])
        return [max(turn) for turn in zip(*found, strict=True)]

    @cached_property
    def courses(self) -> list[Course]:
        """Of every attending run: A(α, α̂(τ)) with each α, and its performance."""
        by_rank = len(self.columns) > 1
        return [
            follow(run, self.alphas, self.batches, self.performs, by_rank)
            for run in self.models.attending
        ]

    def xi(self, turn: int) -> dict[str, tuple[float, bool]]:
        """ξ of every column and ξ*, and whether the agreement was reached at all (eq. 11).

        ξ* is the mean over comparison runs of their best; where an agreement is never reached,
        it stands for ξ, and the paper writes a star.
        """
        columns = {**dict(zip((XI[0], *MORE_XI), self.columns, strict=False)), XI[1]: COLUMNS[3]}
        wanted = {name: self._cell(column, turn).value for name, column in columns.items()}
        return self._contextualise(turn, wanted, lambda course, at: course.agreements[at][turn])

    def xi_by_rank(self, turn: int) -> dict[str, tuple[float, bool]]:
        """The same where agreement is Kendall's τ (Table 3); nothing where it was not taken."""
        if len(self.columns) == 1:
            return {}
        columns = dict(zip((XI[0], *MORE_XI), self.columns, strict=True))
        wanted = {name: self._cell(column, turn).tau for name, column in columns.items()}
        return self._contextualise(turn, wanted, lambda course, at: course.taus[at][turn])

    def _cell(self, column: str, turn: int) -> Cell:
        """The cell of a turn; the bag of words has one for all."""
        cells = self.cells[column]
        return cells[turn if len(cells) > 1 else 0]

    def _contextualise(
        self, turn: int, wanted: Mapping[str, float], read: Callable[[Course, int], float]
    ) -> dict[str, tuple[float, bool]]:
        others = [course for k, course in enumerate(self.courses) if k != turn]
        shared = sorted(set.intersection(*(set(course.updates) for course in others)))
        agreements = [[read(course, at) for at in shared] for course in others]
        performances = [[course.performances[at] for at in shared] for course in others]
        best = float(np.mean([max(course) for course in performances]))
        found = {}
        for name, value in wanted.items():
            performance, reached = contextualised(value, agreements, performances)
            found[name] = (performance, True) if reached else (best, False)
        return {**found, XI[2]: (best, True)}


def _compare_half(u: Scores, v: Scores, parity: int) -> Cell:
    """The same over every other sentence; τ is not taken."""
    ours, theirs = (Scores(x.values[parity::2], x.mask[parity::2]) for x in (u, v))
    found = agreement(ours, theirs)
    return Cell(float(found), float("nan"), float("nan"))
