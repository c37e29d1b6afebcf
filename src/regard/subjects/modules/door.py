"""`regard.module`: any PyTorch module as a subject."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, first_line, unknown
from regard.models.seq2seq import OutputLayer
from regard.subjects.lexicon import Lexicon, check_marker, find_marker
from regard.subjects.modules.at import At
from regard.subjects.modules.model import STATES, Call, ModuleModel, find_tolerance
from regard.subjects.subject import LIMIT, Pair, Subject
from regard.tasks.batch import Batch, pad
from regard.tasks.vocabulary import EOS, PAD, SOS
from regard.training.evaluation import evaluating

ROWS = 64
PLACES = (*STATES, "logits")
SPECIALS = ("pad", "start", "end")


class ModuleSubject(Subject):
    """A module, how it is called, and where what is."""

    model: ModuleModel
    pads: bool | None = None  # whether padding changes nothing; not known before it was tried
    alone: bool = False  # whether rows change places on the way, so that each goes alone
    tried: frozenset[str] = frozenset()  # the sides whose padding was tried

    def __init__(self, model: ModuleModel, *about: Any):
        super().__init__(model, *about)
        model.pad = self.lexicons["decoder"].pad

    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Words or numbers; the end word is put after words, the start word is fed first.

        Where padding changes what the module does, sentences of one length go together only.
        """
        source, target = self.lexicons.values()
        rows = [self._numbers(said, source) for said, _ in pairs]
        said = [row for _, row in pairs if row is not None]
        if said and len(said) < len(pairs):
            raise RegardError("Give a target with every source, or with none.")
        width = max(map(len, rows), default=0)
        width = width - 1 if width > 2 else width + 1  # another one than the source's
        wanted = [self._numbers(one, target) for one in said] or [
            [target.start or 0] * width
        ] * len(rows)
        order = range(len(rows))
        self.prepare(self._collate(rows, wanted, order))
        sides = {"source": {*map(len, rows)}, "target": {*map(len, wanted)}}
        uneven = frozenset(side for side, lengths in sides.items() if len(lengths) > 1)
        if self.pads is not False and not uneven <= self.tried:
            self._try_padding(rows, wanted)
            self.tried |= uneven
        runs: list[list[int]] = [[*order]]
        if self.alone:
            runs = [[k] for k in order]
        elif self.pads is False:
            runs = [[*run] for _, run in groupby(order, lambda k: (len(rows[k]), len(wanted[k])))]
        found = [piece for run in runs for piece in self._collate(rows, wanted, run).pieces(ROWS)]
        return found if said else [self._generate(batch) for batch in found]

    def _generate(self, batch: Batch) -> Batch:
        try:
            return self.generate(batch)
        except (RuntimeError, IndexError, ValueError) as error:
            raise RegardError(
                f"The module could not go on for {LIMIT} words of its own ({first_line(error)})."
                " Give targets."
            ) from error

    def _collate(
        self, rows: list[list[int]], wanted: list[list[int]], some: Iterable[int]
    ) -> Batch:
        """Some sentences in one batch, padded with the words that mean padding."""
        source, target = self.lexicons.values()
        some = [*some]
        fed = [[target.start or 0, *wanted[k][:-1]] for k in some]
        sides = (
            ([rows[k] for k in some], source),
            ([wanted[k] for k in some], target),
            (fed, target),
        )
        parts = [torch.from_numpy(x) for one, lexicon in sides for x in pad(one, lexicon.pad or 0)]
        return Batch(parts[0], parts[1], parts[2], parts[3], None, parts[4])

    def _try_padding(self, rows: list[list[int]], wanted: list[list[int]]) -> None:
        """Put the shortest and the longest sentences together, in two orders, and each alone.

        Where one order alone is right, rows change places on the way, as where they are sorted by
        their lengths.
        """
        chosen = {
            choose(range(len(one)), key=lambda k, one=one: len(one[k]))  # type: ignore[misc]
            for one in (rows, wanted)
            for choose in (min, max)
        }
        upwards = sorted(chosen, key=lambda k: (len(rows[k]), len(wanted[k])))
        worst = [self._compare(rows, wanted, order) for order in (upwards, upwards[::-1])]
        good = [one <= find_tolerance(self.model.net) for one in worst]
        self.pads, self.alone = all(good), any(good) and not all(good)
        if all(map(math.isfinite, worst)):
            self.parity["a sentence alone and padded"] = max(worst)
        if not self.pads:
            self.parity["padding"] = "changes sentences, so that none is padded"

    def _compare(self, rows: list[list[int]], wanted: list[list[int]], order: list[int]) -> float:
        """How far sentences in a batch are from themselves alone."""
        try:
            with evaluating(self.model) as device:
                whole = self._look(self._collate(rows, wanted, order).to(device))
                alone = [self._look(self._collate(rows, wanted, [k]).to(device)) for k in order]
        except RegardError:  # its attention is not what it is said to be where there is padding
            return math.inf
        return max(_apart(one, whole, row) for row, one in enumerate(alone))

    def _look(self, batch: Batch) -> dict[str, Tensor]:
        """What is compared: states, logits, and the weights of every attention."""
        output = self.model.decode(
            self.model.encode(batch.source, batch.source_lengths),
            batch.inputs,
            batch.target_lengths,
        )
        found = {"encoder": output.encoder_states, "decoder": output.decoder_states}
        found |= {"logits": output.logits} if output.logits.shape[2] else {}
        return found | {name: site.weights for name, site in output.sites.items()}

    def prepare(self, batch: Batch) -> None:
        """See where time is, and what attentions there are."""
        if self.model.layouts is None:
            device = next(self.model.parameters(), torch.empty(0)).device
            self.model.prepare(batch.to(device))

    def _numbers(self, said: Any, lexicon: Lexicon) -> list[int]:
        given: list[Any] = said.split() if isinstance(said, str) else list(said)
        if all(isinstance(word, int) for word in given):
            lexicon.check_numbers(given)
            return given
        end = [] if lexicon.end is None else [lexicon.end]
        return [*lexicon.encode(given), *end]

    def sites(self) -> list[str]:
        """The attentions; those found by type are known after the first pass."""
        return [*self.model.named, *self.model.ears.packed]


def _apart(alone: Mapping[str, Tensor], whole: Mapping[str, Tensor], row: int) -> float:
    """How far a sentence alone is from itself in a batch, where it has words."""
    worst = 0.0
    for name, one in alone.items():
        same = whole[name][row][tuple(map(slice, one.shape[1:]))]
        size = max(1.0, float(one.abs().max())) if one.numel() else 1.0
        worst = max(worst, float((one[0] - same).abs().max()) / size if one.numel() else 0.0)
    return worst


def module(
    net: nn.Module,
    call: Call | None = None,
    *,
    places: Mapping[str, str] | None = None,
    sites: Mapping[str, At] | None = None,
    source_words: Sequence[str] | int | None = None,
    target_words: Sequence[str] | int | None = None,
    specials: Mapping[str, Any] | None = None,
    pieces: str | None = None,
    readout: nn.Linear | Tensor | str | None = None,
    readout_parts: Mapping[str, tuple[int, int]] | None = None,
    time_first: Collection[str] = (),
) -> ModuleSubject:
    """Any PyTorch module as a subject.

    `call(net, batch)` runs it; by default `net(batch.source, batch.inputs)`. Attentions of
    `nn.MultiheadAttention`, states of `nn.LSTM` and its like and of `nn.Transformer`, and gates are
    found by type. Otherwise `sites` names attentions (see `at`), and `places` says where
    `encoder.states`, `decoder.states` and `logits` are. No attention is ever invented. Words are
    given by name, by their count, or not at all; `specials` says which numbers are padding, start
    and end, `pieces` how pieces of words are marked.

    >>> m = regard.module(net, sites={"decoder.0.cross": regard.at("q", "k", heads=8, scale=.35)})
    ... # doctest: +SKIP
    """
    faults = [unknown("place", name, PLACES) for name in places or {} if name not in PLACES]
    for name, site in (sites or {}).items():
        if not isinstance(site, At):
            faults.append(f"'{name}' is not a site: write regard.at(q=…, k=…).")
            continue
        if not {"queries", "weights", "scores"} & site.places().keys():
            faults.append(f"'{name}' needs q and k, or weights: regard.at(q=…, k=…).")
        faults += refuse_bare_heads(net, name, site)
    if faults:
        raise RegardError(*faults)
    layer = read_readout(net, readout, readout_parts)
    model = ModuleModel(net, call or _call, places or {}, sites or {}, layer, frozenset(time_first))
    lexicons = (
        make_lexicon(source_words, specials, pieces, net, True),
        make_lexicon(target_words, specials, pieces, net, False),
    )
    origin = {"adapter": "module", "module": type(net).__name__, "model": type(net).__name__}
    return ModuleSubject(model, lexicons, origin, model.report)


def refuse_bare_heads(net: nn.Module, name: str, site: At) -> list[str]:
    """Projections of an attention with many heads are not one head without a scale."""
    if site.heads > 1 or site.q is None:
        return []
    parent = site.q.rpartition(".")[0]
    owner = dict(net.named_modules()).get(parent)
    for count in ("num_heads", "n_heads", "nhead", "num_attention_heads"):
        heads = getattr(owner, count, 1)
        if isinstance(heads, int) and heads > 1:
            return [f"'{site.q}' belongs to an attention with {heads} heads. Give '{name}' with"
                    f" heads={heads}, and with its scale, often size**-0.5."]  # fmt: skip
    return []


def read_readout(
    net: nn.Module, readout: nn.Linear | Tensor | str | None,
    parts: Mapping[str, tuple[int, int]] | None,
) -> OutputLayer | None:  # fmt: skip
    """The output layer, with its bias, from whatever was given."""
    if isinstance(readout, str):
        known = dict(net.named_modules())
        if not isinstance(known.get(readout), nn.Linear):
            linear = [n for n, m in known.items() if isinstance(m, nn.Linear)]
            raise RegardError(unknown("linear submodule", readout, linear))
        readout = known[readout]
    if readout is None:
        return None
    weight = readout.weight if isinstance(readout, nn.Linear) else readout
    bias = readout.bias if isinstance(readout, nn.Linear) else None
    assert isinstance(weight, Tensor)
    return OutputLayer(weight, bias, dict(parts or {"state": (0, weight.shape[1])}))


def make_lexicon(
    words: Sequence[str] | int | None,
    specials: Mapping[str, Any] | None,
    pieces: str | None,
    net: nn.Module,
    source: bool,
) -> Lexicon:
    """The words of one side; without names, as many numbers as a table or output layer has."""
    if words is None:
        tables = [m.num_embeddings for m in net.modules() if isinstance(m, nn.Embedding)]
        outputs = [m.out_features for m in net.modules() if isinstance(m, nn.Linear)]
        words = max([*tables, *([] if source else outputs)], default=0)
    names = tuple(map(str, range(words))) if isinstance(words, int) else tuple(words)
    if specials is None:
        return Lexicon(names, PAD, SOS, EOS, marker=check_marker(pieces or ""))
    faults = [unknown("special word", name, (*SPECIALS, "others")) for name in specials
              if name not in (*SPECIALS, "others")]  # fmt: skip
    if faults:
        raise RegardError(*faults)
    numbers = {name: specials.get(name) for name in SPECIALS}
    marker = find_marker(names) if pieces is None else check_marker(pieces)
    return Lexicon(names, **numbers, special=frozenset(specials.get("others", ())), marker=marker)


def _call(net: nn.Module, batch: Batch) -> Any:
    """How a module is run by default: on source and fed words."""
    return net(batch.source, batch.inputs)
