"""`ablate`: take a component out of the attention and see what the model still gets right.

The causal test of what shares suggest: a term may be large and not matter, or small and decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.display import Bars, Figure, Panel, Rule, Table
from regard.errors import RegardError, unknown
from regard.instruments.decomposition import Components, Sums
from regard.instruments.instrument import Measured, Result, Runs, instruments, opened
from regard.models import Seq2Seq
from regard.recordings.record import samples
from regard.runs import Run
from regard.tasks import Batch
from regard.training.evaluation import evaluating

PARTS = ("temporal", "input", "delta")
WAYS = ("remove", "swap")
# Where a component is taken from: the places in the model that are changed together.
WHERE = {
    "queries": ("queries",),
    "keys": ("keys",),
    "alignment": ("queries", "keys"),
    "context": ("values",),
}


@dataclass(frozen=True)
class Ablated(Measured):
    """Forced word accuracy of the model as it is, and under every change."""

    baseline: float
    accuracy: dict[tuple[str, str, str], float]  # (way, part, where) -> accuracy
    site: str

    def values(self) -> dict[str, float]:
        """`baseline`, then `remove temporal from alignment` and so on."""
        return {"baseline": self.baseline} | {
            f"{way} {part} {'from' if way == 'remove' else 'in'} {where}": value
            for (way, part, where), value in self.accuracy.items()
        }


@dataclass(frozen=True)
class AblateResult(Result[Ablated]):
    """Accuracies over seeds."""

    name = "ablate"
    within = (0.0, 1.0)

    def table(self) -> Table:
        """A row per change, with the accuracy and how much was lost."""
        found = self.estimates()
        base = found["baseline"].mean
        rows = tuple((name, value, base - value.mean) for name, value in found.items())
        title = f"Word accuracy after a change of the attention, {self.n} seed{'s' * (self.n > 1)}"
        return Table(title, ("change", "accuracy", "lost"), rows)

    def figure(self) -> Figure:
        """One panel per way, bars by where, a colour per part."""
        found = self.estimates()
        panels = []
        for way in WAYS:
            bars = []
            for colour, part in enumerate(PARTS):
                keys = [k for k in self.first.accuracy if k[:2] == (way, part)]
                link = "from" if way == "remove" else "in"
                values = {where: found[f"{way} {part} {link} {where}"] for _, _, where in keys}
                bars.append(Bars.of(part, values, colour))
            rule = Rule("as it is", y=found["baseline"].mean)
            panels.append(
                Panel(f"{way} a component", "place", "word accuracy", (*bars, rule), (0, 1.05))
            )
        return Figure(
            "ablate",
            "Word accuracy (teacher's words fed) with one component removed from, or swapped for a"
            f" wrong one in, the queries, the keys, both, or the context. {self.n} seeds.",
            tuple(panels),
        )


@instruments.register("ablate")
def ablate(
    runs: Runs,
    n: int = 1000,
    site: str | None = None,
    seed: int = 0,
    checkpoint: str | int = "reported",
) -> AblateResult:
    """Accuracy with μ, χ or Δ removed from, or swapped within, queries, keys or context.

    `remove` subtracts the component. `swap` puts a wrong one in its place: μ of another step of
    the sample, χ of another word, Δ of another sample at the same step (none where that sample is
    shorter). The words fed are the teacher's, so that one error does not cause the next. Takes
    runs, because the model runs anew.
    """
    return AblateResult(tuple(_measure(run, n, site, seed, checkpoint) for run in opened(runs)))


def _measure(run: Run, n: int, site: str | None, seed: int, checkpoint: str | int) -> Ablated:
    task, model = run.task(), run.model(checkpoint)
    words = len(task.source_vocabulary), len(task.target_vocabulary)
    return ablate_model(model, list(samples(task, n, seed, None)()), words, site, seed)


def ablate_model(
    model: Seq2Seq,
    batches: Sequence[Batch],
    words: tuple[int, int],
    site: str | None = None,
    seed: int = 0,
) -> Ablated:
    """The same for a model with named places and some batches; `words` are vocabulary sizes."""
    places = model.places()
    sites = list(dict.fromkeys(name.rpartition(".")[0] for name in places))
    crossing = [name for name in sites if not name.startswith("encoder") and "self" not in name]
    if not crossing:
        raise RegardError("This model has no attention to change. Take one with attention.")
    if site is not None and site not in crossing:
        raise RegardError(unknown("attention site", site, crossing))
    site = site or crossing[-1]
    here: dict[str, nn.Module] = {
        what: places[f"{site}.{what}"] for what in ("queries", "keys", "values")
    }
    with evaluating(model):
        components = _components(model, batches, here, words)
        accuracy = {}
        baseline = _accuracy(model, batches, {})
        for way in WAYS:
            for part in PARTS:
                for where, what in WHERE.items():
                    edits = {
                        name: (here[name], Edit(way, part, name, components[name], seed))
                        for name in what
                    }
                    accuracy[way, part, where] = _accuracy(model, batches, edits)
    return Ablated(baseline, accuracy, site)


class Edit:
    """What is done to the numbers at one place; told of each batch before it runs."""

    def __init__(self, way: str, part: str, what: str, heads: list[Components], seed: int):
        self.way, self.part, self.what, self.heads = way, part, what, heads
        # Each place draws for itself: queries and keys that go wrong alike still find each other.
        places = ("queries", "keys", "values")
        self.generator = torch.Generator().manual_seed(3 * seed + places.index(what))
        self.words = self.mask = torch.empty(0)

    def prepare(self, batch: Batch) -> None:
        """Take note of the words and the mask of the side that this place is on."""
        ours = self.what == "queries"
        self.words = batch.inputs if ours else batch.source
        self.mask = batch.target_mask if ours else batch.source_mask

    def __call__(self, _module: nn.Module, _inputs: object, values: Tensor) -> Tensor:
        """values (batch, head, time, features), changed head by head."""
        changed = [
            self._head(values[:, head], components) for head, components in enumerate(self.heads)
        ]
        return torch.stack(changed, dim=1)

    def _head(self, x: Tensor, components: Components) -> Tensor:
        parts = components.parts(x.numpy(), self.words.numpy())
        own: Tensor = getattr(parts, self.part)
        if self.way == "remove":
            return x - own
        return x - own + self._wrong(own, components)

    def _wrong(self, own: Tensor, components: Components) -> Tensor:
        batch, time, _ = own.shape
        mu, chi = components.tensors
        if self.part == "temporal":  # another step of the same sample
            lengths = self.mask.sum(dim=1).clamp(min=1)
            shift = torch.rand(batch, generator=self.generator) * (lengths - 1).clamp(min=1)
            steps = torch.arange(time)[None] + shift.long()[:, None] + 1
            return mu[steps % lengths[:, None]]
        if self.part == "input":  # another word, any of those seen
            seen = torch.from_numpy(components.seen)
            place = torch.zeros(len(chi), dtype=torch.long)
            place[seen] = torch.arange(len(seen))
            shift = torch.randint(1, max(2, len(seen)), self.words.shape, generator=self.generator)
            return chi[seen[(place[self.words] + shift) % len(seen)]]
        if batch == 1:
            return torch.zeros_like(own)  # there is no other sample
        return (own * self.mask[:, :, None]).roll(1, dims=0)  # another sample, the same step


@contextmanager
def _edited(edits: dict[str, tuple[nn.Module, Edit]]) -> Iterator[None]:
    handles = [place.register_forward_hook(edit) for place, edit in edits.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _accuracy(
    model: Seq2Seq, batches: Sequence[Batch], edits: dict[str, tuple[nn.Module, Edit]]
) -> float:
    right = words = 0
    with _edited(edits):
        for batch in batches:
            for _, edit in edits.values():
                edit.prepare(batch)
            output = model(batch.source, batch.source_lengths, batch.inputs)
            same = (output.logits.argmax(dim=2) == batch.target) & batch.target_mask
            right += int(same.sum())
            words += int(batch.target_mask.sum())
    return right / max(words, 1)


def _components(
    model: Seq2Seq,
    batches: Sequence[Batch],
    here: dict[str, nn.Module],
    words: tuple[int, int],
) -> dict[str, list[Components]]:
    """The components of what passes each place, head by head, over all batches."""
    source = max(batch.source.shape[1] for batch in batches)
    target = max(batch.target.shape[1] for batch in batches)
    sums: dict[str, list[Sums]] = {}
    seen: dict[str, Tensor] = {}

    def listener(what: str) -> Callable[[nn.Module, object, Tensor], None]:
        return lambda _module, _inputs, values: seen.__setitem__(what, values)

    handles = [place.register_forward_hook(listener(what)) for what, place in here.items()]
    try:
        for batch in batches:
            model(batch.source, batch.source_lengths, batch.inputs)
            asked = seen.get("queries")
            if asked is not None and asked.shape[2] != batch.inputs.shape[1]:
                raise RegardError(
                    "This model attends before each step, so that a change at one step is in all"
                    " later queries and is no test of one component. `breakdown` takes its scores"
                    " apart by substitution."
                )
            for what, values in seen.items():
                ours = what == "queries"
                size = (words[1], target) if ours else (words[0], source)
                if what not in sums:
                    sums[what] = [Sums(*size, values.shape[3]) for _ in range(values.shape[1])]
                side = (
                    (batch.inputs, batch.target_mask) if ours else (batch.source, batch.source_mask)
                )
                for head, total in enumerate(sums[what]):
                    total.update(values[:, head], *side)
    finally:
        for handle in handles:
            handle.remove()
    return {what: [total.result() for total in heads] for what, heads in sums.items()}
