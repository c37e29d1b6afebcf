"""`regard.module`: any PyTorch module as a subject."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.seq2seq import OutputLayer
from regard.subjects.lexicon import Lexicon, check_marker, find_marker
from regard.subjects.modules.at import At
from regard.subjects.modules.model import STATES, Call, ModuleModel
from regard.subjects.subject import Pair, Subject
from regard.tasks.batch import Batch, pad
from regard.tasks.vocabulary import EOS, PAD, SOS

ROWS = 64
PLACES = (*STATES, "logits")
SPECIALS = ("pad", "start", "end")


class ModuleSubject(Subject):
    """A module, how it is called, and where what is."""

    model: ModuleModel

    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Words or numbers; the end word is put after words, the start word is fed first."""
        source, target = self.lexicons.values()
        rows = [self._numbers(said, source) for said, _ in pairs]
        if any(said is None for _, said in pairs):
            raise RegardError("Give a target with every source; subject.generate makes them.")
        wanted = [self._numbers(said, target) for _, said in pairs]
        fed = [[target.start or 0, *row[:-1]] for row in wanted]
        parts = [torch.from_numpy(x) for one in (rows, wanted, fed) for x in pad(one)]
        whole = Batch(parts[0], parts[1], parts[2], parts[3], None, parts[4])
        found = list(whole.pieces(ROWS))
        self.prepare(found[0])
        return found

    def prepare(self, batch: Batch) -> None:
        """See where time is, and what attentions there are."""
        if self.model.layouts is None:
            device = next(self.model.parameters(), torch.empty(0)).device
            self.model.prepare(batch.to(device))

    def _numbers(self, said: Any, lexicon: Lexicon) -> list[int]:
        given: list[Any] = said.split() if isinstance(said, str) else list(said)
        if all(isinstance(word, int) for word in given):
            return given
        end = [] if lexicon.end is None else [lexicon.end]
        return [*lexicon.encode(given), *end]

    def sites(self) -> list[str]:
        """The attentions; those found by type are known after the first pass."""
        return [*self.model.named, *self.model.ears.packed]


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
