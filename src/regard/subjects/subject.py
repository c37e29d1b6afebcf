"""The subject: a network with its words, whoever made it. The contract is docs/subjects.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError, unknown
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.subjects.lexicon import Lexicon
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import Vocabulary
from regard.training.evaluation import evaluating, without_dropout

Said = Any  # a text, its pieces, their numbers; or features
Pair = tuple[Said, Said | None]  # without a target, the subject's own output is taken
LIMIT = 128  # pieces that a subject puts out at most


class Subject(ABC):
    """A network and its words, the same for all doors.

    `model` speaks Regard's interface (`Seq2Seq`): encode, decode, step, hook points, blocks of
    weights, cells, output layer. `lexicons` hold the words of both sides by their own numbers.
    `origin` says where it comes from, `parity` how well it was proved equal to its source.
    """

    inputs = "teacher"  # what is fed when it is recorded by default
    forced_first: int | None = None  # a word that every output begins with, such as a language

    def __init__(
        self,
        model: Seq2Seq,
        lexicons: tuple[Lexicon, Lexicon],
        origin: dict[str, Any],
        parity: dict[str, Any] | None = None,
    ):
        self.model, self.origin, self.parity = model, origin, {} if parity is None else parity
        self.lexicons = {"encoder": lexicons[0], "decoder": lexicons[1]}
        dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
        if dtype in (torch.bfloat16, torch.float16):
            self.origin = {**origin, "precision": str(dtype).removeprefix("torch.")}

    def __repr__(self) -> str:
        what = self.origin.get("model", type(self.model).__name__)
        return f"Subject({what}: {len(self.sites())} attentions)"

    @abstractmethod
    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Sentence pairs as batches, in order, in pieces that memory can hold."""

    def prepare(self, batch: Batch) -> None:  # noqa: B027
        """Look at a first batch, where what there is shows only in a pass."""

    def generate(self, batch: Batch, limit: int = LIMIT) -> Batch:
        """The batch with the subject's own words as targets, chosen greedily."""
        lexicon = self.lexicons["decoder"]
        with evaluating(self.model) as device:
            memory = self.model.encode(batch.source.to(device), batch.source_lengths.to(device))
            fed = torch.full((len(batch), limit), lexicon.start or 0, device=device)
            fed = self.model.feed(memory, fed, torch.zeros(limit, dtype=torch.bool))
            said = self.model.decode(memory, fed).logits.argmax(dim=2)
        return end_targets(batch, fed.cpu(), said.cpu(), lexicon.end)

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """What the decoder may know of the source. (batch, source), (batch,)"""
        with without_dropout(self.model):
            return self.model.encode(source, lengths)

    def decode(self, memory: Memory, inputs: Tensor) -> Output:
        """A forced pass: all steps at once, given what is fed at each. (batch, target)"""
        with without_dropout(self.model):
            return self.model.decode(memory, inputs)

    def sites(self) -> list[str]:
        """The names of all attentions: `encoder.0.self`, `decoder.0.self`, `decoder.0.cross`."""
        points = self.model.hook_points().values()
        return list(dict.fromkeys(point.site for point in points if point.site is not None))

    def choose_sites(self, wanted: str | Sequence[str] | None) -> list[str]:
        """The attentions that some names mean: `cross`, `decoder.3.cross`, `decoder.*.self`."""
        known = self.sites()
        if wanted is None:
            return known
        names = [wanted] if isinstance(wanted, str) else wanted
        if not isinstance(names, Collection) or not all(isinstance(n, str) for n in names):
            raise RegardError(
                f"sites={wanted!r} does not name attentions. Write 'cross', 'decoder.3.cross', or"
                " a list of names."
            )
        chosen, faults = set(), []
        for name in names:
            found = [site for site in known if _means(name, site)]
            if name == "cross":  # that of a recurrent model is called `attention`
                found = [s for s in known if s in found or s in self.model.crossing_sites()]
            faults += [] if found else [unknown("attention site", name, known)]
            chosen |= {*found}
        if faults:
            raise RegardError(*faults)
        return [site for site in known if site in chosen]

    def hook_points(self) -> dict[str, Any]:
        """Where numbers can be looked at or replaced, see `NamedParts.hook_points`."""
        return {**self.model.hook_points()}

    def blocks(self) -> dict[str, Tensor]:
        """Every weight matrix by name, gates apart."""
        return self.model.blocks()

    def output_layer(self) -> OutputLayer | None:
        """What stands between the last state and the logits, where that is one linear map."""
        return self.model.output_layer()

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The words of both sides, as recordings keep them."""
        source, target = (
            Vocabulary(tuple(lexicon.words), lexicon.end is not None)
            for lexicon in self.lexicons.values()
        )
        return source, target

    @property
    def conventions(self) -> dict[str, dict[str, Any]]:
        """How words are numbered, of each side where that is not as in Regard."""
        found = {side: lexicon.conventions for side, lexicon in self.lexicons.items()}
        if not any(found.values()):
            return {}
        usual = {"pad": 0, "start": 1, "end": 2}
        return {side: said or usual for side, said in found.items()}


class Native(Subject):
    """A model of Regard's with the vocabularies of its task."""

    inputs = "own"

    def __init__(
        self,
        model: Seq2Seq,
        vocabularies: tuple[Vocabulary, Vocabulary],
        read: Callable[[Sequence[Pair]], list[Batch]],
        origin: dict[str, Any] | None = None,
    ):
        source, target = map(Lexicon.of, vocabularies)
        super().__init__(model, (source, target), origin or {"model": type(model).__name__})
        self._read = read

    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Words by their numbers, as the task has them."""
        return self._read(pairs)


def _means(name: str, site: str) -> bool:
    """Whether a name or pattern means a site: whole, by its end, or by its beginning."""
    return fnmatchcase(site, name) or site.endswith(f".{name}") or site.startswith(f"{name}.")


def end_targets(batch: Batch, fed: Tensor, said: Tensor, end: int | None) -> Batch:
    """The batch with what was said up to the first end token, and what was fed meanwhile."""
    width = said.shape[1]
    ended = said == (-1 if end is None else end)
    lengths = torch.where(ended.any(1), ended.int().argmax(1) + 1, width)
    most = int(lengths.max()) if len(lengths) else 0
    return Batch(batch.source, batch.source_lengths, said[:, :most], lengths, None, fed[:, :most])
