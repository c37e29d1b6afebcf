"""`ablate`: take a component out of the attention and see what the model still gets right.

The causal test of what shares suggest: a term may be large and not matter, or small and decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.display import Bars, Figure, Panel, Rule, Table
from regard.errors import RegardError, unknown
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Key, Measured, Result
from regard.instruments.sources import Models
from regard.models.seq2seq import NO_LOGITS, Seq2Seq
from regard.recordings.adapters.model import record_model
from regard.recordings.compact import renumber
from regard.recordings.decomposition import Components
from regard.recordings.recording import Recording
from regard.recordings.samples import draw_samples
from regard.runs import Run
from regard.subjects.subject import Subject
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary
from regard.training.evaluation import evaluating

PARTS = ("temporal", "input", "delta")
WAYS = ("remove", "swap")
# Where a component is taken from: the hook points of a site that are changed together.
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

    def values(self) -> Mapping[Any, float]:
        """`baseline`, then by way, part and place."""
        found: dict[Any, float] = {"baseline": self.baseline, **self.accuracy}
        return found


class AblateResult(Result[Ablated]):
    """Accuracies over seeds."""

    title = "Word accuracy after a change of the attention"
    within = SHARE

    def label(self, key: Key) -> str:
        """`remove temporal from alignment`, `swap temporal in alignment`."""
        if isinstance(key, str):
            return key
        way, part, where = key
        return f"{way} {part} {'from' if way == 'remove' else 'in'} {where}"

    def table(self) -> Table:
        """A row per change, with the accuracy and how much was lost."""
        found = self.estimates()
        base = found["baseline"].mean
        rows = tuple((name, value, base - value.mean) for name, value in found.items())
        return Table(self.heading(), ("change", "accuracy", "lost"), rows)

    def figure(self) -> Figure:
        """One panel per way, bars by where, a colour per part."""
        found = self.by_key()
        rule = Rule("as it is", y=found["baseline"].mean)
        panels = []
        for way in WAYS:
            bars = [
                Bars.of(part, {where: found[way, part, where] for where in WHERE}, colour)
                for colour, part in enumerate(PARTS)
            ]
            panels.append(
                Panel(f"{way} a component", "place", "word accuracy", (*bars, rule), (0, 1.05))
            )
        return Figure(
            "ablate",
            "Word accuracy (teacher's words fed) with one component removed from, or swapped for a"
            f" wrong one in, the queries, the keys, both, or the context. {self.over_seeds}.",
            tuple(panels),
        )


@instrument(AblateResult, Models())
def ablate(
    run: Run | Subject,
    n: int = 1000,
    site: str | None = None,
    seed: int = 0,
    checkpoint: str | int = "reported",
    pairs: Any = None,
    head: int | None = None,
    layer: int | None = None,
) -> Ablated:
    """Accuracy with μ, χ or Δ removed from, or swapped within, queries, keys or context.

    `remove` subtracts the component. `swap` puts a wrong one in its place: μ of another step of
    the sample, χ of another word, Δ of another sample at the same step (none where that sample is
    shorter). The words fed are the teacher's, so that one error does not cause the next. Takes
    runs, and subjects with `pairs`, because the model runs anew. `head` changes one head
    only, `layer` looks at the attention of one layer.
    """
    tried = Tried.of(run, pairs, n, seed, checkpoint)
    return ablate_model(
        tried.model, tried.batches, tried.vocabularies,
        choose_site(tried.model, site, layer), seed, head, tried.conventions,
    )  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """A model, what it reads, and its words."""

    model: Seq2Seq
    batches: list[Batch]
    vocabularies: tuple[Vocabulary, Vocabulary]
    conventions: Mapping[str, dict[str, Any]] | None = None

    @classmethod
    def of(cls, run: Run | Subject, pairs: Any, n: int, seed: int, checkpoint: str | int) -> Tried:
        """A run with samples of its task, or a subject with pairs."""
        if isinstance(run, Subject):
            if not pairs:
                raise RegardError("A subject needs something to read: pairs=[(source, target), …].")
            return cls(run.model, run.read(list(pairs)), run.vocabularies, run.conventions)
        if pairs is not None:
            raise RegardError("pairs= is what a subject reads. Of a run, n samples are drawn.")
        task = run.task()
        words = task.source_vocabulary, task.target_vocabulary
        return cls(run.model(checkpoint), list(draw_samples(task, n, seed)), words)


def choose_site(model: Seq2Seq, site: str | None, layer: int | None) -> str | None:
    """The attention from target to source that is meant; None: the last."""
    if layer is None:
        return site
    crossing = model.crossing_sites()
    fitting = [name for name in crossing if f".{layer}." in f".{name}."]
    if not fitting or site not in (None, *fitting):
        raise RegardError(f"layer={layer} does not fit: there are {', '.join(crossing)}.")
    return fitting[-1]


def ablate_model(
    model: Seq2Seq,
    batches: Sequence[Batch],
    vocabularies: tuple[Vocabulary, Vocabulary],
    site: str | None = None,
    seed: int = 0,
    head: int | None = None,
    conventions: Mapping[str, dict[str, Any]] | None = None,
) -> Ablated:
    """The same for a model with hook points and some batches."""
    points, crossing = model.hook_points(), model.crossing_sites()
    if not crossing:
        raise RegardError("This model has no attention to change. Take one with attention.")
    if site is not None and site not in crossing:
        raise RegardError(unknown("attention site", site, crossing))
    site = site or crossing[-1]
    seen = record_site(model, batches, vocabularies, site, conventions)
    components = decompose(seen, site)
    if head is not None and not 0 <= head < len(components["queries"]):
        raise RegardError(f"head={head} does not fit: '{site}' has {len(components['queries'])}.")
    heads = None if head is None else frozenset([head])
    accuracy = {}
    with evaluating(model) as device:
        batches = [batch.to(device) for batch in batches]
        baseline = measure(model, batches, {}).accuracy
        for way in WAYS:
            for part in PARTS:
                for where, names in WHERE.items():
                    edits: dict[nn.Module, Edit] = {
                        points[f"{site}.{name}"]: Edit(
                            way, part, name, components[name], seed, heads, seen
                        )
                        for name in names
                    }
                    accuracy[way, part, where] = measure(model, batches, edits).accuracy
    return Ablated(baseline, accuracy, site)


def record_site(
    model: Seq2Seq,
    batches: Sequence[Batch],
    vocabularies: tuple[Vocabulary, Vocabulary],
    site: str,
    conventions: Mapping[str, dict[str, Any]] | None,
) -> Recording:
    """What passes the hook points of a site, over all batches."""
    if any(batch.source.ndim > 2 for batch in batches):
        raise RegardError(
            "The source is speech, which has no words whose components could be taken out."
            " `ablate_heads` takes out whole heads."
        )
    names = ["encoder.states", "decoder.states", "queries", "keys", "values"]
    recording = record_model(
        model, batches, vocabularies, {}, "teacher", {"values": {}}, names, sites=[site],
        conventions=conventions,
    )  # fmt: skip
    if recording.metadata.sites[site].lag or model.feeds:
        raise RegardError(
            "This model attends before each step, or is fed what it attended to, so that a change"
            " at one step is in all later queries and is no test of one component. `breakdown`"
            " takes its scores apart by substitution."
        )
    return recording.compact


def decompose(recording: Recording, site: str) -> dict[str, Sequence[Components]]:
    """The components of what passes each hook point of a site, head by head."""
    parts = recording.decomposition.site(site)
    values = recording.decomposition.heads(f"{site}.values", "encoder")
    return {"queries": parts.queries, "keys": parts.keys, "values": values}


class Edit:
    """What is done to the numbers at one place; told of each batch before it runs."""

    def __init__(
        self,
        way: str,
        part: str,
        what: str,
        heads: Sequence[Components],
        seed: int,
        only: frozenset[int] | None = None,
        seen: Recording | None = None,
    ):
        self.way, self.part, self.what, self.heads = way, part, what, heads
        self.only, self.seen = (
            only,
            seen,
        )  # the heads that are changed, and whose numbers words have
        # Each place draws for itself: queries and keys that go wrong alike still find each other.
        places = ("queries", "keys", "values")
        self.generator = torch.Generator().manual_seed(3 * seed + places.index(what))
        self.words = self.mask = torch.empty(0)

    def prepare(self, batch: Batch) -> None:
        """Take note of the words and the mask of the side that this place is on."""
        ours = self.what == "queries"
        self.words = batch.inputs if ours else batch.source
        self.mask = batch.target_mask if ours else batch.source_mask
        if self.seen is not None and self.seen.metadata.compact:
            name = "decoder.words" if ours else "encoder.words"
            given = (x.cpu().numpy() for x in (self.words, self.mask))
            words = torch.from_numpy(renumber(self.seen, name, *given)).long()
            self.words = words.to(self.mask.device)

    def __call__(self, _module: nn.Module, _inputs: object, values: Tensor) -> Tensor:
        """values (batch, head, time, features), changed head by head."""
        if self.only is not None and values.shape[1] == 1 < len(self.heads):
            raise RegardError(
                f"All {len(self.heads)} heads have the same {self.what}, so that those of one head"
                " cannot be changed. Leave out head=."
            )
        heads = zip(values.unbind(1), self.heads, strict=False)  # one head may serve for all
        return torch.stack(
            [
                x if not (self.only is None or number in self.only) else self._change(x, components)
                for number, (x, components) in enumerate(heads)
            ],
            dim=1,
        )

    def _change(self, x: Tensor, components: Components) -> Tensor:
        mu, chi = (average.to(x.device) for average in components.tensors)
        temporal, inputs = mu[: x.shape[1]].expand_as(x), chi[self.words]
        parts = {"temporal": temporal, "input": inputs, "delta": x - temporal - inputs}
        own = parts[self.part]
        if self.way == "remove":
            return x - own
        return x - own + self._draw_wrong(own, mu, chi, torch.from_numpy(components.seen))

    def _draw_wrong(self, own: Tensor, mu: Tensor, chi: Tensor, seen: Tensor) -> Tensor:
        """A wrong part; what is drawn is drawn on the CPU, the same for every device."""
        batch, time, _ = own.shape
        if self.part == "temporal":  # another step of the same sample
            lengths = self.mask.sum(dim=1).clamp(min=1)
            drawn = torch.rand(batch, generator=self.generator).to(own.device)
            shift = (drawn * (lengths - 1).clamp(min=1)).long()
            steps = torch.arange(time, device=own.device)[None] + shift[:, None] + 1
            return mu[steps % lengths[:, None]]
        if self.part == "input":  # another word, any of those seen
            place = torch.zeros(len(chi), dtype=torch.long)
            place[seen] = torch.arange(len(seen))
            shift = torch.randint(1, max(2, len(seen)), self.words.shape, generator=self.generator)
            place, seen, shift = (x.to(own.device) for x in (place, seen, shift))
            return chi[seen[(place[self.words] + shift) % len(seen)]]
        if batch == 1:
            return torch.zeros_like(own)  # there is no other sample
        return (own * self.mask[:, :, None]).roll(1, dims=0)  # another sample, the same step


class Performance(NamedTuple):
    """What a model gets right, the teacher's words fed."""

    accuracy: float  # share of words
    loss: float  # nats per word


def measure(
    model: Seq2Seq, batches: Sequence[Batch], edits: Mapping[nn.Module, Any]
) -> Performance:
    """With hooks at some points; those that are told of each batch have `prepare`."""
    right = words = 0
    loss = 0.0
    with ExitStack() as hooks:
        for point, edit in edits.items():
            hooks.callback(point.register_forward_hook(edit).remove)
        for batch in batches:
            for edit in edits.values():
                if isinstance(edit, Edit):
                    edit.prepare(batch)
            logits = model(batch.source, batch.source_lengths, batch.inputs).logits
            if not logits.shape[2]:
                raise RegardError(NO_LOGITS)
            kept = batch.target_mask
            right += int(((logits.argmax(dim=2) == batch.target) & kept).sum())
            words += int(kept.sum())
            loss += float(cross_entropy(logits[kept].float(), batch.target[kept], reduction="sum"))
    return Performance(right / max(words, 1), loss / max(words, 1))
