"""How a run learns: at each checkpoint, how its attention agrees, and how good it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from regard.instruments.scores import Scores, agreement
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.runs import Run
from regard.tasks.batch import Batch

Performance = Callable[[Run, int, Recording], float]  # of a run, at an update, on its recording
KEPT = ("attention.weights", "predictions", "targets")  # all that is compared


def record_scores(
    run: Run, batches: Sequence[Batch], checkpoint: str | int = "reported", *also: str
) -> Recording:
    """A run's attention over some sentences, the teacher's words fed, and further scores."""
    only = (*KEPT, *also)
    return record(
        run, batches=batches, checkpoint=checkpoint, inputs="teacher", also=also, only=only
    )


def read_scores(
    run: Run, batches: Sequence[Batch], what: str, checkpoint: str | int = "reported"
) -> Scores:
    """One kind of scores of a run: `attention`, `lexical`, `proxy` or `saliency`."""
    if what == "attention":
        return Scores.of_attention(record_scores(run, batches, checkpoint))
    return Scores.of_array(record_scores(run, batches, checkpoint, what), what)


def count_right(_run: Run, _update: int, recording: Recording) -> float:
    """The share of target words that are right when the teacher's are fed (of labels: of all)."""
    mask = recording["decoder.mask"]
    same = (recording["predictions"] == recording["targets"]) & mask
    return int(same.sum()) / max(int(mask.sum()), 1)


@dataclass(frozen=True)
class Course:
    """What ξ (snell2021, eq. 11) is read from, by `contextualised`."""

    agreements: dict[int, list[float]]  # update -> A(α, α̂(τ)), one for each α given
    performances: dict[int, float]
    taus: dict[int, list[float]] = field(default_factory=dict)  # the same as Kendall's τ

    @property
    def updates(self) -> list[int]:
        """The checkpoints, in order."""
        return sorted(self.performances)


def follow(
    run: Run,
    alphas: Sequence[Scores],
    batches: Sequence[Batch],
    performs: Performance,
    by_rank: bool = False,
) -> Course:
    """A run's attention against given ones, and its performance, over its checkpoints.

    `alphas` are scores over the same sentences as `batches`; one checkpoint is in memory. With
    `by_rank`, Kendall's τ is taken as well, which costs more than all else.
    """
    agreements, performances, taus = {}, {}, {}
    for at in run.checkpoints():
        recording = record_scores(run, batches, at)
        weights = Scores.of_attention(recording)
        found = [agreement(alpha, weights) for alpha in alphas]
        agreements[at] = list(map(float, found))
        performances[at] = performs(run, at, recording)
        if by_rank:
            taus[at] = [one.kendall for one in found]
    return Course(agreements, performances, taus)
