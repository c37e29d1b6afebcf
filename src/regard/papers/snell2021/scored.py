"""All scores that Tables 2 to 10 of snell2021 compare, of the models of one data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from regard.instruments import looked
from regard.instruments.agreement import Agreement, agreement, contextualised
from regard.instruments.saliency import gradient
from regard.instruments.scores import Scores
from regard.models import Seq2Seq
from regard.papers.snell2021.datasets import COLUMNS, XI
from regard.runs import Run
from regard.tasks import Batch, CorpusTask
from regard.training.evaluation import evaluating

SALIENT = 300  # sentences that saliency is taken on where targets have many words

Performance = Callable[[Seq2Seq, Sequence[Batch]], float]  # p̂: how good a model is


@dataclass(frozen=True)
class Models:
    """The runs of one data set: several with attention, which take turns in being run A."""

    attending: Sequence[Run]
    uniform: Run
    proxy: Run
    frozen: Run | None = None


def sentences(task: CorpusTask, part: str, n: int | None) -> list[Batch]:
    """Sentences of a part, the training part included, by a fixed draw, in pieces."""
    rows = task.rows[part]
    if n is not None and n < len(rows):
        chosen = np.random.default_rng([n, len(rows)]).choice(len(rows), n, replace=False)
        rows = rows[torch.from_numpy(np.sort(chosen))]
    return list(rows.pieces(looked.PIECE))


def performance(model: Seq2Seq, batches: Sequence[Batch]) -> float:
    """The share of target words that are right when the teacher's are fed (for labels: all)."""
    right = count = 0
    with evaluating(model) as device:
        for batch in batches:
            batch = batch.to(device)
            said = looked.passed(model, batch)[1].logits.argmax(dim=2)
            right += int(((said == batch.target) & batch.target_mask).sum())
            count += int(batch.target_lengths.sum())
    return right / max(count, 1)


class Compared:
    """Every agreement of one data set over some sentences, and what it takes to compute them.

    `performs` is what ξ is given in: token accuracy, or another number that rises with training.
    """

    def __init__(
        self, models: Models, batches: Sequence[Batch], performs: Performance = performance
    ):
        self.models, self.batches, self.performs = models, batches, performs
        self.alphas = [self._at(run, "reported", looked.attention) for run in models.attending]
        self.betas = [self._at(run, "reported", looked.lexical) for run in models.attending]
        self.uniform = {
            at: self._at(models.uniform, at, looked.lexical) for at in models.uniform.checkpoints()
        }
        self.courses = [self._course(run) for run in models.attending]

    @cached_property
    def deltas(self) -> list[Scores]:
        """Δ of every attending run."""
        return [self._at(run, "reported", gradient) for run in self.models.attending]

    @cached_property
    def proxy(self) -> Scores:
        """β^px."""
        return self._at(self.models.proxy, "reported", looked.proxy)

    def _at(self, run: Run, checkpoint: str | int, look: looked.Look) -> Scores:
        return looked.looked(run.model(checkpoint), self.batches, look)

    def _course(self, run: Run) -> dict[int, tuple[Scores, float]]:
        """α̂ and the performance at every checkpoint."""
        found = {}
        for at in run.checkpoints():
            model = run.model(at)
            weights = looked.looked(model, self.batches, looked.attention)
            found[at] = weights, self.performs(model, self.batches)
        return found

    def columns(self, number: int) -> dict[str, Agreement]:
        """The cells of Table 2 with one of the attending runs as run A."""
        found = {
            **self.attended(number),
            # As in the paper's program the position is the proxy's.
            COLUMNS[1]: self._best(lambda beta: agreement(self.proxy, beta)),
            COLUMNS[2]: self._best(lambda beta: agreement(self.deltas[number], beta)),
        }
        return {column: found[column] for column in COLUMNS}

    def attended(self, number: int) -> dict[str, Agreement]:
        """A(α, β^uf) and A(α, β), the two that ξ is given for."""
        others = [beta for k, beta in enumerate(self.betas) if k != number]
        found = [agreement(self.alphas[number], beta) for beta in others]
        middle = sorted(found)[len(found) // 2]  # one of them, so that τ and Â belong to it
        best = self._best(lambda beta: agreement(self.alphas[number], beta))
        return {COLUMNS[0]: best, COLUMNS[3]: middle}

    def _best(self, of: Callable[[Scores], Agreement]) -> Agreement:
        """The highest over the checkpoints of the uniform run."""
        return max(of(beta) for beta in self.uniform.values())

    def trend(self, number: int) -> dict[int, float]:
        """A(α, β^uf(τ)) over training."""
        return {at: float(agreement(self.alphas[number], b)) for at, b in self.uniform.items()}

    def frozen(self, number: int) -> float:
        """A(α, α^fr) at the checkpoint where it is highest (A.6)."""
        run = self.models.frozen
        assert run is not None
        found = (self._at(run, at, looked.attention) for at in run.checkpoints())
        return max(float(agreement(self.alphas[number], weights)) for weights in found)

    def reached(self, number: int) -> tuple[list[int], list[list[float]], list[list[float]]]:
        """A(α, α̂(τ)) and performance of the comparison runs at the checkpoints they share."""
        others = [course for k, course in enumerate(self.courses) if k != number]
        shared = sorted(set.intersection(*(set(course) for course in others)))
        alpha = self.alphas[number]
        agreements = [[float(agreement(alpha, c[at][0])) for at in shared] for c in others]
        performances = [[course[at][1] for at in shared] for course in others]
        return shared, agreements, performances

    def xi(self, number: int, columns: dict[str, Agreement]) -> dict[str, tuple[float, bool]]:
        """ξ(α, β^uf), ξ(α, β) and ξ*, and whether the agreement was reached at all (eq. 11)."""
        _, agreements, performances = self.reached(number)
        wanted = {XI[0]: columns[COLUMNS[0]], XI[1]: columns[COLUMNS[3]]}
        found = {
            name: contextualised(float(value), agreements, performances)
            for name, value in wanted.items()
        }
        best = float(np.mean([max(course) for course in performances]))
        return {**found, XI[2]: (best, True)}
