"""The self-test at load: nothing is measured before the subject is proved to be its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.seq2seq import Output
from regard.subjects.hugging_face._model import HuggingFaceModel
from regard.subjects.hugging_face._tokens import Tokens
from regard.tasks.batch import Batch, mask

# Of sources and targets, batch by batch: relative positions have buckets up to 128.
LENGTHS = ((1, 9, 33), (9, 129))
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
COARSE = 5e-2  # of half precision


class SelfTest:
    """Compares a model, as it is listened to, with itself."""

    def __init__(self, model: HuggingFaceModel, tokens: Tokens, avoid: frozenset[int]):
        self.model, self.net, self.tokens = model, model.net, tokens
        dtype = next(model.parameters()).dtype
        self.tolerance = TOLERANCE.get(dtype, COARSE)
        self.words = [n for n in range(self.tokens.count()) if n not in avoid] or [0]
        self.report: dict[str, Any] = {"tolerance": self.tolerance}

    def _draw(self, wanted: tuple[int, ...]) -> Batch:
        """Sentences of random words, of all lengths on both sides, in one padded batch."""
        generator = torch.Generator().manual_seed(len(wanted))
        device = next(self.model.parameters()).device
        sides = {}
        for side in ("source", "target"):
            lengths = torch.tensor([min(n, self.tokens.limit(side)) for n in wanted])
            if side == "source" and self.model.speech:
                sides[side] = self._draw_speech(len(wanted), generator)
                continue
            drawn = torch.randint(
                len(self.words), (len(wanted), int(lengths.max())), generator=generator
            )
            numbers = torch.tensor(self.words)[drawn] * mask(lengths, drawn.shape[1])
            sides[side] = (numbers, lengths)
        target, lengths = sides["target"]
        start = torch.full_like(target[:, :1], self.tokens.start or 0)
        fed = torch.cat([start, target[:, :-1]], dim=1)
        return Batch(*sides["source"], target, lengths, None, fed).to(device)

    def _draw_speech(self, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        positions, size = self.net.config.max_source_positions, self.net.config.num_mel_bins
        features = torch.randn(rows, positions, 2 * size, generator=generator)
        return features, torch.full((rows,), positions)

    def run(self) -> dict[str, Any]:
        """All comparisons; the first that fails is an error that says which."""
        with torch.no_grad():
            for wanted in LENGTHS:
                self.batch = self._draw(wanted)
                self._choose_hooks()
                output = self._pass(self.batch)
                self._compare_outputs(output)
                self._compare_readout(output)
                self._compare_alone(output)
                del output  # its logits may be large
                self._compare_greedy()
        return self.report

    def _choose_hooks(self) -> None:
        """Attentions that do not call the function are listened to at their projections."""
        listener = self.model.listener
        heard = self._pass(self.batch[:1]).sites
        listener.hooked |= {site for site in listener.attentions if site not in heard}
        inside = len(listener.attentions) - len(listener.hooked)
        self.report["listened"] = {"inside": inside, "at projections": len(listener.hooked)}
        if self.model.strange:
            self.report["not recorded"] = list(self.model.strange)

    def _pass(self, batch: Batch) -> Output:
        memory = self.model.encode(batch.source, batch.source_lengths)
        return self.model.decode(memory, batch.inputs)

    def _compare_outputs(self, output: Output) -> None:
        """Logits and weights as the model itself gives them, with eager attention."""
        batch, given = self.batch, {}
        if self.model.speech:
            given["input_features"] = self.model.unfold(batch.source)
        else:
            given = {"input_ids": batch.source, "attention_mask": batch.source_mask.long()}
        given["decoder_input_ids"] = batch.inputs
        with eager(self.net) if self.tolerance == COARSE else nullcontext():  # it rounds elsewhere
            plain = self.net(**given, use_cache=False, return_dict=True)
        self.check(
            "logits with and without recording", output.logits, plain.logits, batch.target_mask
        )
        with eager(self.net):
            own = self.net(**given, use_cache=False, output_attentions=True, return_dict=True)
        names = {
            "encoder": "encoder_attentions",
            "decoder": "decoder_attentions",
            "cross": "cross_attentions",
        }
        masks = {"encoder": output_mask(batch, self.model.speech), "decoder": batch.target_mask}
        compared = 0
        for site, found in output.sites.items():
            kind = "cross" if found.crosses else found.query_side
            theirs = getattr(own, names[kind], None) or ()
            if found.layer >= len(theirs) or theirs[found.layer] is None:
                continue
            weights = theirs[found.layer]
            if found.query_side == "decoder" and weights.shape[2] > batch.inputs.shape[1]:
                weights = weights[:, :, batch.inputs.shape[1] : 2 * batch.inputs.shape[1]]
            if float((weights.sum(-1) - 1).abs().max()) > 1e-2:
                weights = weights.softmax(dim=-1)  # some families give scores and mask
            rows = masks[found.query_side][:, None, :].expand(weights.shape[:3])
            self.check("weights", found.weights, weights, rows, site)
            compared += 1
        self.report["attentions compared"] = max(
            compared, self.report.get("attentions compared", 0)
        )
        if not compared:
            raise RegardError(
                "This model gives no attention weights of its own to compare with, so that nothing"
                " is proved. Load it with attn_implementation='eager'."
            )

    def _compare_readout(self, output: Output) -> None:
        layer = self.model.output_layer()
        assert layer is not None
        linear = torch.nn.functional.linear
        for states, logits in zip(output.decoder_states, output.logits, strict=True):
            found = linear(states, layer.weight, layer.bias)
            self.check("readout of the last states", found, logits)

    def _compare_alone(self, output: Output) -> None:
        """A sentence alone, and in a padded batch."""
        for row in range(len(self.batch)):
            one = self.batch[row : row + 1]
            alone = self._pass(one)
            width = one.target.shape[1]
            self.check("a sentence alone and padded", alone.logits[0], output.logits[row, :width])

    def _compare_greedy(self) -> None:
        """The words chosen one by one with the model's cache, and by one forced pass."""
        from transformers.modeling_outputs import BaseModelOutput

        batch, width = self.batch, self.batch.target.shape[1]
        memory = self.model.encode(batch.source, batch.source_lengths)
        given: dict[str, Any] = {} if self.model.speech else {"attention_mask": memory.mask.long()}
        words, cache = batch.inputs[:, :1], None
        fed, sizes = [words], []
        for _ in range(width):
            out = self.net(
                encoder_outputs=BaseModelOutput(last_hidden_state=memory.states), **given,
                decoder_input_ids=words if cache is not None else torch.cat(fed, 1),
                past_key_values=cache, use_cache=True, return_dict=True,
            )  # fmt: skip
            cache = out.past_key_values
            best = out.logits[:, -1].float().topk(2)
            sizes.append(best.values[:, 0] - best.values[:, 1])
            words = best.indices[:, :1]
            fed.append(words)
        chosen = torch.cat(fed, dim=1)
        with self.model.keep_sites(()):
            forced = self.model.decode(memory, chosen[:, :-1]).logits.argmax(dim=2)
        sure = torch.stack(sizes, 1) > 10 * self.tolerance  # ties may go either way
        same = (forced == chosen[:, 1:]) | ~sure
        self.report["greedy words, forced"] = same.numel() + self.report.get(
            "greedy words, forced", 0
        )
        if not bool(same.all()):
            row, step = (int(x[0]) for x in (~same).nonzero(as_tuple=True))
            raise refuse(
                "forced decoding of the greedy output",
                f"step {step + 1} of sentence {row + 1} says another word",
            )

    def check(
        self, what: str, ours: Tensor, theirs: Tensor, kept: Tensor | None = None, where: str = ""
    ) -> None:
        """Refuse numbers that differ by more than the tolerance, relative to their size."""
        ours, theirs = ours.float(), theirs.float()
        if ours.shape != theirs.shape:
            raise refuse(what, f"shapes are {tuple(ours.shape)} and {tuple(theirs.shape)}", where)
        apart = (ours - theirs).abs().amax(dim=-1)
        size = max(1.0, float(theirs.abs().max()))
        worst = float((apart if kept is None else apart[kept]).max()) / size
        self.report[what] = max(worst, self.report.get(what, 0.0))
        if not worst <= self.tolerance:
            raise refuse(what, f"they differ by {worst:.2g}, more than {self.tolerance:g}", where)


def refuse(what: str, how: str, where: str = "") -> RegardError:
    """The sentence that ends a self-test."""
    place = f" at '{where}'" if where else ""
    return RegardError(
        f"The self-test failed: {what}{place} are not equal: {how}. Nothing is recorded, because"
        " its numbers would not be the model's."
    )


def output_mask(batch: Batch, speech: bool) -> Tensor:
    """Which source positions count."""
    return torch.ones_like(batch.source_mask) if speech else batch.source_mask


@contextmanager
def eager(net: Any) -> Iterator[None]:
    """While it lasts, attention is computed in the open, so that weights can be had."""
    configs = {id(c): c for m in net.modules() if (c := getattr(m, "config", None)) is not None}
    before = [(c, getattr(c, "_attn_implementation", None)) for c in configs.values()]
    try:
        for config, _ in before:
            config._attn_implementation = "eager"
        yield
    finally:
        for config, name in before:
            config._attn_implementation = name
