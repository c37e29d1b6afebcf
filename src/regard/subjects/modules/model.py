"""Any PyTorch module with Regard's interface: a pass is whatever `call` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.blocks import blocks_of
from regard.models.layers.cells import Gates, State
from regard.models.layers.hook_point import AttentionPoints, HookPoint
from regard.models.parts import Layer, Parts
from regard.models.seq2seq import Memory, Output, OutputLayer, Seq2Seq
from regard.subjects.modules._cells import (
    Sources,
    find_gates,
    find_sides,
    find_weights,
    say_effects,
)
from regard.subjects.modules._found import Packed
from regard.subjects.modules._layout import (
    Sizes,
    arrange,
    arrange_bias,
    cut_target,
    find_layout,
    make_probe,
)
from regard.subjects.modules._listening import Ears, Heard
from regard.subjects.modules._naming import tell_sides
from regard.subjects.modules._sites import make_site
from regard.subjects.modules.at import At, Place, with_layer
from regard.tasks.batch import Batch, mask
from regard.training.evaluation import without_dropout

Call = Callable[[nn.Module, Batch], Any]
STATES = ("encoder.states", "decoder.states")
TOLERANCE, COARSE = 1e-4, 2e-2  # relative to the largest number; in half precision
LAYERS = (nn.RNNBase, nn.RNNCellBase, nn.TransformerEncoder, nn.TransformerDecoder)


class ModuleModel(Seq2Seq):
    """Nothing of the module is written anew: each pass is one call of it, heard.

    `encode` only remembers what is to be read; `decode` runs the whole.
    """

    def __init__(
        self,
        net: nn.Module,
        call: Call,
        places: Mapping[str, str],
        sites: Mapping[str, At],
        readout: OutputLayer | None = None,
        time_first: frozenset[str] = frozenset(),
    ):
        super().__init__()
        self.net, self.call, self.readout = net, call, readout
        self.named = {name: with_layer(name, site) for name, site in sites.items()}
        self.time_first = time_first
        texts = {**places}
        for name, site in sites.items():
            texts |= {f"{name}.{part}": where for part, where in site.places().items()}
        found = {name: Place.read(text, net) for name, text in texts.items()}
        if not set(STATES) <= set(texts):
            found |= {
                f"?{n}": Place(n, n, None, None)
                for n, m in net.named_modules()
                if isinstance(m, LAYERS)
            }
        self.ears = Ears(net, found, {})
        self.layouts: dict[str, str] | None = None
        self.points = nn.ModuleDict()
        self.source_vectors = HookPoint("encoder.embedding", "encoder")
        self.embedding: nn.Module | None = None
        self.report: dict[str, Any] = {}
        self.pad: int | None = None  # the word that pads a target
        self.gate_sources: Sources = {}
        self.cell_sides: dict[str, str] = {}  # a cell's submodule -> whose steps it makes
        self.training = net.training

    def prepare(self, batch: Batch) -> None:
        """Look at one pass of a probe: where time is, what each attention looks at."""
        probe = make_probe(batch)
        sizes = Sizes.of(probe)
        if not self.named:
            self._find_packed()
        embedded: dict[str, bool] = {}
        hooks = [m.register_forward_hook(self._notice(n, probe, embedded))
                 for n, m in self.net.named_modules() if isinstance(m, nn.Embedding)]  # fmt: skip
        try:
            with without_dropout(self.net), torch.no_grad():
                with self.ears.listening(cells=True) as heard:
                    out = self.call(self.net, probe)
                with self.ears.listening() as shorter:
                    self.call(self.net, cut_target(probe))
        finally:
            for hook in hooks:
                hook.remove()
        first = next(iter(embedded), None)  # none: "" would name the whole module
        self.embedding = None if first is None else dict(self.net.named_modules())[first]
        self.turned_words = next(iter(embedded.values()), False)
        self.cell_sides = find_sides(self.net, heard, sizes)
        self._name_packed(heard, shorter, sizes)
        candidates = {name for name in self.ears.places if name.startswith("?")}
        self.layouts = {
            name: self._layout(name, heard, sizes)
            for name in self.ears.places
            if name not in candidates
        }
        if "logits" not in self.layouts and not _is_logits(out, sizes):
            self.report["logits"] = "not given"
        self._choose_states(heard, sizes)
        for name, site in self.named.items():
            self.points[name.replace(".", "/")] = AttentionPoints(
                name, site.query_side, site.key_side
            )

    def _choose_states(self, heard: Heard, sizes: Sizes) -> None:
        """States that were not named are those of the last layer of `torch.nn` on either side."""
        assert self.layouts is not None
        places = self.ears.places
        for name, width in zip(STATES, (sizes.source, sizes.target), strict=True):
            for candidate in [c for c in places if c.startswith("?") and name not in self.layouts]:
                place = places[candidate]
                try:
                    find_layout(heard.calls[candidate], sizes, width, False, place.text, name)
                except RegardError:
                    continue
                if name not in places or not place.name.startswith(f"{places[name].name}."):
                    self.report[name] = place.name
                    places[name] = place
            if name in places and name not in self.layouts:
                last = places[name]
                self.layouts[name] = find_layout(
                    heard.calls[f"?{last.name}"], sizes, width, False, last.text, name
                )
            if name not in places:
                side = name.partition(".")[0]
                raise RegardError(
                    f"Nothing in this module is known to hold the {side}'s states: the array"
                    f" '{name}' is missing. Name its place: places={{'{name}': 'SUBMODULE'}}."
                )
        for candidate in [c for c in places if c.startswith("?")]:
            del places[candidate]

    def _notice(self, name: str, probe: Batch, found: dict[str, bool]) -> Callable[..., None]:
        """Which table of vectors the source's words are looked up in, and whether time first."""

        def hook(_module: nn.Module, args: Any, _out: Any) -> None:
            for turned, words in ((False, probe.source), (True, probe.source.T)):
                if args and isinstance(args[0], Tensor) and torch.equal(args[0], words):
                    found.setdefault(name, turned)

        return hook

    def _find_packed(self) -> None:
        self.ears.packed = {
            name: Packed(
                name, module, AttentionPoints(name, "decoder", "encoder"), 0, "decoder", "encoder"
            )
            for name, module in self.net.named_modules()
            if isinstance(module, nn.MultiheadAttention)
        }

    def _name_packed(self, heard: Heard, shorter: Heard, sizes: Sizes) -> None:
        """Names as in all models, `decoder.0.cross`, by what each looks at."""
        found: dict[str, Packed] = {}
        left_out: list[str] = []
        for name, packed in self.ears.packed.items():
            if name not in heard.asked or name not in shorter.asked:
                continue
            told = tell_sides(name, heard, shorter, sizes)
            if isinstance(told, str):
                left_out.append(f"{name}: {told}")
                continue
            (query, key), (own, given, weights) = told, heard.asked[name][2]
            self._compare("output of attention", own, given, name)
            if weights is not None and weights.ndim == 3:
                self._compare("weights", heard.sites[name].weights.mean(1), weights, name)
            kind = "self" if query == key else "cross"
            layer = sum(s.endswith(f".{kind}") and s.startswith(query) for s in found)
            site = f"{query}.{layer}.{kind}"
            points = AttentionPoints(site, query, key)
            found[site] = replace(
                packed, name=site, points=points, layer=layer, query_side=query, key_side=key
            )
            self.points[site.replace(".", "/")] = points
        self.ears.packed = found
        if left_out:
            self.report["not recorded"] = left_out

    def _layout(self, name: str, heard: Heard, sizes: Sizes) -> str:
        side, heads = self._axis(name), self._heads(name)
        width = sizes.source if side == "source" else sizes.target
        part = name.rpartition(".")[2]
        place = self.ears.places[name].text
        if part == "bias":
            return "bias"
        keys = part in ("keys", "values")
        return find_layout(heard.calls[name], sizes, width, keys, place, name, heads)

    def _axis(self, name: str) -> str:
        """The side whose steps an array's first time axis runs over."""
        site, _, part = name.rpartition(".")
        if site in self.named:
            key = part in ("keys", "values")
            side = self.named[site].key_side if key else self.named[site].query_side
            return "source" if side == "encoder" else "target"
        return "source" if name.startswith("encoder") else "target"

    def _heads(self, name: str) -> int:
        site = name.rpartition(".")[0]
        return self.named[site].heads if site in self.named else 1

    def encode(self, source: Tensor, lengths: Tensor, gates: Gates | None = None) -> Memory:
        """What is to be read; it is read when it is decoded."""
        words = mask(lengths, source.shape[1])
        return Memory(source[..., None].float(), words, (), (source, lengths), gates=gates)

    def decode(self, memory: Memory, inputs: Tensor, lengths: Tensor | None = None) -> Output:
        """One call of the module."""
        source, source_lengths = memory.prepared
        full = torch.full((len(inputs),), inputs.shape[1], device=inputs.device)
        # Whoever puts the start word before the target himself comes to what is fed.
        target = torch.cat([inputs[:, 1:], inputs[:, -1:]], dim=1)
        batch = Batch(
            source, source_lengths, target, full if lengths is None else lengths, None, inputs
        )
        if self.layouts is None:
            self.prepare(batch)
        sizes = Sizes.of(batch)
        with self._changing(source), self.ears.listening(memory.gates is not None) as heard:
            out = self.call(self.net, batch)
        arrays = self._arrange(heard, sizes)
        logits = arrays.get("logits", out if _is_logits(out, sizes) else None)
        if logits is None:
            logits = inputs.new_zeros(*inputs.shape, 0, dtype=torch.float32)
        found = {} if memory.gates is None else self._find_gates(heard)
        changed = any(point.watched for point in self.hook_points().values())
        masks = {"encoder": memory.mask, "decoder": self._find_words(inputs)}
        made = {
            name: make_site(name, site, arrays, masks, self.vector(site), changed)
            for name, site in self.named.items()
        }
        states = [arrays[name] for name in STATES]
        return Output(logits, states[0], states[1], {**heard.sites, **made}, found)

    def _find_words(self, inputs: Tensor) -> Tensor:
        """Where a row of what is fed has words: up to the last that is not padding."""
        if self.pad is None:
            return torch.ones_like(inputs, dtype=torch.bool)
        later = (inputs != self.pad).flip(1).cummax(dim=1).values.flip(1)
        later[:, 0] = True  # the start word may be the one that pads
        return later

    def _find_gates(self, heard: Heard) -> dict[str, Tensor]:
        found, self.gate_sources = find_gates(self.net, heard, self.cell_sides)
        return found

    def _arrange(self, heard: Heard, sizes: Sizes) -> dict[str, Tensor]:
        assert self.layouts is not None
        widths = {"source": sizes.source, "target": sizes.target}
        return {
            name: arrange_bias(heard.calls[name], sizes.rows, self._heads(name), name)
            if layout == "bias"
            else arrange(
                heard.calls[name], layout, sizes.rows, widths[self._axis(name)], self._heads(name)
            )
            for name, layout in self.layouts.items()
        }

    def vector(self, site: At) -> Tensor | None:
        """The vector of an additive score, by the name of a parameter or of a linear map."""
        if site.vector is None or isinstance(site.vector, Tensor):
            return site.vector
        known = {
            **dict(self.net.named_parameters()),
            **{n: m.weight for n, m in self.net.named_modules() if isinstance(m, nn.Linear)},
        }
        if site.vector not in known:
            raise RegardError(unknown("vector", site.vector, known))
        return known[site.vector].flatten()

    @contextmanager
    def _changing(self, source: Tensor) -> Iterator[None]:
        """While it lasts, what passes a watched hook point is put back into the module."""
        self.ears.replace = {}
        for key, points in self.points.items():
            name = key.replace("/", ".")
            if name not in self.named or not points.watched:
                continue
            assert isinstance(points, AttentionPoints)
            if points.scores.watched or points.weights.watched:
                raise RegardError(
                    f"'{name}' is known by its places, so that its scores and weights can be seen,"
                    " but not changed. Change its queries, keys or values."
                )
            for part in ("queries", "keys", "values"):
                point = getattr(points, part)
                if point.watched:
                    self.ears.replace[f"{name}.{part}"] = self._changer(f"{name}.{part}", point)
        with self._embedding(source):
            yield
        self.ears.replace = {}

    def _changer(self, name: str, point: HookPoint) -> Callable[[Tensor], Tensor]:
        site = self.named[name.rpartition(".")[0]]
        layout = (self.layouts or {}).get(name, "")
        place = self.ears.places.get(name)
        if place is None:
            raise RegardError(
                f"'{name}' is not known, so that it cannot be changed. Name it: regard.at(…, v=…)."
            )
        if layout not in ("whole", "turned") or place.output is not None or place.input is not None:
            raise RegardError(
                f"'{name}' is made step by step, is one of several outputs or an input, so that it"
                " cannot be changed from outside. `breakdown` takes its scores apart without"
                " changing them."
            )
        scale = site.scale if name.endswith(".queries") else 1.0

        def change(out: Any) -> Any:
            if isinstance(out, tuple):  # the first of several is what its place means
                return change(out[0]), *out[1:]
            value = out.transpose(0, 1) if layout == "turned" else out
            heads = value.view(*value.shape[:2], site.heads, -1).transpose(1, 2)
            back: Tensor = (point(heads * scale) / scale).transpose(1, 2).flatten(2)
            return back.transpose(0, 1) if layout == "turned" else back

        return change

    @contextmanager
    def _embedding(self, source: Tensor) -> Iterator[None]:
        """While it lasts, the vectors of source words pass their hook point, if it is watched."""
        if self.embedding is None or not self.source_vectors.watched:
            yield
            return
        done: list[bool] = []
        wanted = source.T if self.turned_words else source

        def hook(_module: nn.Module, args: Any, out: Tensor) -> Tensor | None:
            if done or not torch.equal(args[0], wanted):  # one table may serve both sides
                return None
            done.append(True)
            words = out.transpose(0, 1) if self.turned_words else out
            changed: Tensor = self.source_vectors(words)
            return changed.transpose(0, 1) if self.turned_words else changed

        handle = self.embedding.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def step(self, memory: Memory, words: Tensor, state: State) -> tuple[Tensor, State]:
        """One more word; the state is the words so far."""
        so_far = torch.cat([*state, words[:, None]], dim=1)
        return self.decode(memory, so_far).logits[:, -1], (so_far,)

    def output_layer(self) -> OutputLayer | None:
        """What was given as the readout."""
        return self.readout

    def hook_points(self) -> dict[str, HookPoint]:
        """See `NamedParts`; the embedding where one reads the source."""
        found = super().hook_points()
        if self.embedding is None:
            found.pop("encoder.embedding", None)
        return found

    def blocks(self) -> dict[str, Tensor]:
        """The module's own matrices."""
        return blocks_of(self.net)

    def layers(self) -> dict[str, Layer]:
        """Those of `nn.Transformer` and its parts."""
        found: dict[str, Layer] = {}
        kinds = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}
        for side, kind in kinds.items():
            own = [m for m in self.net.modules() if isinstance(m, kind)]
            for number, layer in enumerate(own):
                attention = layer.self_attn
                assert isinstance(attention, nn.MultiheadAttention)
                found[f"{side}.{number}"] = Layer(layer, not attention.batch_first)
        return found

    def unit_weights(self, quantity: str) -> list[tuple[Tensor, Tensor]]:
        """See `NamedParts`; known where a state or gate is that of a layer or cell of torch's."""
        return find_weights(self.net, self.ears.places, self.gate_sources, quantity)

    def gate_effects(self) -> dict[str, str]:
        """What gates of torch's cells do."""
        return say_effects(self.net)

    def parts(self) -> Parts:
        """See `NamedParts`."""
        return {"encoder": [getattr(self.net, "encoder", None)]}

    def _compare(self, what: str, ours: Tensor, theirs: Tensor, where: str) -> None:
        if ours.shape != theirs.shape:
            return
        worst = float((ours - theirs).abs().max())
        self.report[what] = max(worst, self.report.get(what, 0.0))
        if not worst <= find_tolerance(self.net) * max(1.0, float(theirs.abs().max())):
            raise RegardError(
                f"The self-test failed: the {what} at '{where}', worked out from queries, keys and"
                f" values, is {worst:.2g} off what the module gives. It does something else: name"
                " its places with regard.at."
            )


def find_tolerance(net: nn.Module) -> float:
    """How far what must be equal may be apart, relative to the largest number."""
    halves = (torch.bfloat16, torch.float16)
    return COARSE if any(p.dtype in halves for p in net.parameters()) else TOLERANCE


def _is_logits(out: Any, sizes: Sizes) -> bool:
    return isinstance(out, Tensor) and out.ndim == 3 and out.shape[:2] == (sizes.rows, sizes.target)
